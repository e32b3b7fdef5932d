import { beforeEach, describe, expect, it } from "vitest";
import { effects, type Phase } from "../../src/conversations/inbox-transitions.ts";
import type { Store } from "../../src/conversations/open-store.ts";
import type { Change, Inbox } from "../../src/core/inbox.ts";
import { messageIds } from "../../src/core/message-ids.ts";
import { eventOf } from "../support/store-samples.ts";
import { describeStores } from "../support/stores.ts";
import {
  againOf,
  answerTurn,
  beginTurn,
  callOf,
  deletionOf,
  editTo,
  endOf,
  openKeys,
  questionOf,
  stopOf,
  wordsOf,
} from "../support/turn-steps.ts";

/** Each event has a conversation of its own, so that its turn is the last one of it. */
const conversationOf = (key: string): string => `test:${key}`;
const newEvent = (key: string) => ({ ...eventOf(key, conversationOf(key)), text: "old words" });
const newCall = (key: string) => callOf(key, conversationOf(key), "old words");
const attemptOf = (key: string, attempt = 1) => ({ key, attempt, conversationId: conversationOf(key) });

type Step = (inbox: Inbox, key: string) => Promise<unknown>;

/** What leads to each phase. */
const phases: Readonly<Record<Phase, Step>> = {
  absent: () => Promise.resolve(),
  waiting: (inbox, key) => inbox.accept(newEvent(key)),
  async begun(inbox, key) {
    await inbox.accept(newEvent(key));
    await beginTurn(inbox, [key]);
  },
  async ending(inbox, key) {
    await phases.begun(inbox, key);
    await inbox.write(attemptOf(key), endOf(attemptOf(key), "the answer"));
  },
  over: (inbox, key) => answerTurn(inbox, [newEvent(key)]),
  async erased(inbox, key) {
    await inbox.accept(newEvent(key));
    await inbox.change(deletionOf(key));
  },
};

/** What leads to each moment at which two steps meet. */
const moments: Readonly<Record<string, Step>> = {
  ...phases,
  async "begun, with files to be read"(inbox, key) {
    await inbox.accept(newEvent(key));
    await beginTurn(inbox, [key], { isAsked: false });
  },
};

const phaseNames = Object.keys(phases) as readonly Phase[];

const changes: Readonly<Record<Change["kind"], (key: string) => Change>> = {
  edit: (key) => editTo(key, "new words"),
  delete: deletionOf,
  stop: (key) => stopOf(key),
  again: (key) => againOf(key),
};

/** What is known of an event, in words: its state, why its turn is open or ends, and where its words are. */
async function seenOf({ inbox, conversations }: Store, key: string): Promise<string> {
  const [record] = await inbox.read([key]);
  if (record === undefined) return "absent";
  const { event, state, turn } = record;
  const question = await conversations.find(conversationOf(key), messageIds.user(key));
  const answer = await conversations.find(conversationOf(key), messageIds.answer(key));
  const inRecord = wordsOf(event);
  const inLog = (question?.parts ?? []).map((part) => ("text" in part ? part.text : "")).join("");
  const isFenced = turn !== undefined && turn.attempt > 0 && turn.since >= turn.attempt;
  const isListed = (await openKeys(inbox)).includes(key);
  expect(isListed, key).toBe(state === "open" || state === "ending");
  expect(await openKeys(inbox, conversationOf(key)), key).toEqual(isListed ? [key] : []);
  // Words have one home, and nothing that is over has any.
  if (event.kind === "message") expect([inRecord, inLog], key).toContain("");
  if (state === "over" || state === "erased") expect(inRecord, key).toBe("");
  return [
    state,
    turn === undefined ? undefined : `attempt ${turn.attempt}`,
    isFenced ? `again: ${turn.again?.kind ?? "given back"}` : undefined,
    turn?.end === undefined ? undefined : `${turn.end.kind}${turn.end.isStored ? "" : ", not stored"}`,
    inRecord === "" ? undefined : `${inRecord} in the record`,
    inLog === "" ? undefined : `${inLog} in the log`,
    answer === undefined ? undefined : "answered",
  ]
    .filter((part) => part !== undefined)
    .join("; ");
}

