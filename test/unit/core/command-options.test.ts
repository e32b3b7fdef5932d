import { expect, test } from "vitest";
import { parseCommandText } from "../../../src/core/command-options.ts";
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
