import { beforeEach, describe, expect, test, vi } from "vitest";
import { ParleyError } from "../../../../src/core/errors.ts";
import type { FinishReason } from "../../../../src/core/gateway.ts";
import { ada, bo, call, message, said, worldOfEachTest } from "../../../support/fakes.ts";

describe("Regenerate", () => {
  const world = worldOfEachTest();
  beforeEach(() => {
    world.gateway.answerWith(async function* answer(request) {
      yield { kind: "text", text: `answer ${world.gateway.requests.length}` };
      yield { kind: "finish", reason: "stop", model: request.model, usage: { isEstimated: true } };
    });
  });

  async function asked(text: string, more: Parameters<typeof message>[1] = {}): Promise<void> {
    await world.ask(text, more);
  }

  const log = async () =>
    (await world.history.history("fake:c1", { maxMessages: 20 })).map(({ parts }) =>
      parts.map((part) => (part.kind === "text" ? part.text : part.kind)).join(),
    );

  test("asks anew into the same reply; the history holds the last attempt alone", async () => {
    await asked("one");
    await asked("two");
    expect(await world.assistant.act(world.button("regenerate"), ada)).toEqual({ kind: "done" });
    await world.settled();
    expect(world.platform.replies).toMatchObject([
      { text: "answer 1", shown: 1 },
      { text: "answer 3", shown: 2, state: "finished" },
    ]);
    expect(said(world.gateway.requests[2])).toEqual(said(world.gateway.requests[1]));
    expect(await log()).toEqual(["one", "answer 1", "two", "answer 3"]);
    await world.assistant.act(world.button("regenerate"), ada);
    await world.settled();
    await asked("three");
    expect(said(world.gateway.requests.at(-1))).toContain("assistant: answer 4");
    expect(await world.store.inbox.listOpen()).toEqual([]);
  });

  test("of a batch asks for all its messages again, and of a command in its own conversation too", async () => {
    await world.store.inbox.accept(message("first", { key: "fake:b1" }));
    await world.store.inbox.accept(message("second", { key: "fake:b2" }));
    await world.store.inbox.claimTurn({ keys: ["fake:b1", "fake:b2"], address: { at: "c1" }, attempts: 1 });
    await world.recover();
    await world.assistant.act(world.button("regenerate"), ada);
    await world.settled();
    expect(said(world.gateway.requests[1]).slice(1)).toEqual(["user: first", "user: second"]);
    await world.answered(call("ask", { prompt: "why?" }));
    await world.assistant.act(world.button("regenerate"), ada);
    await world.settled();
    expect(world.platform.replies.at(-1)).toMatchObject({ text: "> why?\n\nanswer 4", state: "finished" });
  });

  test("keeps the earlier answer where the new attempt fails, and says why", async () => {
    await asked("one");
    world.gateway.answerWith(async function* broken() {
      yield { kind: "text", text: "half of" };
      throw new ParleyError("gateway-unreachable", "gone");
    });
    await world.assistant.act(world.button("regenerate"), ada);
    await world.settled();
    const [reply] = world.platform.replies;
    expect(reply).toMatchObject({ text: "answer 1", state: "finished" });
    expect(reply?.notices).toEqual([
      "There is no new answer, so this is the earlier one. The model gateway cannot be reached. Try again in a moment.",
    ]);
    expect(await log()).toEqual(["one", "answer 1"]);
    expect(await world.assistant.act(world.button("regenerate"), ada)).toEqual({ kind: "done" });
    await world.settled();
  });

  test("of a command that cannot run any more keeps its answer", async () => {
    await world.answered(call("ask", { prompt: "why?", model: "chatty" }));
    world.gateway.answerWith(async function* refused(request) {
      if (request.messages.length > 0) throw new ParleyError("model-not-allowed", "not any more");
      yield { kind: "text", text: "" };
    });
    expect(await world.assistant.act(world.button("regenerate"), ada)).toEqual({ kind: "done" });
    await world.settled();
    expect(world.platform.replies[0]).toMatchObject({ text: "> why?\n\nanswer 1", state: "finished" });
    expect(world.platform.replies[0]?.notices[0]).toContain("There is no new answer");
  });

  test("is refused to bystanders, on an older answer, on an earlier attempt, and while another turn runs", async () => {
    await asked("one");
    const first = world.button("regenerate");
    expect(await world.assistant.act(first, bo)).toMatchObject({
      kind: "told",
      markdown: "Only the person who asked, or a moderator, can do this.",
    });
    const moderator = { ...bo, origin: { user: "fake:user:bo", isMember: true, isManager: true } };
    expect(await world.assistant.act(first, moderator)).toEqual({ kind: "done" });
    await world.settled();
    const outdated = await world.assistant.act(first, ada);
    expect(outdated).toMatchObject({
      kind: "told",
      markdown: expect.stringContaining("earlier attempt") as string,
    });
    const second = world.button("regenerate");
    await asked("two");
    const notLast = await world.assistant.act(second, ada);
    expect(notLast).toMatchObject({
      kind: "told",
      markdown: expect.stringContaining("last answer") as string,
    });
    await world.store.inbox.accept(message("waits"));
    const busy = await world.assistant.act(world.button("regenerate"), ada);
    expect(busy).toMatchObject({ kind: "told", markdown: expect.stringContaining("on its way") as string });
    expect(world.gateway.requests).toHaveLength(3);
  });

  test("pressed twice runs once", async () => {
    await asked("one");
    const action = world.button("regenerate");
    const results = await world.passingTime(
      Promise.all([world.assistant.act(action, ada), world.assistant.act(action, ada)]),
    );
    expect(results.map(({ kind }) => kind).toSorted()).toEqual(["done", "told"]);
    await world.settled();
    expect(world.gateway.requests).toHaveLength(2);
  });

  test("that was asked for before a crash runs after it, into the same reply, once", async () => {
    await asked("one");
    const [entry] = await world.store.inbox.lookUp([
      world.button("details").key.replace(/.* |\/answer$/g, ""),
    ]);
    await world.store.inbox.redo(entry!.event.key, { kind: "regenerate" });
    const after = world.restart();
    await after.recover("fake");
    await vi.waitFor(() => expect(after.pending()).toBe(0));
    await world.settled();
    expect(world.platform.replies).toMatchObject([{ text: "answer 2", state: "finished" }]);
    // Killed between the answer and the end of the turn: the answer is shown, nothing is asked.
    await world.store.inbox.redo(entry!.event.key, { kind: "regenerate" });
    await world.store.conversations.replace("fake:c1", {
      id: `${entry!.event.key}/answer`,
      role: "assistant",
      turnKey: entry!.event.key,
      attempt: 3,
      parts: [{ kind: "text", text: "stored before the crash" }],
      createdAt: 1,
      estimatedTokens: 1,
      outcome: "complete",
    });
    await world.store.inbox.claimTurn({ ...entry!.turn!, attempts: 3 });
    await after.recover("fake");
    await vi.waitFor(() => expect(after.pending()).toBe(0));
    await world.settled();
    expect(world.platform.replies).toMatchObject([{ text: "stored before the crash", state: "finished" }]);
    expect(world.gateway.requests).toHaveLength(2);
  });

  test("works as long as the conversation is kept; of an earlier answer it says that there are later ones", async () => {
    await asked("one");
    const earlier = world.button("regenerate");
    await asked("two");
    await world.store.sweep(Date.now() + 400 * 24 * 60 * 60_000);
    expect(await world.assistant.act(earlier, ada)).toEqual({
      kind: "told",
      markdown:
        "People have gone on since this answer. Only the last answer of a conversation can be changed.",
    });
    expect(await world.assistant.act(world.button("regenerate"), ada)).toEqual({ kind: "done" });
    await world.settled();
    expect(world.platform.replies).toMatchObject([{ text: "answer 1" }, { text: "answer 3" }]);
  });

  test("counts like any request", async () => {
    await world.renew({ spending: { turnsPersonMinute: 2 } });
    await asked("one");
    await world.assistant.act(world.button("regenerate"), ada);
    await world.settled();
    await expect(world.assistant.act(world.button("regenerate"), ada)).rejects.toMatchObject({
      code: "rate-limited",
    });
  });
});

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
