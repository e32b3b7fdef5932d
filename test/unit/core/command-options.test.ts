import { expect, test } from "vitest";
import { parseCommandText, parseOptions } from "../../../src/core/command-input.ts";
import ask from "../../../commands/ask.ts";
import chat from "../../../commands/chat.ts";
import transcribe from "../../../commands/transcribe.ts";

test("an optional free text option is also accepted by its name", () => {
  expect(parseCommandText(transcribe, "language:en hint:Parley")).toEqual({ language: "en", hint: "Parley" });
  expect(parseCommandText(chat, "message:hello there")).toEqual({ message: "hello there" });
  expect(parseCommandText(chat, 'message:"hello there" model:m')).toEqual({
    message: "hello there",
    model: "m",
  });
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
