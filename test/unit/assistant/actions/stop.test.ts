import { beforeEach, describe, expect, test, vi } from "vitest";
import type { Actor } from "../../../../src/core/access.ts";
import { ParleyError } from "../../../../src/core/errors.ts";
import { toStopAction } from "../../../../src/core/press.ts";
import { toUtcDay } from "../../../../src/support/clock.ts";
import { bo, call, message } from "../../../support/fakes.ts";
import { beginAgain } from "../../../support/left-turns.ts";
import { worldOfEachTest } from "../../../support/world-of-each-test.ts";

const ada: Actor = {
  platform: "fake",
  author: { id: "fake:ada", name: "Ada" },
  origin: { user: "fake:user:ada", isMember: true, isManager: false },
};

describe("Stop", () => {
  let isEnded = false;
  const world = worldOfEachTest();
  beforeEach(async () => {
    isEnded = false;
    world.gateway.answerWith(async function* endless(_request, signal) {
      try {
        yield { kind: "text", text: "The first words" };
        await new Promise((_resolve, reject) => {
          if (signal.aborted) reject(signal.reason as Error);
          signal.addEventListener("abort", () => reject(signal.reason as Error));
        });
      } finally {
        isEnded = true;
      }
    });
  });

  async function growing(text = "tell me"): Promise<string> {
    const event = message(text);
    const before = world.platform.replies.length;
    await world.assistant.receive(event);
    await vi.waitFor(() => expect(world.platform.replies).toHaveLength(before + 1));
    await vi.waitFor(() => expect(world.platform.replies.at(-1)?.text).toBe("The first words"));
    return event.key;
  }

  test("by a bystander is refused to them alone; by a moderator it is not", async () => {
    const key = await growing();
    await expect(world.assistant.press(toStopAction(key), bo)).rejects.toMatchObject({
      code: "not-permitted",
    });
    await expect(world.assistant.press({ kind: "stop", key: "fake:c1" }, bo)).rejects.toMatchObject({
      code: "not-permitted",
    });
    expect(isEnded).toBe(false);
    const moderator = { ...bo, origin: { user: "fake:user:bo", isMember: true, isManager: true } };
    expect(await world.assistant.press(toStopAction(key), moderator)).toEqual({ kind: "done" });
    await world.settled();
    expect(world.platform.replies[0]?.notices).toEqual(["Stopped by Bo."]);
    expect(await world.assistant.press(toStopAction(key), ada)).toEqual({
      kind: "told",
      markdown: "This answer has ended already.",
    });
  });

  test("of a turn that waits takes it out of the queue", async () => {
    await growing();
    const waiting = message("never mind");
    await world.assistant.receive(waiting);
    expect(await world.assistant.press(toStopAction(waiting.key), ada)).toEqual({ kind: "done" });
    await world.assistant.press({ kind: "stop", key: "fake:c1" }, ada);
    await world.settled();
    expect(world.gateway.requests).toHaveLength(1);
    expect(world.platform.replies).toHaveLength(1);
    expect(await world.store.inbox.open()).toEqual([]);
  });

  test("is durable at once, before its turn has ended", async () => {
    const key = await growing();
    const { inbox } = world.store;
    const write = inbox.write.bind(inbox);
    const held = Promise.withResolvers<void>();
    vi.spyOn(inbox, "write").mockImplementation(async (attempt, what) => {
      if (what.kind === "end") await held.promise;
      return await write(attempt, what);
    });
    const pressed = world.assistant.press(toStopAction(key), ada);
    await vi.waitFor(async () =>
      expect(await inbox.read([key])).toMatchObject([
        { state: "ending", turn: { end: { kind: "stopped", by: "Ada" } } },
      ]),
    );
    held.resolve();
    expect(await pressed).toEqual({ kind: "done" });
    await world.settled();
    expect(world.platform.replies).toMatchObject([
      { text: "The first words", state: "finished", notices: ["Stopped by Ada."] },
    ]);
  });

  test("before a crash is not undone by the recovery: the reply ends with the notice", async () => {
    const event = message("tell me");
    await world.leaveBegun([event]);
    await world.store.inbox.change({ kind: "stop", of: event.key, by: "Ada", at: 1 });
    await world.recover();
    expect(world.gateway.requests).toEqual([]);
    expect(world.platform.replies).toMatchObject([{ state: "finished", notices: ["Stopped by Ada."] }]);
    expect(await world.store.inbox.open()).toEqual([]);
  });

  test("stores what is shown: a start after a crash shows it, and keeps it as the answer", async () => {
    await growing();
    const [event] = await world.store.inbox.open();
    const { inbox } = world.store;
    const write = inbox.write.bind(inbox);
    // The process ends between storing the end and showing it.
    let isDead = false;
    let isOver = false;
    vi.spyOn(inbox, "write").mockImplementation(async (attempt, what) => {
      if (isDead) throw new ParleyError("store-unavailable", "the process is dead");
      const written = await write(attempt, what);
      if (what.kind === "end" && !isOver) {
        isDead = true;
        throw new ParleyError("store-unavailable", "the process is dead");
      }
      return written;
    });
    const key = event!.event.key;
    await world.assistant.press(toStopAction(key), ada);
    const find = () => world.store.conversations.find("fake:c1", `${key}/answer`);
    const kept = {
      outcome: "interrupted",
      parts: [{ text: "The first words" }],
      notices: ["Stopped by Ada."],
    };
    await vi.waitFor(async () => expect(await find()).toMatchObject(kept));
    isDead = false;
    isOver = true;
    await world.settled();
    expect(world.platform.replies.at(-1)).toMatchObject({
      text: "The first words",
      state: "finished",
      notices: ["Stopped by Ada."],
    });
    expect(world.platform.replies.at(-1)?.actions.map(({ kind }) => kind)).toEqual([
      "regenerate",
      "model",
      "continue",
      "details",
      "good",
      "bad",
    ]);
    expect(await find()).toMatchObject({ ...kept, attempt: 1 });
    expect(world.gateway.requests).toHaveLength(1);
    expect(await world.store.inbox.open()).toEqual([]);
  });

  test("of a summary keeps its words as the answer", async () => {
    await world.store.conversations.append("fake:c1", {
      id: "said",
      role: "user",
      turnKey: "said",
      parts: [{ kind: "text", text: "we meet on Monday" }],
      createdAt: 1,
      estimatedTokens: 4,
    });
    const event = call("summarize", {}, { inConversation: true });
    await world.assistant.receive(event);
    await vi.waitFor(() => expect(world.platform.replies[0]?.text).toBe("The first words"));
    await world.assistant.press(toStopAction(event.key), ada);
    await world.settled();
    const kept = {
      outcome: "interrupted",
      parts: [{ text: "The first words" }],
      notices: ["Stopped by Ada."],
    };
    expect(world.platform.replies).toMatchObject([
      { text: "The first words", state: "finished", notices: ["Stopped by Ada."] },
    ]);
    expect(await world.store.conversations.recent("fake:c1", { maxMessages: 9 })).toMatchObject([
      { id: "said" },
      { role: "user", parts: [{ text: "/summarize" }] },
      { role: "assistant", ...kept, model: "chatty", receipt: { calls: [{ usage: { isEstimated: true } }] } },
    ]);
  });

  test("of a turn that no process runs ends its reply now", async () => {
    const event = message("tell me");
    await world.leaveBegun([event]);
    expect(await world.assistant.press(toStopAction(event.key), ada)).toEqual({ kind: "done" });
    await world.settled();
    expect(world.platform.replies).toMatchObject([{ state: "finished", notices: ["Stopped by Ada."] }]);
  });

  const silently = () =>
    world.gateway.answerWith(async function* silent(_request, signal) {
      await new Promise((_resolve, reject) => {
        signal.addEventListener("abort", () => reject(signal.reason as Error));
      });
      yield { kind: "text", text: "" };
    });

  test("before the first words leaves the notice, and the buttons of an answer", async () => {
    silently();
    const event = message("tell me");
    await world.assistant.receive(event);
    await vi.waitFor(() => expect(world.gateway.requests).toHaveLength(1));
    await world.assistant.press(toStopAction(event.key), ada);
    await world.settled();
    expect(world.platform.replies).toMatchObject([
      { state: "finished", text: "", notices: ["Stopped by Ada."] },
    ]);
    expect(world.platform.replies[0]?.actions.map(({ kind }) => kind)).toContain("regenerate");
  });

  test("of a new attempt in a process that has died shows the earlier answer with its question", async () => {
    world.answerWith("Because.");
    const event = await world.answered(call("ask", { prompt: "why?" }));
    expect(world.platform.replies[0]?.text).toBe("> why?\n\nBecause.");
    const { inbox } = world.store;
    await inbox.change({ kind: "again", of: event.key, reason: "regenerate", isLastOnly: false });
    await beginAgain(inbox, event);
    await inbox.change({ kind: "stop", of: event.key, by: "Ada", at: 1 });
    await world.recover(world.restart());
    expect(world.platform.replies).toMatchObject([
      {
        state: "finished",
        text: "> why?\n\nBecause.",
        notices: ["There is no new answer, so this is the earlier one. Stopped by Ada."],
      },
    ]);
    expect(world.gateway.requests).toHaveLength(1);
  });

  test("of a new attempt before its first words shows the earlier answer again", async () => {
    const key = await growing();
    await world.assistant.press(toStopAction(key), ada);
    await world.settled();
    silently();
    const [regenerate] = world.platform.replies[0]?.actions ?? [];
    await world.assistant.press(regenerate!, ada);
    await vi.waitFor(() => expect(world.gateway.requests).toHaveLength(2));
    await world.assistant.press(toStopAction(key), ada);
    await world.settled();
    expect(world.platform.replies).toMatchObject([
      {
        text: "The first words",
        notices: ["Stopped by Ada.", "There is no new answer, so this is the earlier one. Stopped by Ada."],
      },
    ]);
  });
});

