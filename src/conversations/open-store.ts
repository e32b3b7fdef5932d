import { dirname, join, resolve } from "node:path";
import { ParleyError } from "../core/errors.ts";
import type { ConversationQueue, Conversations, Inbox } from "../core/storage.ts";
import type { Json } from "../core/events.ts";
import type { Log } from "../core/telemetry.ts";
import { backupFiles } from "./backup.ts";
import { createBlobFiles } from "./blob-files.ts";
import type { BlobStore } from "./blobs.ts";
import { createConversationLog } from "./conversation-log.ts";
import { createEncryption, type Encryption } from "./encryption.ts";
import { type ExportedFile, exportConversation } from "./export.ts";
import { createForgetting, type Forgetting } from "./erasure.ts";
import { createInbox } from "./inbox.ts";
import { checkKeys, reencrypt } from "./key-change.ts";
import { createKeyValueStore, type KeyValueStore } from "./key-value.ts";
import { createKeyedQueue } from "../support/keyed-queue.ts";
import { sweep } from "./retention.ts";
import { openSqliteBackend } from "./sqlite/sqlite-backend.ts";

export interface StoreOptions {
  readonly log: Log;
  /** What a relative `sqlite:` path is relative to. Default: the working directory. */
  readonly dataDir?: string | undefined;
  /** Encrypts everything people wrote or sent: 32 bytes each in base64 or hex, the newest first. Default: none. */
  readonly encryptionKeys?: readonly string[] | undefined;
  /** Messages and blobs older than this vanish within a day of it. Default, and 0: kept for ever. */
  readonly retentionDays?: number | undefined;
  /** SQLite: false lets a second process in, for a program that runs no turns beside the bot. Default true. */
  readonly exclusive?: boolean | undefined;
  /** Redis: longest wait for an answer. Default 5 s. */
  readonly deadlineMs?: number | undefined;
  /** Redis: after this long without a sign of life another instance takes a conversation over. Default 15 s. */
  readonly leaseMs?: number | undefined;
}

/** Small values of another room, by keys of its own. */
export interface Records {
  get(key: string): Promise<Json | undefined>;
  /** `ttlMs`: how long it is kept; for ever without. Durable when it resolves. */
  set(key: string, value: Json, ttlMs?: number): Promise<void>;
  delete(key: string): Promise<void>;
}

/** What outlasts a crash. Every failure is a ParleyError `store-unavailable` or `store-corrupt`. */
export interface Store {
  readonly conversations: Conversations;
  readonly inbox: Inbox;
  readonly queue: ConversationQueue;
  readonly forgetting: Forgetting;
  readonly records: Records;
  /** A conversation as files: Markdown, JSON, pictures and voice notes. */
  exportConversation(conversationId: string): Promise<readonly ExportedFile[]>;
  /**
   * Copies everything into a new folder while it is in use; put back in the store's place, it is the store.
   * @throws ParleyError `config` where the store is a server's, which has backups of its own
   */
  backup(folder: string): Promise<void>;
  ping(): Promise<void>;
  /** For the start lines; without password. */
  describe(): string;
  /** Takes what has expired off the disk; done by itself now and then. `now` in Unix ms. */
  sweep(now: number): Promise<void>;
  /** Rewrites what is not under the newest key; resolves to how many entries and blobs that were. */
  reencrypt(): Promise<number>;
  /** Lets go of the file or the connections. The queue must be idle. */
  close(): Promise<void>;
}

const dayMs = 24 * 60 * 60 * 1000;
const sweepIntervalMs = 10 * 60 * 1000;

/**
 * Opens the store that `url` names: `sqlite:<file>` or `redis://…` / `rediss://…`.
 * @throws ParleyError `config` (another URL, keys that do not fit), `store-unavailable`, `store-corrupt`, `store-newer`
 */
