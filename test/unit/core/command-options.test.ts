import { expect, test } from "vitest";
import { choiceLabel, optionName, parseCommandText, parseOptions } from "../../../src/core/command-input.ts";
import ask from "../../../commands/ask.ts";
import chat from "../../../commands/chat.ts";
import transcribe from "../../../commands/transcribe.ts";
import usage from "../../../commands/usage.ts";

// Attack: Have a gateway fetch an internal address (`image:https://169.254.169.254/…`). What holds:
// public addresses and names only; the embedded gateway's own downloads check the resolved address
// too.
test("an optional free text option is also accepted by its name", () => {
  expect(parseCommandText(transcribe, "language:en hint:Parley")).toEqual({ language: "en", hint: "Parley" });
  expect(parseCommandText(chat, "message:hello there")).toEqual({ message: "hello there" });
  expect(parseCommandText(chat, 'message:"hello there" model:m')).toEqual({
    message: "hello there",
    model: "m",
  });
});

test("a translated option name or choice belongs to its command", () => {
  expect(optionName(usage, "to", "de")).toBe("bis");
  expect(choiceLabel(usage, "today", "de")).toBe("heute");
  const translate = { name: "translate" };
  expect(optionName(translate, "to", "de")).toBe("to");
  expect(choiceLabel(translate, "today", "de")).toBe("today");
});

test("required free text is also accepted by its name where that is all", () => {
  expect(parseCommandText(ask, 'prompt:"Why?"')).toEqual({ prompt: "Why?" });
  expect(parseCommandText(ask, 'model:m  prompt:"Why is it so?" private:yes')).toEqual({
    prompt: "Why is it so?",
    model: "m",
    private: "yes",
  });
  expect(parseCommandText(ask, "prompt:Why?")).toEqual({ prompt: "Why?" });
  expect(parseCommandText(ask, 'what is prompt:"x"?')).toEqual({ prompt: 'what is prompt:"x"?' });
});

test.each([
  ['"', '"'],
  ["“", "”"],
  ["„", "“"],
  ["„", "”"],
  ["”", "”"],
  ["«", "»"],
  ["»", "«"],
  ["« ", " »"],
  ["‹", "›"],
  ["「", "」"],
  ["『", "』"],
])("a value of several words stands in %s…%s", (open, close) => {
  expect(parseCommandText(ask, `prompt:${open}Why so?${close} model:${open}big one${close}`)).toEqual({
    prompt: "Why so?",
    model: "big one",
  });
  expect(parseCommandText(ask, `why? model:${open}big one`)["prompt"]).toContain("why?");
});

test("required free text may contain the name of its option", () => {
  expect(parseCommandText(ask, "what does prompt: mean?")).toEqual({ prompt: "what does prompt: mean?" });
  expect(parseCommandText(ask, "prompt:engineering, what is it?")).toEqual({
    prompt: "prompt:engineering, what is it?",
  });
});

test.each([
  "https://169.254.169.254/latest/meta-data",
  "https://[::1]/a.png",
  "https://2130706433/a.png",
  "https://localhost/a.png",
  "https://metadata.google.internal/a.png",
  "https://printer.local/a.png",
  "https://intranet/a.png",
  "https://user@pictures.example/a.png",
  "http://pictures.example/a.png",
])("a linked image at %s is refused, since a gateway may download it", (url) => {
  const raw = parseCommandText(ask, `what is this? image:${url}`);
  expect(() => parseOptions(ask, raw)).toThrow("an address must start with https:// and be public");
});
