import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { openStore, type Store } from "../../src/conversations/open-store.ts";
import { createMemoryLog } from "../support/memory-log.ts";
import { type PostgresServer, startPostgres } from "../support/postgres-server.ts";
import { has } from "../support/requirements.ts";
import { bytesOfFolder } from "../support/store-bytes.ts";
import { eventOf, messageOf } from "../support/store-samples.ts";
import { deletionOf } from "../support/turn-steps.ts";

const secret = "the-words-that-must-go";

describe.skipIf(!has("postgres"))("deleted text in the files of Postgres' tables", () => {
  let server: PostgresServer;
  let store: Store;
  const lines: string[] = [];
  const open = (retentionDays = 0) => openStore(server.url, { log: createMemoryLog(lines), retentionDays });
  beforeEach(async () => {
    lines.length = 0;
    server = await startPostgres();
    store = await open();
  });
  afterEach(async () => {
    await store.close();
    await server.remove();
  });

  /** The write-ahead log does not count, since the server keeps it for a while. */
  const isInTables = async () => {
    await server.query("CHECKPOINT");
    return (await vi.waitFor(() => bytesOfFolder(join(server.folder, "data", "base")))).includes(secret);
  };
  const whenGone = () =>
    vi.waitFor(async () => expect(await isInTables()).toBe(false), { timeout: 10_000, interval: 100 });
  const isPending = async () =>
    (await server.query("SELECT FROM parley.marks WHERE name = 'scrub'")).length > 0;
  const fill = async () => {
    await store.conversations.append("test:1", messageOf("m", secret));
    await store.inbox.accept({ ...eventOf("k"), text: secret });
    for (let n = 0; n < 20; n++) await store.conversations.append("test:2", messageOf(`m${n}`));
    expect(await isInTables()).toBe(true);
  };

  it("goes when the server is killed meanwhile", async () => {
    await fill();
    await store.erasure.deleteConversation("test:1");
    await store.inbox.change(deletionOf("k"));
    await server.kill();
    await server.start();
    await vi.waitFor(() => store.ping(), { timeout: 10_000 });
    await store.sweep(Date.now());
    await whenGone();
  });

  it("is not a row any more in a table that is too large to be rewritten", async () => {
    await fill();
    const filler = "x".repeat(100);
    await server.query(
      `INSERT INTO parley.entries (space, key, value) SELECT 'record', n::text, '"' || repeat(md5(n::text), 20) || '${filler}"' FROM generate_series(1, 60000) n`,
    );
    await store.erasure.deleteConversation("test:1");
    await vi.waitUntil(async () => !(await isPending()), { timeout: 20_000 });
    await server.query("CREATE EXTENSION pgstattuple");
    const [row] = await server.query("SELECT dead_tuple_count FROM pgstattuple('parley.entries')");
    expect(Number(row?.["dead_tuple_count"])).toBe(0);
  });
});
