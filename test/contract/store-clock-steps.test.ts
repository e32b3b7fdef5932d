import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { toOpenTurns } from "../../src/assistant/scheduling/open-turns.ts";
import { openStore, type Store } from "../../src/conversations/open-store.ts";
import { steadyClock } from "../../src/support/steady-clock.ts";
import { silentLog } from "../support/silent-log.ts";
import { eventOf, freshId, messageOf } from "../support/store-samples.ts";
import { describeStores } from "../support/stores.ts";
import { setClockOff } from "../support/clock-off.ts";

const minuteMs = 60_000;
const dayMs = 24 * 60 * minuteMs;

const steps = [
  { step: "11 minutes ahead", ms: 11 * minuteMs },
  { step: "two days ahead", ms: 2 * dayMs },
  { step: "two days behind", ms: -2 * dayMs },
  { step: "in 2099", ms: 73 * 365 * dayMs },
];

describeStores("a store whose process has a clock that steps", (current) => {
  let store: Store;
  beforeEach(async () => {
    store = await openStore(current().url, { log: silentLog, retentionDays: 1 });
  });
  afterEach(async () => {
    setClockOff(0);
    vi.restoreAllMocks();
    await store.close();
  });

  it.each(steps)("$step: still knows answered events, during the step and after it", async ({ ms }) => {
    await store.inbox.accept(eventOf("before"));
    await store.inbox.close(["before"]);
    setClockOff(ms);
    await store.sweep(steadyClock.earliest());
    expect(await store.inbox.accept(eventOf("before"))).toBe("duplicate");
    await store.inbox.accept(eventOf("during"));
    await store.inbox.close(["during"]);
    setClockOff(0);
    await store.sweep(steadyClock.earliest());
    for (const key of ["before", "during"]) expect(await store.inbox.accept(eventOf(key))).toBe("duplicate");
  });

  it.each(steps)("$step: no open turn is too old that has just begun", async ({ ms }) => {
    const isSealed = async () =>
      toOpenTurns(await store.inbox.listOpen(), steadyClock.now()).map((turn) => turn.isSealed ?? false);
    await store.inbox.accept(eventOf("before"));
    setClockOff(ms);
    expect(await isSealed()).toEqual([false]);
    await store.inbox.accept(eventOf("during"));
    setClockOff(0);
    expect(await isSealed()).toEqual([false, false]);
  });

  it.each(steps)("$step: keeps messages, blobs and their order", async ({ ms }) => {
    const id = freshId();
    const { conversations } = store;
    await conversations.append(id, messageOf("1"));
    const { hash } = await conversations.putBlob(id, Buffer.from("a picture"), "image/png");
    setClockOff(ms);
    await store.sweep(steadyClock.earliest());
    await conversations.append(id, messageOf("2"));
    const other = await conversations.putBlob(id, Buffer.from("another"), "image/png");
    setClockOff(0);
    await store.sweep(steadyClock.earliest());
    await conversations.append(id, messageOf("3"));
    const recent = await conversations.recent(id, { maxMessages: 9 });
    expect(recent.map((message) => message.id)).toEqual(["1", "2", "3"]);
    for (const one of [hash, other.hash]) expect(await conversations.getBlob(id, one)).toBeDefined();
  });

  it.each(steps)("$step: lists conversations in the order of their activity", async ({ ms }) => {
    const names = ["a", "b", "c"].map((name) => `test:${name}`);
    for (const [index, off] of [0, ms, 0].entries()) {
      setClockOff(off);
      await store.conversations.append(names[index]!, messageOf(`m${index}`));
      await expect.poll(() => performance.now()).toBeGreaterThan(performance.now());
    }
    const listed = await store.conversations.list("test:", { max: 9 });
    expect(listed.map(({ conversationId }) => conversationId)).toEqual(names.toReversed());
  });

  it.each(steps)(
    "$step: lists open events in the order of acceptance, also after a restart",
    async ({ ms }) => {
      await store.inbox.accept(eventOf("1"));
      setClockOff(ms);
      await store.inbox.accept(eventOf("2"));
      await store.close();
      setClockOff(0);
      // As another process: its clock has never been off.
      store = await openStore(current().url, { log: silentLog });
      await store.inbox.accept(eventOf("3"));
      for (const open of [await store.inbox.listOpen(), await store.inbox.listOpenIn("test:inbox")])
        expect(open.map(({ event }) => event.key)).toEqual(["1", "2", "3"]);
    },
  );

  it.each(steps)("$step: erases answered events of an author", async ({ ms }) => {
    const author = { id: "test:ada", name: "Ada" };
    await store.inbox.accept({ ...eventOf("1"), author, text: "secret" });
    await store.inbox.close(["1"]);
    setClockOff(ms);
    await store.inbox.accept({ ...eventOf("2"), author });
    await store.inbox.close(["2"]);
    await store.erasure.forgetAuthor(undefined, author.id);
    setClockOff(0);
    expect(await store.inbox.lookUp(["1", "2"])).toEqual([]);
  });
});
