/**
 * Measures what storing and loading a message costs, compared with the raw store in the same run: `node
 * bench/store.ts [--large]`. It prints medians in milliseconds. The ratios hold on other machines too. The
 * raw store lacks Parley's guarantees: a table of messages in SQLite and Postgres, or a Redis list.
 */
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { parseArgs } from "node:util";
import pg from "pg";
import { createClient } from "redis";
import type { Conversations, StoredMessage } from "../src/core/storage.ts";
import { openStore } from "../src/conversations/open-store.ts";
import { startPostgres } from "../test/support/postgres-server.ts";
import { startRedis } from "../test/support/redis-server.ts";
import { silentLog } from "../test/support/silent-log.ts";
import { has } from "../test/support/requirements.ts";

interface Log {
  append(message: StoredMessage): Promise<unknown>;
  last50(): Promise<unknown>;
}

const rounds = 300;
const { values } = parseArgs({ options: { large: { type: "boolean", default: false } } });
const sizes = values.large ? [10, 1000, 10_000, 100_000] : [10, 1000, 10_000];

const folder = await mkdtemp(join(tmpdir(), "parley-bench-"));
try {
  await benchSqlite();
  if (has("redis")) await benchRedis();
  else console.log("Redis: skipped (no redis-server)");
  if (has("postgres")) await benchPostgres();
  else console.log("Postgres: skipped (no postgres)");
} finally {
  await rm(folder, { recursive: true });
}

async function benchSqlite(): Promise<void> {
  const database = new DatabaseSync(join(folder, "raw.db"));
  database.exec(`PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL;
    CREATE TABLE messages (conversation TEXT, number INTEGER, value TEXT, PRIMARY KEY (conversation, number)) STRICT`);
  const insert = database.prepare("INSERT INTO messages VALUES (?, ?, ?)");
  const select = database.prepare(
    "SELECT value FROM messages WHERE conversation = ? ORDER BY number DESC LIMIT 50",
  );
  const raw = (conversation: string): Log => {
    let number = 0;
    return {
      append: async (message) => insert.run(conversation, number++, JSON.stringify(message)),
      last50: async () => select.all(conversation).map((row) => JSON.parse(String(row["value"])) as unknown),
    };
  };
  const store = await openStore(`sqlite:${join(folder, "store.db")}`, { log: silentLog });
  await compare("SQLite (WAL, synchronous=FULL)", raw, store.conversations);
  await store.close();
  database.close();
}

async function benchRedis(): Promise<void> {
  const server = await startRedis();
  const client = await createClient({ url: server.url }).connect();
  const raw = (conversation: string): Log => ({
    append: (message) => client.rPush(`raw:${conversation}`, JSON.stringify(message)),
    last50: async () =>
      (await client.lRange(`raw:${conversation}`, -50, -1)).map((value) => JSON.parse(value) as unknown),
  });
  const store = await openStore(server.url, { log: silentLog });
  try {
    await compare("Redis (appendfsync always)", raw, store.conversations);
  } finally {
    await client.close();
    await store.close();
    await server.remove();
  }
}

async function benchPostgres(): Promise<void> {
  const server = await startPostgres();
  const client = new pg.Client({ connectionString: server.url });
  await client.connect();
  await client.query(
    "CREATE TABLE messages (conversation text, number integer, value text, PRIMARY KEY (conversation, number))",
  );
  const insert = { name: "insert", text: "INSERT INTO messages VALUES ($1, $2, $3)" };
  const select = {
    name: "select",
    text: "SELECT value FROM messages WHERE conversation = $1 ORDER BY number DESC LIMIT 50",
  };
  const raw = (conversation: string): Log => {
    let number = 0;
    return {
      append: (message) => client.query(insert, [conversation, number++, JSON.stringify(message)]),
      async last50() {
        const { rows } = await client.query<{ value: string }>(select, [conversation]);
        return rows.map(({ value }) => JSON.parse(value) as unknown);
      },
    };
  };
  const store = await openStore(server.url, { log: silentLog });
  try {
    await compare("Postgres (as it is installed)", raw, store.conversations);
  } finally {
    await client.end();
    await store.close();
    await server.remove();
  }
}

async function compare(
  name: string,
  raw: (conversation: string) => Log,
  conversations: Conversations,
): Promise<void> {
  console.log(`\n${name}; medians of ${rounds}, in ms`);
  console.log("messages     append: raw   parley  ratio    last 50: raw   parley  ratio");
  // At first files grow and caches fill, for both stores.
  const warm = raw("bench:warm");
  for (let n = 0; n < 3000; n++) {
    await warm.append(messageOf(n));
    await conversations.append("bench:warm", messageOf(n));
  }
  for (const size of sizes) {
    const id = `bench:${size}`;
    const ours: Log = {
      append: (message) => conversations.append(id, message),
      last50: () => conversations.recent(id, { maxMessages: 50 }),
    };
    const logs = [raw(id), ours];
    for (const log of logs) for (let n = 0; n < size; n++) await log.append(messageOf(n));
    let number = size;
    const appended = await medians(logs, (log) => log.append(messageOf(number++)));
    const loaded = await medians(logs, (log) => log.last50());
    console.log(`${String(size).padStart(8)}  ${columns(appended)}      ${columns(loaded)}`);
  }
}

/** Alternates, so that other load of the machine affects both. */
async function medians(logs: readonly Log[], work: (log: Log) => Promise<unknown>): Promise<number[]> {
  const times = logs.map((): number[] => []);
  for (let round = 0; round < rounds + 20; round++) {
    for (const [index, log] of logs.entries()) {
      const began = performance.now();
      await work(log);
      // The first ones warm up.
      if (round >= 20) times[index]?.push(performance.now() - began);
    }
  }
  return times.map((each) => each.sort((a, b) => a - b)[Math.floor(each.length / 2)] ?? Number.NaN);
}

function columns([raw = 0, ours = 0]: readonly number[]): string {
  return `${raw.toFixed(3).padStart(16)} ${ours.toFixed(3).padStart(8)} ${(ours / raw).toFixed(2).padStart(6)}`;
}

function messageOf(number: number): StoredMessage {
  return {
    id: `discord:1234567890${number}/user`,
    turnKey: `discord:1234567890${number}`,
    role: number % 2 === 0 ? "user" : "assistant",
    author: { id: "discord:42", name: "Ann" },
    parts: [
      { kind: "text", text: `${number} ${"Words that a person or a model might have said. ".repeat(8)}` },
    ],
    createdAt: 1_700_000_000_000 + number,
    estimatedTokens: 100,
  };
}
