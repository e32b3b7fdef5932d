import { describe, expect, it } from "vitest";
import {
  advance,
  type AnswerInput,
  type AnswerProgress,
  emptyProgress,
  finishReasonOf,
  verdictOf,
} from "../../../src/gateway/chat-answer.ts";
import { createCompletionReader } from "../../../src/wire/completion-chunk.ts";

const chunk = (value: unknown, isEvent = true): AnswerInput => ({
  kind: "chunk",
  chunk: createCompletionReader().read(value),
  isEvent,
});
const delta = chunk({ model: "m1", choices: [{ delta: { content: "a" } }] });
const finish = (reason: string): AnswerInput => chunk({ choices: [{ delta: {}, finish_reason: reason }] });
const usage = (tokens: object): AnswerInput => chunk({ choices: [], usage: tokens });
const document = chunk({ choices: [{ message: { content: "a" } }] }, false);
const foreign = chunk({ hello: 1 });
const done: AnswerInput = { kind: "done" };

function after(...inputs: readonly AnswerInput[]): AnswerProgress {
  return inputs.reduce(advance, emptyProgress);
}

describe("answer progress", () => {
  it.each<[string, readonly AnswerInput[], AnswerProgress["phase"], ReturnType<typeof verdictOf>]>([
    ["nothing", [], "empty", "empty"],
    ["JSON of another shape", [foreign], "foreign", "foreign"],
    ["chunks", [delta, delta], "open", "interrupted"],
    ["chunks after JSON of another shape", [foreign, delta, foreign], "open", "interrupted"],
    ["a finish reason", [delta, finish("stop")], "finished", "complete"],
    ["usage after it", [delta, finish("stop"), usage({ prompt_tokens: 1 })], "finished", "complete"],
    ["an end marker without finish reason", [delta, done], "done", "complete"],
    ["an end marker alone", [done], "done", "complete"],
    ["one document without finish reason", [document], "whole", "complete"],
    ["two documents without finish reason", [document, document], "open", "interrupted"],
    [
      "an unstreamed message in an event",
      [chunk({ choices: [{ message: { content: "a" } }] })],
      "open",
      "interrupted",
    ],
    ["a finish reason that means an error", [delta, finish("error"), done], "done", "provider-failed"],
  ])("after %s", (_, inputs, phase, verdict) => {
    expect(after(...inputs).phase).toBe(phase);
    expect(verdictOf(after(...inputs))).toBe(verdict);
  });

  it("keeps the first model, the last finish reason and all usage", () => {
    const progress = after(
      delta,
      chunk({ model: "m2", choices: [{ delta: {}, finish_reason: "stop" }] }),
      finish("length"),
      usage({ prompt_tokens: 3 }),
      usage({ completion_tokens: 4 }),
      foreign,
    );
    expect(progress).toMatchObject({
      model: "m1",
      ending: { reason: "length", word: "length" },
      usage: { promptTokens: 3, completionTokens: 4 },
    });
    expect(finishReasonOf(progress)).toBe("length");
  });

  it("reads the model from a later chunk when the first has none", () => {
    const unnamed = chunk({ choices: [{ delta: { content: "a" } }] });
    expect(after(unnamed, unnamed, delta).model).toBe("m1");
  });

  it("counts an end without a finish reason as stop, and an error as other", () => {
    expect(finishReasonOf(after(delta, done))).toBe("stop");
    expect(finishReasonOf(after(delta, finish("error")))).toBe("other");
    expect(finishReasonOf(after(delta, finish("content_filter")))).toBe("filtered");
  });
});