/** The table, read aloud: each change in each phase, with its result and what is known afterwards. */
const aloud: Readonly<Record<Change["kind"], Readonly<Record<Phase, readonly [string, string]>>>> = {
  edit: {
    absent: ["unknown", "absent"],
    waiting: ["done", "open; new words in the record"],
    begun: ["done", "open; attempt 1; again: edit; new words in the log"],
    ending: ["done", "open; attempt 1; again: edit; new words in the log; answered"],
    over: ["done", "open; attempt 1; again: edit; new words in the log; answered"],
    erased: ["unknown", "erased"],
  },
  delete: {
    absent: ["done", "erased"],
    waiting: ["done", "erased"],
    begun: ["done", "ending; attempt 1; withdrawn, not stored"],
    ending: ["done", "ending; attempt 1; answer; answered"],
    over: ["done", "erased; answered"],
    erased: ["unknown", "erased"],
  },
  stop: {
    absent: ["ended", "absent"],
    waiting: ["done", "erased"],
    begun: ["done", "ending; attempt 1; stopped, not stored; old words in the log"],
    ending: ["ended", "ending; attempt 1; answer; old words in the log; answered"],
    over: ["ended", "over; attempt 1; answer; old words in the log; answered"],
    erased: ["ended", "erased"],
  },
  again: {
    absent: ["gone", "absent"],
    waiting: ["under-way", "open; old words in the record"],
    begun: ["under-way", "open; attempt 1; old words in the log"],
    ending: ["done", "open; attempt 1; again: regenerate; old words in the log; answered"],
    over: ["done", "open; attempt 1; again: regenerate; old words in the log; answered"],
    erased: ["gone", "erased"],
  },
};

/** The question goes into the log with the end, if it is not there. */
const asking = (key: string) => ({ questions: [questionOf(newEvent(key))] });

/** Everything that is done with an event. Runs are of its first attempt. */
const steps: Readonly<Record<string, Step>> = {
  accept: (inbox, key) => inbox.accept(newEvent(key)),
  refuse: (inbox, key) => inbox.refuse(key),
  async begin(inbox, key) {
    for (;;) {
      const [record] = await inbox.read([key]);
      if (record === undefined || !["open", "ending"].includes(record.state)) return undefined;
      // Whoever holds the conversation looks again where somebody was faster.
      const begun = await beginTurn(inbox, [key]).catch(() => undefined);
      if (begun !== undefined) return begun;
    }
  },
  ask: (inbox, key) => inbox.write(attemptOf(key), { kind: "asked", messages: [questionOf(newEvent(key))] }),
  address: (inbox, key) => inbox.write(attemptOf(key), { kind: "address", address: { at: 1 }, shownAs: [] }),
  end: (inbox, key) => inbox.write(attemptOf(key), endOf(attemptOf(key), "the answer", asking(key))),
  "end as stopped": (inbox, key) =>
    inbox.write(
      attemptOf(key),
      endOf(attemptOf(key), "the words so far", { kind: "stopped", ...asking(key) }),
    ),
  close: (inbox, key) => inbox.write(attemptOf(key), { kind: "close" }),
  "give back": (inbox, key) => inbox.write(attemptOf(key), { kind: "give-back" }),
  ...Object.fromEntries(
    Object.entries(changes).map(([name, toChange]): [string, Step] => [
      name,
      (inbox, key) => inbox.change(toChange(key)),
    ]),
  ),
};

/** Only one of two processes gets these, and what it gets. */
const exclusive: Readonly<Record<string, (result: unknown) => boolean>> = {
  accept: (result) => result === "accepted",
  refuse: (result) => result === "refused",
  again: (result) => (result as { readonly result: string }).result === "done",
};

