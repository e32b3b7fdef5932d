import { describe, expect, test, vi } from "vitest";
import type { FinishReason } from "../../../../src/core/gateway.ts";
import { ada, said, worldOfEachTest } from "../../../support/fakes.ts";

describe("Continue", () => {
  const world = worldOfEachTest();

  function answers(...answer: readonly (readonly [string, FinishReason])[]): void {
    const left = [...answer];
    world.gateway.answerWith(async function* scripted(request) {
      const [text, reason] = left.shift() ?? ["", "stop"];
      yield { kind: "text", text };
      const usage = { promptTokens: 10, completionTokens: 4, costUsd: 0.5, isEstimated: false };
      yield { kind: "finish", reason, model: request.model, usage };
    });
  }

  async function pressed(): Promise<void> {
    expect(await world.assistant.act(world.button("continue"), ada)).toEqual({ kind: "done" });
    await world.settled();
  }

  test("joins the rest to the same answer, again and again; receipt and usage add up", async () => {
    answers(["One two thr", "length"], ["ee four", "length"], [" five.", "stop"]);
    await world.ask("Count.");
    expect(world.platform.replies[0]?.notices).toEqual([
      "The answer reached its length limit and may be unfinished.",
    ]);
    await pressed();
    expect(world.platform.replies[0]).toMatchObject({ text: "One two three four", state: "finished" });
    const [, , answer, request] = said(world.gateway.requests[1]);
    expect(answer).toBe("assistant: One two thr");
    expect(request).toMatch(/^user: .*length limit.*\n\nOne two thr$/s);
    await pressed();
    expect(world.platform.replies).toMatchObject([{ text: "One two three four five.", notices: [] }]);
    expect(world.platform.replies[0]?.actions.map(({ kind }) => kind)).toEqual([
      "regenerate",
      "model",
      "details",
    ]);
    const log = await world.history.history("fake:c1", { maxMessages: 9 });
    expect(log).toMatchObject([
      { role: "user" },
      {
        parts: [{ kind: "text", text: "One two three four five." }],
        usage: { promptTokens: 30, completionTokens: 12, costUsd: 1.5 },
        receipt: { calls: [{}, {}, {}] },
      },
    ]);
    const told = await world.assistant.act(world.button("details"), ada);
    expect(told).toMatchObject({ markdown: expect.stringContaining("Continued: 2 earlier parts") as string });
  });

  test("keeps what there is where the rest does not come", async () => {
    answers(["One two", "length"]);
    await world.ask("Count.");
    world.gateway.answerWith(async function* broken(request) {
      if (request.messages.length > 0) throw new Error("broken");
      yield { kind: "text", text: "" };
    });
    await pressed();
    expect(world.platform.replies[0]).toMatchObject({ text: "One two", state: "finished" });
    expect(world.platform.replies[0]?.actions.map(({ kind }) => kind)).toContain("continue");
  });

  test("that is stopped keeps the beginning and what came of the rest", async () => {
    answers(["One two", "length"]);
    await world.ask("Count.");
    world.hang(" three");
    await world.assistant.act(world.button("continue"), ada);
    await vi.waitFor(() => expect(world.gateway.requests).toHaveLength(2));
    await world.assistant.cancel("fake:c1", ada);
    await world.settled();
    expect(world.platform.replies[0]).toMatchObject({ text: "One two three", notices: ["Stopped."] });
  });

  test("of an answer that is complete is refused", async () => {
    answers(["One two", "length"], [" three", "stop"]);
    await world.ask("Count.");
    const before = world.button("continue");
    await pressed();
    const told = await world.assistant.act(before, ada);
    expect(told).toMatchObject({
      kind: "told",
      markdown: expect.stringContaining("earlier attempt") as string,
    });
    const { key } = world.button("regenerate");
    expect(await world.assistant.act({ kind: "continue", key }, ada)).toEqual({
      kind: "told",
      markdown: "This answer is complete.",
    });
  });
});
