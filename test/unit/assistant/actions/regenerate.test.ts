import { beforeEach, describe, expect, test, vi } from "vitest";
import { ParleyError } from "../../../../src/core/errors.ts";
import type { FinishReason } from "../../../../src/core/gateway.ts";
import type { ReplyActionKind } from "../../../../src/core/press.ts";
import { fixture } from "../../../fixtures/fixtures.ts";
import { ada, bo, call, message, said } from "../../../support/fakes.ts";
import { beginAgain, leaveEnded } from "../../../support/left-turns.ts";
import { worldOfEachTest } from "../../../support/world-of-each-test.ts";

describe("Regenerate", () => {
  const world = worldOfEachTest();
  beforeEach(() => {
    world.gateway.answerWith(async function* answer(request) {
      yield { kind: "text", text: `answer ${world.gateway.requests.length}` };
      yield { kind: "finish", reason: "stop", model: request.model, usage: { isEstimated: true } };
    });
  });

  const log = async () =>
    (await world.history.history("fake:c1", { maxMessages: 20 })).map(({ parts }) =>
      parts.map((part) => (part.kind === "text" ? part.text : part.kind)).join(),
    );

  test("of a batch asks for all its messages again, and of a command in its own conversation too", async () => {
    await world.leaveBegun([message("first", { key: "fake:b1" }), message("second", { key: "fake:b2" })]);
    await world.recover();
    await world.assistant.press(world.button("regenerate"), ada);
    await world.settled();
    expect(said(world.gateway.requests[1]).slice(1)).toEqual(["user: first", "user: second"]);
    await world.answered(call("ask", { prompt: "why?" }));
    await world.assistant.press(world.button("regenerate"), ada);
    await world.settled();
    expect(world.platform.replies.at(-1)).toMatchObject({ text: "> why?\n\nanswer 4", state: "finished" });
  });

  test("keeps the earlier answer where the new attempt fails, and says why", async () => {
    await world.ask("one");
    world.gateway.answerWith(async function* broken() {
      yield { kind: "text", text: "half of" };
      throw new ParleyError("gateway-unreachable", "gone");
    });
    await world.assistant.press(world.button("regenerate"), ada);
    await world.settled();
    const [reply] = world.platform.replies;
    expect(reply).toMatchObject({ text: "answer 1", state: "finished" });
    expect(reply?.notices).toEqual([
      "There is no new answer, so this is the earlier one. The model gateway cannot be reached. Try again in a moment.",
    ]);
    expect(await log()).toEqual(["one", "answer 1"]);
    expect(await world.assistant.press(world.button("regenerate"), ada)).toEqual({ kind: "done" });
    await world.settled();
  });

  test("of a command that cannot run any more keeps its answer", async () => {
    await world.answered(call("ask", { prompt: "why?", model: "chatty" }));
    world.gateway.answerWith(async function* refused(request) {
      if (request.messages.length > 0) throw new ParleyError("model-not-allowed", "not any more");
      yield { kind: "text", text: "" };
    });
    expect(await world.assistant.press(world.button("regenerate"), ada)).toEqual({ kind: "done" });
    await world.settled();
    expect(world.platform.replies[0]).toMatchObject({ text: "> why?\n\nanswer 1", state: "finished" });
    expect(world.platform.replies[0]?.notices[0]).toContain("There is no new answer");
  });

  test("that was asked for before a crash runs after it, into the same reply, once", async () => {
    await world.ask("one");
    const key = world.button("details").key.replace(/.* |\/answer$/g, "");
    const again = (attempt: number) =>
      world.store.inbox.change({
        kind: "again",
        of: key,
        reason: "regenerate",
        attempt,
        isLastOnly: true,
      });
    expect(await again(1)).toMatchObject({ result: "done" });
    const after = world.restart();
    await world.recover(after);
    expect(world.platform.replies).toMatchObject([{ text: "answer 2", state: "finished" }]);
    // It was killed between the answer and the end of the turn. The answer is shown, and nothing is asked.
    expect(await again(2)).toMatchObject({ result: "done" });
    await beginAgain(world.store.inbox, message("one", { key }));
    await leaveEnded(world.store.inbox, message("one", { key }));
    await world.recover(after);
    expect(world.platform.replies).toMatchObject([{ text: "stored before the crash", state: "finished" }]);
    expect(world.gateway.requests).toHaveLength(2);
    expect(await log()).toEqual(["one", "stored before the crash"]);
  });

  test("works for a week; of an earlier answer it says that there are later ones", async () => {
    const dayMs = 24 * 60 * 60_000;
    await world.ask("one");
    const earlier = world.button("regenerate");
    await world.ask("two");
    await world.store.sweep(Date.now() + 6.9 * dayMs);
    expect(await world.assistant.press(earlier, ada)).toEqual({
      kind: "told",
      markdown:
        "The conversation has gone on since this answer. Only the last answer of a conversation can be changed.",
    });
    expect(await world.assistant.press(world.button("regenerate"), ada)).toEqual({ kind: "done" });
    await world.settled();
    expect(world.platform.replies).toMatchObject([{ text: "answer 1" }, { text: "answer 3" }]);
    await world.store.sweep(Date.now() + 7.1 * dayMs);
    expect(await world.assistant.press(world.button("regenerate"), ada)).toEqual({
      kind: "told",
      markdown: "This answer is too old for that. Please ask again.",
    });
    expect(await log()).toEqual(["one", "answer 1", "two", "answer 3"]);
  });

  test("counts like any request", async () => {
    await world.renew({ spending: { turnsPersonMinute: 2 } });
    await world.ask("one");
    await world.assistant.press(world.button("regenerate"), ada);
    await world.settled();
    await expect(world.assistant.press(world.button("regenerate"), ada)).rejects.toMatchObject({
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
    expect(await world.assistant.press(world.button("continue"), ada)).toEqual({ kind: "done" });
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
    expect(request).toMatch(/^user: .*broke off.*\n\nOne two thr$/s);
    await pressed();
    expect(world.platform.replies).toMatchObject([{ text: "One two three four five.", notices: [] }]);
    expect(world.platform.replies[0]?.actions.map(({ kind }) => kind)).toEqual([
      "regenerate",
      "model",
      "details",
      "good",
      "bad",
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
    const told = await world.assistant.press(world.button("details"), ada);
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
    await world.assistant.press(world.button("continue"), ada);
    await vi.waitFor(() => expect(world.gateway.requests).toHaveLength(2));
    await world.assistant.press({ kind: "stop", key: "fake:c1" }, ada);
    await world.settled();
    expect(world.platform.replies[0]).toMatchObject({ text: "One two three", notices: ["Stopped."] });
  });

  test("of an answer that is complete is refused", async () => {
    answers(["One two", "length"], [" three", "stop"]);
    await world.ask("Count.");
    const before = world.button("continue");
    await pressed();
    const told = await world.assistant.press(before, ada);
    expect(told).toMatchObject({
      kind: "told",
      markdown: expect.stringContaining("earlier attempt") as string,
    });
    const { key } = world.button("regenerate");
    expect(await world.assistant.press({ kind: "continue", key }, ada)).toEqual({
      kind: "told",
      markdown: "This answer is complete.",
    });
  });
});

describe.each<[ReplyActionKind, Readonly<Record<string, string>>?, Readonly<Record<string, string>>?]>([
  ["regenerate"],
  ["model", { model: "large" }, { model: "small" }],
  ["transcript", { "words-1": "one" }, { "words-1": "two" }],
])("the button %s", (kind, values, others) => {
  const chats = { chats: true } as const;
  const models = ["usual", "large", "small"].map((id) => ({ id, capabilities: chats }));
  const listener = { id: "listener", capabilities: { transcribes: true } };
  const world = worldOfEachTest(async () => ({
    models: [...models, listener],
    files: { voice: await fixture("voice.ogg") },
  }));
  const moderator = { ...bo, origin: { user: "fake:user:bo", isMember: true, isManager: true } };
  const told = (words: string) => ({ kind: "told", markdown: expect.stringContaining(words) as string });

  function ask(): Promise<unknown> {
    return world.ask("", { attachments: [{ id: "voice", name: "voice.ogg", source: null }] });
  }
  /** Presses the button. Where it opens a form, the form is submitted at once. */
  const press = (by = ada, action = world.button(kind), submitted = values) =>
    world.assistant.press({ ...action, ...(submitted === undefined ? {} : { values: submitted }) }, by);

  test("is refused to bystanders and open to moderators, on the last attempt of the last answer alone", async () => {
    await ask();
    const first = world.button(kind);
    for (const use of [{}, { values: values ?? {} }])
      await expect(world.assistant.press({ ...first, ...use }, bo)).rejects.toMatchObject({
        code: "not-permitted",
        detail: { problem: "Only the person who asked, or a moderator, can do this." },
      });
    expect(await press(moderator)).toEqual({ kind: "done" });
    await world.settled();
    expect(await press(ada, first, others)).toEqual(told("earlier attempt"));
    const second = world.button(kind);
    await ask();
    expect(await press(ada, second, others)).toEqual(told("last answer"));
    // What waits behind the last answer comes after its new form.
    await world.store.inbox.accept(message("waits"));
    expect(await press()).toEqual({ kind: "done" });
    await world.settled();
    expect(world.gateway.requests).toHaveLength(5);
    expect((await world.history.history("fake:c1", { maxMessages: 20 })).at(-2)?.parts).toMatchObject([
      { text: "waits" },
    ]);
  });

  test("pressed twice runs once", async () => {
    await ask();
    const action = world.button(kind);
    const results = await world.passingTime(Promise.all([press(ada, action), press(ada, action, others)]));
    expect(results.map((result) => result.kind).toSorted()).toEqual(["done", "told"]);
    await world.settled();
    expect(world.gateway.requests).toHaveLength(2);
  });
});
