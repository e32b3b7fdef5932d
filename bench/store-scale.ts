/**
 * Measures what a full store costs, on each kind of store: `node bench/store-scale.ts [--only
 * sqlite,redis,postgres] [--quick]`. It accepts, takes and closes a turn with 10 and with 100,000 open
 * entries and conversations, and starts with 100 and with 1,000,000 stored messages. `--quick` uses a tenth
 * of both. It prints medians in milliseconds.
 */
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { backendOf } from "../src/conversations/backends.ts";
import type { Backend, BackendChange, EntryAddress } from "../src/conversations/backend.ts";
import { indexActivity, indexAuthor } from "../src/conversations/conversation-index.ts";
import { indexOpen } from "../src/conversations/inbox-record.ts";
import { openStore, type Store } from "../src/conversations/open-store.ts";
import { entryAt } from "../src/conversations/key-value.ts";
import { startPostgres } from "../test/support/postgres-server.ts";
import { startRedis } from "../test/support/redis-server.ts";
import { has } from "../test/support/requirements.ts";
import { silentLog } from "../test/support/silent-log.ts";
import { eventOf, messageOf } from "../test/support/store-samples.ts";

const { values } = parseArgs({
  options: {
    only: { type: "string", default: "sqlite,redis,postgres" },
    quick: { type: "boolean", default: false },
  },
});
const conversations = values.quick ? 10_000 : 100_000;
const messagesEach = 10;
const few = 10;
const rounds = 300;
const starts = 7;
const changesAtOnce = 400;
const text = "Words that a person or a model might have said. ".repeat(8);

interface Place {
  readonly url: string;
  remove(): Promise<void>;
}

const places: Readonly<Record<string, () => Promise<Place>>> = {
  async sqlite() {
    const folder = await mkdtemp(join(tmpdir(), "parley-scale-"));
    return { url: `sqlite:${join(folder, "parley.db")}`, remove: () => rm(folder, { recursive: true }) };
  },
  async redis() {
    const server = await startRedis();
    return { url: server.url, remove: () => server.remove() };
  },
  async postgres() {
    const server = await startPostgres();
    return { url: server.url, remove: () => server.remove() };
  },
};

for (const name of values.only.split(",")) {
  const start = places[name];
  if (start === undefined) throw new Error(`--only takes ${Object.keys(places).join(", ")}`);
  if (name !== "sqlite" && !has(name as "redis" | "postgres")) {
    console.log(`${name}: skipped, its server is not installed`);
    continue;
  }
  const [small, full] = [await start(), await start()];
  try {
    await bench(name, [small.url, full.url]);
  } finally {
    await small.remove();
    await full.remove();
  }
}

/** Alternates between a small and a full store, so that other load of the machine affects both. */
async function bench(name: string, urls: readonly [small: string, full: string]): Promise<void> {
  console.log(`\n${name}`.padEnd(40) + "little     full  ratio");
  const [small, full] = urls;
  const began = performance.now();
  await withBackend(small, (backend) => fillConversations(backend, few));
  await withBackend(full, (backend) => fillConversations(backend, conversations));
  const messages = [few, conversations].map((count) => count * messagesEach);
  print(`start, ${messages.join(" and ")} messages`, await startTimes(urls));
  await withBackend(small, (backend) => fillInbox(backend, few));
  await withBackend(full, (backend) => fillInbox(backend, conversations));
  const stores = [await openStore(small, { log: silentLog }), await openStore(full, { log: silentLog })];
  try {
    for (const [step, times] of Object.entries(await costOfTurns(stores)))
      print(`${step}, ${few} and ${conversations} open entries`, times);
  } finally {
    for (const store of stores) await store.close();
  }
  console.log(`(${((performance.now() - began) / 1000).toFixed(0)} s)`);
}