export async function openStore(url: string, options: StoreOptions): Promise<Store> {
  const encryption = createEncryption(options.encryptionKeys);
  if (url.startsWith("sqlite:") && url !== "sqlite:")
    return openSqliteStore(url.slice("sqlite:".length), encryption, options);
  if (/^rediss?:\/\//.test(url)) return openRedisStore(url, encryption, options);
  throw new ParleyError(
    "config",
    "STORE_URL is none this bot knows: write sqlite:<file>, redis://host:6379 or rediss://host:6380",
  );
}

async function openSqliteStore(path: string, encryption: Encryption, options: StoreOptions): Promise<Store> {
  const file = resolve(options.dataDir ?? ".", path.replace(/^\/\/(?=\/)/, ""));
  const backend = openSqliteBackend(file, { exclusive: options.exclusive });
  const store = createKeyValueStore(backend, { encryption: encryption.adapter });
  const folder = join(dirname(file), "blobs");
  return compose({
    store,
    blobs: createBlobFiles({ store, folder, log: options.log, encryption }),
    queue: createLocalQueue(),
    name: `SQLite file ${file}`,
    backup: (target) => backupFiles(backend, { file, blobs: folder, target }),
    encryption,
    options,
  });
}

/** Its modules are loaded on use: most bots never need them. */
async function openRedisStore(url: string, encryption: Encryption, options: StoreOptions): Promise<Store> {
  const [{ openRedisBackend }, { createBlobEntries }, { createLeasedQueue }] = await Promise.all([
    import("./redis/redis-backend.ts"),
    import("./blob-entries.ts"),
    import("./leased-queue.ts"),
  ]);
  const { log, deadlineMs, leaseMs } = options;
  const backend = await openRedisBackend(url, { log, deadlineMs });
  const store = createKeyValueStore(backend, { encryption: encryption.adapter });
  return compose({
    store,
    blobs: createBlobEntries(store),
    queue: createLeasedQueue({ leases: backend.leases, log, ttlMs: leaseMs }),
    name: `Redis at ${backend.address}`,
    async backup() {
      throw new ParleyError("config", "Redis is backed up by its own means: BGSAVE, or a copy of its files");
    },
    encryption,
    options,
  });
}

interface Parts {
  readonly store: KeyValueStore;
  readonly blobs: BlobStore;
  readonly queue: ConversationQueue;
  readonly name: string;
  readonly backup: Store["backup"];
  readonly encryption: Encryption;
  readonly options: StoreOptions;
}

async function compose({ store, blobs, queue, name, backup, encryption, options }: Parts): Promise<Store> {
  const { log, retentionDays = 0 } = options;
  const { backend } = store;
  try {
    await checkKeys(store, encryption);
  } catch (error) {
    await backend.close();
    throw error;
  }
  const retentionMs = retentionDays > 0 ? retentionDays * dayMs : undefined;
  const writers = createKeyedQueue();
  const sweeper = setInterval(() => {
    sweep(store, blobs, Date.now()).catch((error: unknown) =>
      log.warn({ error }, "could not sweep the store"),
    );
  }, sweepIntervalMs);
  sweeper.unref();
  return {
    conversations: createConversationLog({ store, blobs, writers, retentionMs }),
    inbox: createInbox({ store, log }),
    queue,
    records: {
      get: (key) => store.get<Json>("record", key),
      set: (key, value, ttlMs) => store.write([{ kind: "set", at: { space: "record", key }, value, ttlMs }]),
      delete: (key) => store.write([{ kind: "delete", at: { space: "record", key } }]),
    },
    forgetting: createForgetting({ store, blobs, writers, retentionMs }),
    exportConversation: (conversationId) => exportConversation(store, blobs, conversationId),
    backup,
    ping: () => backend.ping(),
    describe: () => (encryption.isOn ? `${name}, encrypted` : name),
    sweep: (now) => sweep(store, blobs, now),
    reencrypt: () => reencrypt(store, blobs, encryption),
    async close() {
      clearInterval(sweeper);
      await backend.close();
    },
  };
}

function createLocalQueue(): ConversationQueue {
  const queue = createKeyedQueue();
  const closing = new AbortController();
  return {
    isShared: false,
    // In one process nobody can take the conversation away.
    run: (conversationId, work) =>
      queue.run(conversationId, async () => {
        closing.signal.throwIfAborted();
        return work(new AbortController().signal);
      }),
    async runUnlessTaken(conversationId, work) {
      await this.run(conversationId, work);
      return true;
    },
    close() {
      closing.abort(new ParleyError("stopping", "the process is stopping"));
    },
    idle: () => queue.idle(),
  };
}
