import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { Backend, EntryReader } from "../../../src/conversations/backend.ts";
import { createBlobEntries } from "../../../src/conversations/blob-entries.ts";
import { createConversationLog } from "../../../src/conversations/conversation-log.ts";
import { createErasure } from "../../../src/conversations/erasure.ts";
import { createSpendingLedger } from "../../../src/conversations/spending-ledger.ts";
import { createInbox } from "../../../src/conversations/inbox.ts";
import { createKeyValueStore } from "../../../src/conversations/key-value.ts";
import { sweep } from "../../../src/conversations/retention.ts";
import { openSqliteBackend, type SqliteBackend } from "../../../src/conversations/sqlite/sqlite-backend.ts";
import { indexes } from "../../../src/conversations/store-keys.ts";
import { charsOf, maxRecentChars } from "../../../src/core/stored-text.ts";
import { createKeyedQueue } from "../../../src/support/keyed-queue.ts";
import { silentLog } from "../../support/silent-log.ts";
import { eventOf, messageOf } from "../../support/store-samples.ts";

const dayMs = 24 * 60 * 60 * 1000;

let folder: string;
const opened: SqliteBackend[] = [];
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "parley-cost-"));
});
afterEach(async () => {
  for (const backend of opened.splice(0)) await backend.close();
  await rm(folder, { recursive: true });
});

/** A store that counts the entries and index members it reads, and that cannot list the keys of a space. */
function openCountingStore() {
  const sqlite = openSqliteBackend(join(folder, `${opened.length}.db`));
  opened.push(sqlite);
  const read = { count: 0 };
  const toReader = (reader: EntryReader): EntryReader => ({
    get(key) {
      read.count++;
      return reader.get(key);
    },
    getMany(keys) {
      read.count += keys.length;
      return reader.getMany(keys);
    },
    hasMany(keys) {
      read.count += keys.length;
      return reader.hasMany(keys);
    },
  });
  const backend: Backend = {
    ...sqlite,
    reader: (space) => toReader(sqlite.reader(space)),
    async readIndex(name, page) {
      const members = await sqlite.readIndex(name, page);
      read.count += members.length;
      return members;
    },
    keys() {
      throw new Error("a walk through the whole store");
    },
  };
  const store = createKeyValueStore(backend);
  const writers = createKeyedQueue();
  const blobs = createBlobEntries(store);
  const spending = createSpendingLedger({ store, reserveTtlMs: 900_000 });
  return {
    read,
    store,
    blobs,
    inbox: createInbox({
      store,
      log: silentLog,
      isShared: true,
      isOpenToOthers: true,
      retentionMs: 30 * dayMs,
    }),
    conversations: createConversationLog({ store, blobs, writers, log: silentLog }),
    erasure: createErasure({ store, blobs, writers, spending }),
  };
}

type CountingStore = ReturnType<typeof openCountingStore>;

/** A conversation with an open and an answered event. */
async function fill({ inbox, conversations }: CountingStore, name: string, authorId: string) {
  const id = `test:${name}`;
  const author = { id: authorId, name: "A" };
  await conversations.append(id, { ...messageOf(`${name}/1`), author });
  await conversations.saveSettings(id, { within: [`test:guild-of-${authorId}`] });
  for (const key of [`${name}/open`, `${name}/answered`]) await inbox.accept({ ...eventOf(key, id), author });
  await inbox.close([`${name}/answered`]);
}

describe("a history of long files", () => {
  it("is read up to a bound of characters, few messages at once", async () => {
    const { conversations, read } = openCountingStore();
    const text = "x".repeat(10_000);
    for (let n = 0; n < 60; n++) await conversations.append("test:long", messageOf(`m${n}`, text));
    read.count = 0;
    const recent = await conversations.recent("test:long", { maxMessages: 201, maxChars: 100_000 });
    // With the oldest of them there are more characters than that, which tells that there is more.
    expect(recent.map(({ id }) => id)).toEqual(Array.from({ length: 11 }, (_, n) => `m${n + 49}`));
    expect(read.count).toBeLessThan(25);
    const all = await conversations.recent("test:long", { maxMessages: 201 });
    expect(all.map(({ id }) => id)).toEqual(Array.from({ length: 60 }, (_, n) => `m${n}`));
  });

  it("has a bound where nobody asks for one, and lets others have their turn in between", async () => {
    const { conversations } = openCountingStore();
    const text = "x".repeat(400_000);
    for (let n = 0; n < 40; n++) await conversations.append("test:long", messageOf(`m${n}`, text));
    let turns = 0;
    const count = (): void => {
      turns += 1;
      next = setImmediate(count);
    };
    let next = setImmediate(count);
    const recent = await conversations.recent("test:long", { maxMessages: 201 });
    clearImmediate(next);
    expect(recent).toHaveLength(maxRecentChars / 400_000 + 1);
    expect(charsOf(recent)).toBeGreaterThan(maxRecentChars);
    expect(turns).toBeGreaterThan(0);
  });
});

describe("what serves a request reads nothing of other people", () => {
  const requests: Record<string, (store: CountingStore) => Promise<unknown>> = {
    "open events of a conversation": ({ inbox }) => inbox.listOpenIn("test:anns"),
    "conversations of a place": ({ conversations }) => conversations.listWithin("test:guild-of-ann"),
    "which of some conversations exist": ({ conversations }) =>
      conversations.existing(["test:anns", "test:unknown"]),
    "counting an author's messages": ({ erasure }) => erasure.countAuthor(undefined, "ann"),
    "forgetting an author": ({ erasure }) => erasure.forgetAuthor(undefined, "ann"),
    "deleting a conversation": ({ erasure }) => erasure.deleteConversation("test:anns"),
  };

  const costOf = async (request: (store: CountingStore) => Promise<unknown>, others: number) => {
    const store = openCountingStore();
    await fill(store, "anns", "ann");
    for (let n = 0; n < others; n++) await fill(store, `others-${n}`, `other-${n}`);
    store.read.count = 0;
    await request(store);
    return store.read.count;
  };

  it.each(Object.entries(requests))("%s", async (_, request) => {
    const cost = await costOf(request, 3);
    expect(cost).toBeGreaterThan(0);
    expect(await costOf(request, 30)).toBe(cost);
  });
});

describe("indexes of answered events", () => {
  it("are removed when their events have expired", async () => {
    const store = openCountingStore();
    await fill(store, "anns", "ann");
    const names = [
      indexes.answeredEventsIn("test:anns"),
      indexes.answeredEventsBy("ann"),
      indexes.expiringIndexes,
    ];
    const sizeOf = async (index: string) =>
      (await store.store.backend.readIndex(index, { order: "lowest-first", offset: 0, max: 9 })).length;
    await sweep(store.store, store.blobs, Date.now());
    expect(await Promise.all(names.map(sizeOf))).toEqual([1, 1, 2]);
    await sweep(store.store, store.blobs, Date.now() + 2 * dayMs);
    expect(await Promise.all(names.map(sizeOf))).toEqual([1, 1, 2]);
    await sweep(store.store, store.blobs, Date.now() + 31 * dayMs);
    expect(await Promise.all(names.map(sizeOf))).toEqual([0, 0, 0]);
    expect(await store.inbox.listOpenIn("test:anns")).toHaveLength(1);
  });
});