/** Measures until the store is open and has answered its first questions. */
async function startTimes(urls: readonly string[]): Promise<number[][]> {
  const times = urls.map((): number[] => []);
  for (let n = 0; n < starts + 1; n++) {
    for (const [index, url] of urls.entries()) {
      const began = performance.now();
      const store = await openStore(url, { log: silentLog });
      await store.conversations.recent("bench:0", { maxMessages: 50 });
      await store.inbox.listOpenIn("bench:0");
      // The first one warms up.
      if (n > 0) times[index]?.push(performance.now() - began);
      await store.close();
    }
  }
  return times;
}

/** Measures turns one at a time in existing conversations, by step and store. */
async function costOfTurns(stores: readonly Store[]): Promise<Record<string, number[][]>> {
  const times: Record<string, number[][]> = {};
  for (let n = 0; n < rounds + 20; n++) {
    for (const [index, store] of stores.entries()) {
      const key = `bench:turn/${n}`;
      const id = `bench:${n % few}`;
      const timed = async (step: string, work: () => Promise<unknown>) => {
        const began = performance.now();
        await work();
        // The first ones warm up.
        if (n >= 20) ((times[step] ??= stores.map(() => []))[index] ??= []).push(performance.now() - began);
      };
      await timed("accept", () => store.inbox.accept(eventOf(key, id)));
      await timed("take", async () => {
        await store.inbox.claimTurn({ keys: [key], address: { placeholder: "1" }, attempts: 1 });
        await store.conversations.recent(id, { maxMessages: 5 });
      });
      await timed("store", () => store.conversations.append(id, messageOf(key, text)));
      await timed("close", () => store.inbox.close([key], { attempts: 1 }));
    }
  }
  return times;
}

/** Fills conversations in the form that appends leave, with many messages in one write. */
async function fillConversations(backend: Backend, count: number): Promise<void> {
  await writeAll(backend, function* () {
    for (let n = 0; n < count; n++) {
      const id = `bench:${n}`;
      for (let position = 0; position < messagesEach; position++) {
        const message = messageOf(`bench:${n}/${position}`, text);
        yield set(entryAt.slot(id, position), message);
        yield set(entryAt.messageId(id, message.id), position);
      }
      yield set(entryAt.head(id), { next: messagesEach, keptFrom: 0 });
      yield* indexActivity(id, 1_700_000_000_000 + n);
      yield* indexAuthor(id, `test:person-${n % 1000}`);
    }
  });
}

async function fillInbox(backend: Backend, count: number): Promise<void> {
  await writeAll(backend, function* () {
    for (let n = 0; n < count; n++) {
      const event = eventOf(`bench:open-${count}/${n}`, `bench:${n}`);
      const acceptedAt = 1_700_000_000_000 + n;
      yield set(entryAt.event(event.key), { event, acceptedAt });
      yield* indexOpen(event, acceptedAt * 1000);
    }
  });
}

function set(at: EntryAddress, value: unknown): BackendChange {
  return { kind: "set", at, value: JSON.stringify({ value }), expires: undefined };
}

async function writeAll(backend: Backend, changes: () => Generator<BackendChange>): Promise<void> {
  let batch: BackendChange[] = [];
  for (const change of changes()) {
    batch.push(change);
    if (batch.length < changesAtOnce) continue;
    await backend.apply([], batch);
    batch = [];
  }
  await backend.apply([], batch);
}

async function withBackend(url: string, work: (backend: Backend) => Promise<void>): Promise<void> {
  const { backend } = await backendOf(url).open(url, { log: silentLog, deadlineMs: 60_000 });
  await work(backend);
  await backend.close();
}

function median(times: readonly number[]): number {
  return times.toSorted((a, b) => a - b)[Math.floor(times.length / 2)] ?? Number.NaN;
}

function print(what: string, times: readonly number[][]): void {
  const [little = Number.NaN, full = Number.NaN] = times.map(median);
  const columns = [
    little.toFixed(2).padStart(8),
    full.toFixed(2).padStart(8),
    (full / little).toFixed(2).padStart(6),
  ];
  console.log([what.padEnd(38), ...columns].join(" "));
}
