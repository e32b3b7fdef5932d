import { dirname, join, resolve } from "node:path";
import { ParleyError } from "../assistant/errors.ts";
import type { ConversationQueue, Conversations, Inbox, Log } from "../assistant/types.ts";
import { createBlobFiles } from "./blob-files.ts";
import { createConversationLog } from "./conversation-log.ts";
import { createInbox } from "./inbox.ts";
import { createKeyValueStore } from "./key-value.ts";
import { createKeyedQueue } from "./keyed-queue.ts";
import { openSqliteBackend } from "./sqlite-backend.ts";

export interface StoreOptions {
  readonly log: Log;
  /** What a relative `sqlite:` path is relative to. Default: the working directory. */
  readonly dataDir?: string | undefined;
  /** Messages and blobs older than this vanish. Default: kept for ever. */
  readonly retentionDays?: number | undefined;
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
  throw new ParleyError(
    "config",
    "STORE_URL is none this bot knows: write sqlite:<file>, redis://host:6379 or rediss://host:6380",
  );
}

async function openSqliteStore(path: string, options: StoreOptions): Promise<Store> {
  const file = resolve(options.dataDir ?? ".", path.replace(/^\/\/(?=\/)/, ""));
  const backend = openSqliteBackend(file);
  const store = createKeyValueStore(backend);
  const blobs = createBlobFiles({ store, folder: join(dirname(file), "blobs"), log: options.log });
  const { retentionDays } = options;
  const retentionMs = retentionDays === undefined ? undefined : retentionDays * dayMs;
  return {
    conversations: createConversationLog({ store, blobs, retentionMs }),
    inbox: createInbox({ store, log: options.log }),
    queue: createLocalQueue(),
    async ping() {
      await backend.ping();
    },
    describe() {
      return `SQLite file ${file}`;
    },
    async close() {
      await backend.close();
    },
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
