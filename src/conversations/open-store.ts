import { dirname, join, resolve } from "node:path";
import { ParleyError } from "../assistant/errors.ts";
import type { ConversationQueue, Conversations, Inbox, Log } from "../assistant/types.ts";
import type { BlobStore } from "./blobs.ts";
import { createBlobFiles } from "./blob-files.ts";
import { createConversationLog } from "./conversation-log.ts";
import { createInbox } from "./inbox.ts";
import { createKeyValueStore, type KeyValueStore } from "./key-value.ts";
import { createKeyedQueue } from "./keyed-queue.ts";
import { openSqliteBackend } from "./sqlite-backend.ts";

export interface StoreOptions {
  readonly log: Log;
  /** What a relative `sqlite:` path is relative to. Default: the working directory. */
  readonly dataDir?: string | undefined;
  /** Messages and blobs older than this vanish. Default: kept for ever. */
  readonly retentionDays?: number | undefined;
  /** SQLite: false lets a second process in, for a program that runs no turns beside the bot. Default true. */
  readonly exclusive?: boolean | undefined;
  /** Redis: longest wait for an answer. Default 5 s. */
  readonly deadlineMs?: number | undefined;
  /** Redis: after this long without a sign of life another instance takes a conversation over. Default 15 s. */
  readonly leaseMs?: number | undefined;
}

/** What outlasts a crash. */
export interface Store {
  readonly conversations: Conversations;
  readonly inbox: Inbox;
  readonly queue: ConversationQueue;
  /** @throws ParleyError `store-unavailable` */
  ping(): Promise<void>;
  /** For the start lines; without password. */
  describe(): string;
  /** Lets go of the file or the connections. The queue must be idle. */
  close(): Promise<void>;
}

const dayMs = 24 * 60 * 60 * 1000;

/**
 * Opens the store that `url` names: `sqlite:<file>` or `redis://…` / `rediss://…`.
 * @throws ParleyError `config` (another URL), `store-unavailable`, `store-corrupt`, `store-newer`
 */
export async function openStore(url: string, options: StoreOptions): Promise<Store> {
  if (url.startsWith("sqlite:") && url !== "sqlite:")
    return openSqliteStore(url.slice("sqlite:".length), options);
  if (/^rediss?:\/\//.test(url)) return openRedisStore(url, options);
  throw new ParleyError(
    "config",
    "STORE_URL is none this bot knows: write sqlite:<file>, redis://host:6379 or rediss://host:6380",
  );
}

async function openSqliteStore(path: string, options: StoreOptions): Promise<Store> {
  const file = resolve(options.dataDir ?? ".", path.replace(/^\/\/(?=\/)/, ""));
  const backend = openSqliteBackend(file, { exclusive: options.exclusive });
  const store = createKeyValueStore(backend);
  const blobs = createBlobFiles({ store, folder: join(dirname(file), "blobs"), log: options.log });
  return {
    ...compose(store, blobs, options),
    queue: createLocalQueue(),
    describe: () => `SQLite file ${file}`,
  };
}

/** Its modules are loaded on use: most bots never need them. */
async function openRedisStore(url: string, options: StoreOptions): Promise<Store> {
  const [{ openRedisBackend }, { createBlobEntries }, { createLeasedQueue }] = await Promise.all([
    import("./redis-backend.ts"),
    import("./blob-entries.ts"),
    import("./leased-queue.ts"),
  ]);
  const { log } = options;
  const backend = await openRedisBackend(url, { log, deadlineMs: options.deadlineMs });
  const store = createKeyValueStore(backend);
  return {
    ...compose(store, createBlobEntries(store), options),
    queue: createLeasedQueue({ leases: backend.leases, log, ttlMs: options.leaseMs }),
    describe: () => `Redis at ${backend.address}`,
  };
}

function compose(store: KeyValueStore, blobs: BlobStore, { log, retentionDays }: StoreOptions) {
  const retentionMs = retentionDays === undefined ? undefined : retentionDays * dayMs;
  const { backend } = store;
  return {
    conversations: createConversationLog({ store, blobs, retentionMs }),
    inbox: createInbox({ store, log }),
    ping: () => backend.ping(),
    close: () => backend.close(),
  };
}

function createLocalQueue(): ConversationQueue {
  const queue = createKeyedQueue();
  return {
    // In one process nobody can take the conversation away.
    run: (conversationId, work) => queue.run(conversationId, () => work(new AbortController().signal)),
    idle: () => queue.idle(),
  };
}
