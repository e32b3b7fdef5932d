import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { Backend } from "../../../src/conversations/backend.ts";
import { createBlobEntries } from "../../../src/conversations/blobs.ts";
import { createConversationLog } from "../../../src/conversations/conversation-log.ts";
import { createErasure } from "../../../src/conversations/erasure.ts";
import { createInbox } from "../../../src/conversations/inbox.ts";
import { createKeyValueStore } from "../../../src/conversations/key-value.ts";
import { openSqliteBackend, type SqliteBackend } from "../../../src/conversations/sql/sqlite.ts";
import { createKeyedQueue } from "../../../src/support/queues.ts";
import { silentLog } from "../../support/silent-log.ts";
import { eventOf, messageOf } from "../../support/store-samples.ts";
import { answerTurn } from "../../support/turn-steps.ts";

/** Opens one process's access to the store. */
function openProcess(backend: Backend) {
  const store = createKeyValueStore(backend);
  const options = { store, blobs: createBlobEntries(store), writers: createKeyedQueue() };
  const spending = { forgetPerson: () => Promise.resolve() };
  const erasure = createErasure({ ...options, spending });
  return {
    conversations: createConversationLog(options),
    erasure,
    inbox: createInbox({ ...options, log: silentLog, eraseFiles: erasure.eraseFilesOf }),
  };
}

/** Runs `work` once, before or after the first look whether ids are known. */
function withLook(sqlite: SqliteBackend, when: "before" | "after", work: () => Promise<unknown>): Backend {
  let isDone = false;
  const once = async () => {
    if (!isDone) await work();
    isDone = true;
  };
  return {
    ...sqlite,
    async read(addresses, what) {
      const isLook = what === "presence" && addresses[0]?.space === "id";
      if (isLook && when === "before") await once();
      const known = await sqlite.read(addresses, what);
      if (isLook && when === "after") await once();
      return known;
    },
  };
}

describe("a message that one process stores while another one removes it", () => {
  let folder: string;
  let sqlite: SqliteBackend;
  beforeEach(async () => {
    folder = await mkdtemp(join(tmpdir(), "parley-races-"));
    sqlite = openSqliteBackend(join(folder, "parley.db"));
  });
  afterEach(async () => {
    await sqlite.close();
    await rm(folder, { recursive: true });
  });

  it.each(["before", "after"] as const)("is gone when it was stored %s the look for its id", async (when) => {
    const storing = openProcess(sqlite);
    await storing.conversations.append("test:1", messageOf("m1", "stays"));
    const removing = openProcess(
      withLook(sqlite, when, () => storing.conversations.append("test:1", messageOf("m2", "goes"))),
    );
    await removing.erasure.removeMessages("test:1", { ids: ["m2"] });
    const kept = await storing.conversations.recent("test:1", { maxMessages: 10 });
    expect(kept.map(({ id }) => id)).toEqual(["m1"]);
    expect(await storing.conversations.append("test:1", messageOf("m2", "goes"))).toBe("duplicate");
  });

  it("is not taken for one that people deleted: what shows it is durable where that is asked for", async () => {
    const resolved: unknown[] = [];
    const { inbox } = openProcess({
      ...sqlite,
      apply(conditions, changes, resolves) {
        resolved.push(resolves ?? "durable");
        return sqlite.apply(conditions, changes, resolves);
      },
    });
    const attempt = await answerTurn(inbox, [eventOf("a", "test:1")]);
    resolved.length = 0;
    // The platform's message 1 is removed next, and another process learns of it.
    const address = { kind: "address", address: { at: 2 }, shownAs: ["shown:2"] } as const;
    await inbox.write(attempt, { ...address, isDurable: true });
    await inbox.write(attempt, address);
    expect(resolved).toEqual(["durable", "soon"]);
  });
});