describeStores("what becomes of an accepted event", (current, kind) => {
  let one: Store;
  let other: Store;
  beforeEach(async () => {
    one = await current().open();
    // SQLite belongs to one process, which may do two things at once as well.
    other = kind === "sqlite" ? one : await current().open();
  });

  it("is decided for each change in each phase", () => {
    for (const [change, row] of Object.entries(effects))
      expect(Object.keys(row), change).toEqual(Object.keys(aloud[change as Change["kind"]]));
    expect(Object.keys(effects)).toEqual(Object.keys(aloud));
  });

  describe.each(Object.keys(changes) as Change["kind"][])("by a change: %s", (name) => {
    it.each(phaseNames)("%s", async (phase) => {
      const key = `${phase} ${name}`;
      const [result, seen] = aloud[name][phase];
      await phases[phase](one.inbox, key);
      expect(await one.inbox.change(changes[name](key))).toMatchObject({ result });
      expect(await seenOf(one, key)).toBe(seen);
      expect(await seenOf(other, key)).toBe(seen);
    });

    it.each(phaseNames)("%s, and once more, as after a response that was lost", async (phase) => {
      const key = `${phase} ${name} twice`;
      await phases[phase](one.inbox, key);
      await one.inbox.change(changes[name](key));
      const seen = await seenOf(one, key);
      await one.inbox.change(changes[name](key));
      expect(await seenOf(one, key)).toBe(seen);
    });
  });

  it("depends on what came after it: an edit, or a press, of a turn that is not the last", async () => {
    for (const key of ["ending", "over"] as const) {
      await phases[key](one.inbox, key);
      const later = { ...eventOf(`after ${key}`, conversationOf(key)), text: "a later question" };
      await answerTurn(one.inbox, [later]);
      expect(await one.inbox.change(againOf(key))).toMatchObject({ result: "not-last" });
      expect(await one.inbox.change(editTo(key, "new words"))).toMatchObject({ result: "done" });
      expect(await seenOf(one, key)).toBe(`${key}; attempt 1; answer; new words in the log; answered`);
      expect(await one.inbox.change(againOf(key, { reason: "retry", isLastOnly: false }))).toMatchObject({
        result: "done",
      });
    }
  });

  it("depends on which attempt has the button, and on whether the edit asks", async () => {
    await phases.over(one.inbox, "a");
    expect(await one.inbox.change(againOf("a", { attempt: 2 }))).toMatchObject({ result: "outdated" });
    expect(await one.inbox.change({ ...editTo("a", "new words"), isAsked: false })).toMatchObject({
      result: "done",
    });
    expect(await seenOf(one, "a")).toBe("over; attempt 1; answer; new words in the log; answered");
    expect(await one.inbox.change(editTo("a", "late words", 4000))).toMatchObject({ result: "unchanged" });
    expect(await one.inbox.change(againOf("a", { attempt: 1 }))).toMatchObject({ result: "done" });
    expect(await one.inbox.change(againOf("a", { attempt: 1 }))).toMatchObject({ result: "under-way" });
  });

  it("depends on whether an edit was made before the stop, though it came after it", async () => {
    for (const [key, at] of [
      ["before", 8000],
      ["after", 9500],
    ] as const) {
      await phases.begun(one.inbox, key);
      await one.inbox.change(stopOf(key, 9000));
      await one.inbox.change(editTo(key, "new words", at));
    }
    expect(await seenOf(one, "before")).toBe("ending; attempt 1; stopped, not stored; new words in the log");
    expect(await seenOf(one, "after")).toBe("open; attempt 1; again: edit; new words in the log");
  });

  it("is that a command which asks its person is confirmed once, although its attempt is not over", async () => {
    await one.inbox.accept(newCall("a"));
    await beginTurn(one.inbox, ["a"]);
    const confirm = againOf("a", { reason: "confirm", isLastOnly: false });
    expect(await one.inbox.change(confirm)).toMatchObject({ result: "done" });
    expect(await one.inbox.change(confirm)).toMatchObject({ result: "under-way" });
    expect((await one.inbox.read(["a"]))[0]?.turn).toMatchObject({ since: 1, again: { kind: "confirm" } });
  });

  it("is that a call which waits has a reply to end, and that an edit of it waits for its end", async () => {
    await one.inbox.accept(newCall("stopped"));
    await one.inbox.change(stopOf("stopped"));
    expect(await seenOf(one, "stopped")).toBe(
      "ending; attempt 0; stopped, not stored; old words in the record",
    );
    await one.inbox.accept(newCall("edited"));
    await beginTurn(one.inbox, ["edited"]);
    await one.inbox.change(editTo("edited", "new words"));
    expect(await seenOf(one, "edited")).toBe(
      "open; attempt 1; old words in the record; old words in the log",
    );
    expect((await one.inbox.read(["edited"]))[0]?.event).toMatchObject({ editedTo: { text: "new words" } });
  });

  describe.each(Object.keys(moments))("by two steps at once is as by one after the other: %s", (moment) => {
    it.each(Object.keys(steps).map((name, index) => [name, index] as const))("%s", async (first, index) => {
      const a = steps[first]!;
      const pairs = Object.entries(steps).slice(index);
      await Promise.all(
        pairs.map(async ([second, b]) => {
          const name = `${moment}, ${first}, ${second}`;
          const runs = { ab: `${name}, ab`, ba: `${name}, ba`, both: name };
          for (const key of Object.values(runs)) await moments[moment]!(one.inbox, key);
          for (const step of [a, b]) await step(one.inbox, runs.ab);
          for (const step of [b, a]) await step(one.inbox, runs.ba);
          const results = await Promise.all([a(one.inbox, name), b(other.inbox, name)]);
          const orders = [await seenOf(one, runs.ab), await seenOf(one, runs.ba)];
          expect(orders, name).toContain(await seenOf(other, name));
          const wins = first === second ? exclusive[first] : undefined;
          if (wins !== undefined) expect(results.filter(wins).length, name).toBeLessThanOrEqual(1);
        }),
      );
    });
  });
});
