import { describe, expect, it } from "vitest";
import { findRelated, parseRecall, type Said } from "../../../src/embedded-gateway/sandbox/recall.ts";

function talk(...texts: readonly string[]): Said[] {
  return texts.map((text, index) => ({ role: index % 2 === 0 ? "user" : "assistant", text, images: 0 }));
}

const three = ["one", "re one", "two", "re two", "three", "re three"];

describe("parseRecall", () => {
  it.each([
    ["What did I say first?", 0],
    ["what was my first message", 0],
    ["Ada: what did I say first?", 0],
    ["What did I say two messages ago?", 1],
    ["what did I say 3 messages ago", 0],
    ["What did I say last?", 2],
    ["What did I just say?", 2],
    ["repeat my second message", 1],
    ["Quote message 3, please", 2],
    ["What did I say before that?", 1],
    ["what did I write nine messages ago?", -6],
  ])("reads %j as the user's message %i", (question, index) => {
    expect(parseRecall(talk(...three, question))).toEqual({ kind: "one", by: "user", index });
  });

  it("resolves 'before that' relative to the previous question", () => {
    const first = talk(...three, "what did I say last?", "three", "and before that?");
    expect(parseRecall(first)).toMatchObject({ index: 1 });
    expect(parseRecall([...first, ...talk("and before that?").map((said) => said)])).toMatchObject({
      index: 0,
    });
  });

  it("distinguishes the assistant's messages from the user's", () => {
    expect(parseRecall(talk(...three, "What did you say first?"))).toEqual({
      kind: "one",
      by: "assistant",
      index: 0,
    });
  });

  it.each(["List everything I said", "what have I said so far?", "What did I say?"])(
    "reads %j as all",
    (text) => {
      expect(parseRecall(talk(...three, text))).toEqual({ kind: "all", by: "user" });
    },
  );

  it.each([
    "hello",
    "I said nothing",
    "tell me a joke",
    "The first message was fine.",
    "write 9000 characters",
  ])("takes %j for no such question", (text) => {
    expect(parseRecall(talk(...three, text))).toBeUndefined();
  });
});

describe("findRelated", () => {
  it("finds the message that shares words with the question, the later of equals", () => {
    const said = talk(
      "My dog is called Rex",
      "ok",
      "I live in Oslo",
      "ok",
      "My dogs are two",
      "ok",
      "How old is my dog?",
    );
    expect(findRelated(said)).toBe(4);
    expect(findRelated([...said.slice(0, 4), ...talk("Is Oslo nice?")])).toBe(2);
  });

  it("finds a name after 'name is'", () => {
    expect(findRelated(talk("My name is Ada", "ok", "I like tea", "ok", "What is my name?"))).toBe(0);
  });

  it("finds nothing without shared words", () => {
    expect(findRelated(talk("My dog is called Rex", "ok", "Why is the sky blue?"))).toBeUndefined();
  });
});
