import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { Backend } from "../../../src/conversations/backend.ts";
import { createBlobEntries } from "../../../src/conversations/blobs.ts";
import { createConversationLog } from "../../../src/conversations/conversation-log.ts";
import { createKeyValueStore } from "../../../src/conversations/key-value.ts";
import { openSqliteBackend, type SqliteBackend } from "../../../src/conversations/sql/sqlite.ts";
import { charsOf, maxRecentChars } from "../../../src/core/storage.ts";
import { createKeyedQueue } from "../../../src/support/queues.ts";
import { messageOf } from "../../support/store-samples.ts";

let folder: string;
let sqlite: SqliteBackend;
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "parley-bounds-"));
  sqlite = openSqliteBackend(join(folder, "parley.db"));
});
afterEach(async () => {
  await sqlite.close();
  await rm(folder, { recursive: true });
});

/** Makes a log that counts the messages it reads. */
function openCountingStore() {
  const read = { count: 0 };
  const backend: Backend = {
    ...sqlite,
    read(addresses, what) {
      read.count += what === "presence" ? 0 : addresses.length;
      return sqlite.read(addresses, what);
    },
  };
  const store = createKeyValueStore(backend);
  const blobs = createBlobEntries(store);
  return {
    read,
    conversations: createConversationLog({ store, blobs, writers: createKeyedQueue() }),
  };
}

// Attack: A history of long files, read whole at each question. What holds: 16 messages at once, 8
// million characters in all; branches 32 million.
describe("a history of long files", () => {
  it("is read up to a bound of characters, few messages at once", async () => {
    const { conversations, read } = openCountingStore();
    const text = "x".repeat(10_000);
    for (let n = 0; n < 60; n++) await conversations.append("test:long", messageOf(`m${n}`, text));
    read.count = 0;
    const recent = await conversations.recent("test:long", { maxMessages: 201, maxChars: 100_000 });
    // With the oldest of them, the characters exceed the limit, which tells that there is more.
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
