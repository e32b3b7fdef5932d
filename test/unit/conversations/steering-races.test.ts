import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { createInbox } from "../../../src/conversations/inbox.ts";
import { createKeyValueStore, type KeyValueStore } from "../../../src/conversations/key-value.ts";
import { openSqliteBackend, type SqliteBackend } from "../../../src/conversations/sql/sqlite.ts";
import type { Attempt, Inbox } from "../../../src/core/inbox.ts";
import { messageIds } from "../../../src/core/message-ids.ts";
import { createKeyedQueue } from "../../../src/support/queues.ts";
import { silentLog } from "../../support/silent-log.ts";
import { eventOf } from "../../support/store-samples.ts";
import {
  againOf,
  answerTurn,
  beginTurn,
  deletionOf,
  editTo,
  endOf,
  stopOf,
} from "../../support/turn-steps.ts";

/** Waits for `meanwhile` before the first write, when everything has been read. */
function withPause(store: KeyValueStore, meanwhile: () => Promise<unknown>): KeyValueStore {
  let isFirst = true;
  const pause = async () => {
    if (!isFirst) return;
    isFirst = false;
    await meanwhile();
  };
  return {
    ...store,
    async write(...args) {
      await pause();
      await store.write(...args);
    },
    async writeIf(...args) {
      await pause();
      return await store.writeIf(...args);
    },
  };
}

const openInbox = (store: KeyValueStore): Inbox =>
  createInbox({ store, log: silentLog, writers: createKeyedQueue(), eraseFiles: () => Promise.resolve() });