describe("what a stopped answer has used", () => {
  const world = worldOfEachTest({
    prices: { chatty: { inputPerMillionUsd: 100, outputPerMillionUsd: 1000 } },
  });
  const buttons = async (key: string): Promise<readonly string[]> => {
    await world.assistant.press(toStopAction(key), ada);
    await world.settled();
    return world.platform.replies.at(-1)?.actions.map(({ kind }) => kind) ?? [];
  };
  const counted = async () => {
    const day = toUtcDay(world.clock.now());
    const rows = await world.store.spending.usage({ fromDay: day, toDay: day });
    return rows.map(({ costUsd, promptTokens, completionTokens }) => ({
      costUsd,
      promptTokens,
      completionTokens,
    }));
  };
  const shown = async () => {
    const said = await world.store.conversations.recent("fake:c1", { maxMessages: 1 });
    return said.flatMap(({ receipt }) => receipt?.calls.map(({ usage }) => usage) ?? []);
  };

  test("before its first word is what the ledger counts, and it can only be made anew", async () => {
    world.hang("");
    const event = message("tell me");
    await world.assistant.receive(event);
    await vi.waitFor(() => expect(world.gateway.requests).toHaveLength(1));
    expect(await buttons(event.key)).toEqual(["regenerate", "model", "details"]);
    const [usage] = await counted();
    expect(usage!.costUsd).toBeGreaterThan(0);
    expect(await shown()).toEqual([{ ...usage, isEstimated: true }]);
  });

  test("after thoughts and words is what the ledger counts, and so is what its continuation adds", async () => {
    world.gateway.answerWith(async function* (_request, signal) {
      yield { kind: "reasoning", text: "Let me think about that for a while." };
      yield { kind: "text", text: "The first words" };
      await new Promise((_resolve, reject) =>
        signal.addEventListener("abort", () => reject(signal.reason as Error)),
      );
    });
    const event = message("tell me");
    await world.assistant.receive(event);
    await vi.waitFor(() => expect(world.platform.replies.at(-1)?.text).toBe("The first words"));
    expect(await buttons(event.key)).toContain("continue");
    expect(await shown()).toEqual((await counted()).map((usage) => ({ ...usage, isEstimated: true })));
    const before = (await counted())[0]!;
    world.hang(`, and then ${"a long continuation ".repeat(20)}`);
    await world.assistant.press(world.button("continue"), ada);
    await vi.waitFor(() => expect(world.platform.replies.at(-1)?.text).toContain("continuation"));
    await buttons(event.key);
    const [first, second] = await shown();
    const sum = (await counted())[0]!;
    expect(first).toEqual({ ...before, isEstimated: true });
    expect((first?.costUsd ?? 0) + (second?.costUsd ?? 0)).toBeCloseTo(sum.costUsd, 9);
  });

  test("in a stream that breaks off after its first words is what the ledger counts", async () => {
    world.gateway.answerWith(async function* () {
      yield { kind: "text", text: "The first words" };
      throw new Error("the line is cut");
    });
    await world.answered(message("tell me"));
    const [usage] = await counted();
    expect(usage!.costUsd).toBeGreaterThan(0);
    expect(await shown()).toEqual([{ ...usage, isEstimated: true }]);
  });
});
