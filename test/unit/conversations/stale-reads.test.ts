import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { Backend } from "../../../src/conversations/backend.ts";
import { createBlobEntries } from "../../../src/conversations/blobs.ts";
import { createConversationLog } from "../../../src/conversations/conversation-log.ts";
import { createInbox } from "../../../src/conversations/inbox.ts";
import { createKeyValueStore } from "../../../src/conversations/key-value.ts";
import { sweep } from "../../../src/conversations/retention.ts";
import type { Conversations } from "../../../src/core/storage.ts";
import { openSqliteBackend, type SqliteBackend } from "../../../src/conversations/sql/sqlite.ts";
import { createKeyedQueue } from "../../../src/support/queues.ts";
import { silentLog } from "../../support/silent-log.ts";
import { eventOf, messageOf } from "../../support/store-samples.ts";
import { entryAt } from "../../../src/conversations/keys.ts";

/** Reads entries as a replaced server without any, while `isStale`. Indexes are read as they are. */
function withStaleReads(sqlite: SqliteBackend) {
  const state = { isStale: false };
  const backend: Backend = {
    ...sqlite,
    read: async (addresses, what) =>
      state.isStale ? addresses.map(() => undefined) : await sqlite.read(addresses, what),
  };
  return { backend, state };
}

function createLog(backend: Backend): Conversations {
  const store = createKeyValueStore(backend);
  const blobs = createBlobEntries(store);
  return createConversationLog({ store, blobs, writers: createKeyedQueue() });
}

describe("entries that are read from a server that was replaced", () => {
  let folder: string;
  let sqlite: SqliteBackend;
  beforeEach(async () => {
    folder = await mkdtemp(join(tmpdir(), "parley-stale-"));
    sqlite = openSqliteBackend(join(folder, "parley.db"));
  });
  afterEach(async () => {
    await sqlite.close();
    await rm(folder, { recursive: true });
  });

  it("do not take an open event from its list", async () => {
    const { backend, state } = withStaleReads(sqlite);
    const store = createKeyValueStore(backend);
    const open = () =>
      createInbox({
        store,
        log: silentLog,
        writers: createKeyedQueue(),
        eraseFiles: () => Promise.resolve(),
      });
    await open().accept(eventOf("k1", "test:1"));
    state.isStale = true;
    expect(await open().open()).toEqual([]);
    state.isStale = false;
    expect((await open().open()).map(({ event }) => event.key)).toEqual(["k1"]);
    expect((await open().openIn("test:1")).map(({ event }) => event.key)).toEqual(["k1"]);
  });

  it("do not take a conversation from the lists", async () => {
    const { backend, state } = withStaleReads(sqlite);
    const store = createKeyValueStore(backend);
    const blobs = createBlobEntries(store);
    const log = createLog(backend);
    await log.append("test:1", messageOf("m1"));
    await log.saveSettings("test:1", { within: ["test:guild:1"] });
    state.isStale = true;
    await sweep(store, blobs, Date.now());
    state.isStale = false;
    expect(await log.listWithin("test:guild:1")).toEqual(["test:1"]);
  });

  it("do not keep a conversation from being continued in which a message is lost", async () => {
    await createLog(sqlite).append("test:1", messageOf("m1"));
    await createLog(sqlite).append("test:1", messageOf("m2"));
    await sqlite.apply([], [{ kind: "delete", at: entryAt.slot("test:1", 1) }]);
    expect(await createLog(sqlite).append("test:1", messageOf("m3"))).toBe("appended");
    await expect(createLog(sqlite).recent("test:1", { maxMessages: 5 })).rejects.toMatchObject({
      code: "store-corrupt",
    });
  });
});