describe("two processes that change an accepted message at the same moment", () => {
  let folder: string;
  let backend: SqliteBackend;
  let store: KeyValueStore;
  let inbox: Inbox;
  beforeEach(async () => {
    folder = await mkdtemp(join(tmpdir(), "parley-races-"));
    backend = openSqliteBackend(join(folder, "parley.db"));
    store = createKeyValueStore(backend);
    inbox = openInbox(store);
  });
  afterEach(async () => {
    await backend.close();
    await rm(folder, { recursive: true });
  });

  const attempt: Attempt = { key: "a", attempt: 1, conversationId: "test:1" };
  const events = [eventOf("a", "test:1"), { ...eventOf("b", "test:1"), text: "the earlier words" }];
  const recordOf = async (key: string) => (await inbox.read([key]))[0];
  const edit = (one: Inbox) => one.change(editTo("b", "the new words"));
  const remove = (one: Inbox) => one.change(deletionOf("b"));

  async function accept(): Promise<void> {
    for (const event of events) await inbox.accept(event);
  }
  async function begin(): Promise<void> {
    await accept();
    await beginTurn(inbox, ["a", "b"]);
  }
  const answer = () => answerTurn(inbox, events);
  /** Returns all that is stored of `a` and `b`. */
  async function stored(): Promise<string> {
    const records = await store.getMany("inbox", ["a", "b"]);
    const slots = await store.getMany(
      "slot",
      [0, 1, 2].map((position) => `test:1/${String(position).padStart(10, "0")}`),
    );
    return JSON.stringify([records, slots]);
  }

  /** What one process does with a turn, from where, while another one edits or deletes `b`. */
  const works: Readonly<
    Record<string, { readonly from: () => Promise<unknown>; readonly run: (one: Inbox) => Promise<unknown> }>
  > = {
    // The records are read before the other process changes them, and then once more.
    begin: {
      from: accept,
      run: (one) => beginTurn(one, ["a", "b"]).catch(() => beginTurn(one, ["a"])),
    },
    "begin again": { from: begin, run: (one) => beginTurn(one, ["a"]).catch(() => beginTurn(one, ["a"])) },
    address: { from: begin, run: (one) => one.write(attempt, { kind: "address", address: {}, shownAs: [] }) },
    end: { from: begin, run: (one) => one.write(attempt, endOf(attempt, "the answer")) },
    "ask again": { from: answer, run: (one) => one.change(againOf("a", { attempt: 1 })) },
    retry: { from: answer, run: (one) => one.change(againOf("a", { reason: "retry", isLastOnly: false })) },
    stop: { from: begin, run: (one) => one.change(stopOf("a")) },
    "give back": { from: begin, run: (one) => one.write(attempt, { kind: "give-back" }) },
  };

  describe.each(Object.entries(works))("%s", (_, { from, run }) => {
    it("loses no edit that was taken in meanwhile", async () => {
      await from();
      await run(openInbox(withPause(store, () => edit(inbox))));
      expect(await stored()).toContain("the new words");
      expect(await stored()).not.toContain("the earlier words");
    });

    it("brings nothing back that was erased meanwhile", async () => {
      await from();
      await run(openInbox(withPause(store, () => remove(inbox))));
      expect(await recordOf("b")).toMatchObject({ state: "erased" });
      expect(await stored()).not.toContain("the earlier words");
    });
  });

  it("a turn is run again as it is, although one of its events is deleted meanwhile", async () => {
    await answer();
    const other = openInbox(withPause(store, () => remove(inbox)));
    expect(await other.change(againOf("a"))).toMatchObject({
      result: "done",
      turn: { turn: { keys: ["a"] } },
    });
  });

  it("an edit brings nothing back that was erased meanwhile", async () => {
    await answer();
    expect(await edit(openInbox(withPause(store, () => remove(inbox))))).toMatchObject({ result: "unknown" });
    expect(await stored()).not.toContain("words");
  });

  it("an edit of a message that is answered meanwhile opens its turn again as answered", async () => {
    await begin();
    const other = openInbox(
      withPause(store, async () => {
        await inbox.write(attempt, endOf(attempt, "the answer"));
        await inbox.write(attempt, { kind: "close" });
      }),
    );
    expect(await edit(other)).toMatchObject({ result: "done" });
    expect(await recordOf("a")).toMatchObject({
      state: "open",
      turn: { keys: ["a", "b"], attempt: 1, since: 1, again: { kind: "edit" } },
    });
    expect((await inbox.openIn("test:1")).map(({ event }) => event.key)).toEqual(["a"]);
  });

  it("an edit fences the attempts that were begun meanwhile", async () => {
    await answer();
    const other = openInbox(
      withPause(store, async () => {
        expect(await inbox.change(againOf("a"))).toMatchObject({ result: "done" });
        expect(await beginTurn(inbox, ["a"])).toMatchObject({ attempt: 2 });
      }),
    );
    expect(await edit(other)).toMatchObject({ result: "done" });
    expect(await recordOf("a")).toMatchObject({ turn: { attempt: 2, since: 2, again: { kind: "edit" } } });
  });

  it("a turn that is the last no more by then is not run again", async () => {
    await answer();
    const next = { ...eventOf("c", "test:1"), attachments: [{ id: "f", name: "f", source: {} }] };
    const later = async () => {
      await inbox.accept(next);
      await beginTurn(inbox, ["c"], { isAsked: false });
    };
    const other = openInbox(withPause(store, later));
    expect(await other.change(againOf("a"))).toMatchObject({ result: "not-last" });
    expect(await edit(inbox)).toMatchObject({ result: "done" });
    expect(await recordOf("a")).toMatchObject({ state: "over" });
  });

  it("an answer that is deleted meanwhile is not brought back by the end of its turn", async () => {
    await answer();
    await inbox.change(againOf("a"));
    const again = await beginTurn(inbox, ["a"]);
    const at = { space: "id", key: `test:1/${messageIds.answer("a")}` } as const;
    const [position] = await store.getMany<number>("id", [at.key]);
    const slot = { space: "slot", key: `test:1/${String(position).padStart(10, "0")}` } as const;
    const erased = { forgotten: true, id: messageIds.answer("a") };
    const other = openInbox(withPause(store, () => store.write([{ kind: "set", at: slot, value: erased }])));
    expect(await other.write(again, endOf(again, "the second answer", { earlier: "version" }))).toEqual({
      isWritten: true,
    });
    expect(await stored()).not.toContain("the second answer");
  });
});
