import { describe, expect, it } from "vitest";
import { recallText, type Said } from "../../../src/embedded-gateway/sandbox/chat-model.ts";

function talk(...texts: readonly string[]): Said[] {
  return texts.map((text, index) => ({ role: index % 2 === 0 ? "user" : "assistant", text, images: 0 }));
}

const three = ["one", "re one", "two", "re two", "three", "re three"];

describe("recallText", () => {
  it.each([
    ["What did I say first?", "“one”"],
    ["what was my first message", "“one”"],
    ["What did I say last?", "“three”"],
    ["What did I just say?", "“three”"],
    ["repeat my second message", "“two”"],
    ["what was my ninth message?", "you wrote only 3 messages"],
    ["List everything I said", "1. “one”\n2. “two”\n3. “three”"],
    ["what have I said so far?", "1. “one”\n2. “two”\n3. “three”"],
  ])("answers %j with %j", (question, answer) => {
    expect(recallText(talk(...three, question))).toContain(answer);
  });

  it("says that nothing was said before", () => {
    expect(recallText(talk("List everything I said"))).toBe("Nothing was said before this message.");
  });

  it.each([
    "hello",
    "I said nothing",
    "tell me a joke",
    "The first message was fine.",
    "write 9000 characters",
  ])("takes %j for no such question", (text) => {
    expect(recallText(talk(...three, text))).toBeUndefined();
  });
});
