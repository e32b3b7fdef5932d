import type { SettingsStore } from "../core/layered-settings.ts";
import { randomUUID } from "node:crypto";
import { ParleyError } from "../core/errors.ts";
import type { Json } from "../core/events.ts";
import type { SpendingLedger } from "../core/spending.ts";
import type { Inbox } from "../core/inbox.ts";
import type { Claims, ConversationQueue, Conversations, Records } from "../core/storage.ts";
import { createKeyedQueue } from "../support/keyed-queue.ts";
import { backendOf } from "./backends.ts";
import type { Backend, BackendNotes, WriteCounts } from "./backend.ts";
import type { BlobStore } from "./blobs.ts";
import { createConversationLog } from "./conversation-log.ts";
import { createEncryption, type Encryption } from "./encryption.ts";
import { createErasure, type Erasure } from "./erasure.ts";
import type { ConversationExport } from "../core/exported-file.ts";
import { exportConversation } from "./export.ts";
import { fillIndexes } from "./fill-indexes.ts";
import { createInbox } from "./inbox.ts";
import { reencrypt } from "./key-change.ts";
import type { Leases } from "./leased-queue.ts";
import { createKeyValueStore, type KeyValueStore } from "./key-value.ts";
import { createLocalQueue } from "./local-queue.ts";
import { createMeasuredBackend, type OnStoreOperation } from "./measured-backend.ts";
import { sweep } from "./retention.ts";
import { prepareSealing, restoreSealing } from "./sealing-mark.ts";
import { createSettingsStore } from "./settings-store.ts";
import { createSpendingLedger } from "./spending-ledger.ts";
import type { BackendOptions, OpenedBackend, RestoredStore } from "./store-backend.ts";
import { systemClock } from "../support/clock.ts";
import { steadyClock } from "../support/steady-clock.ts";

/** How a store is opened; {@link BackendOptions} say what its backend needs. */
export interface StoreOptions extends BackendOptions {
  /** Encrypts what people wrote or sent: 32 bytes each in base64 or hex, the newest first. Default: none. */
  readonly encryptionKeys?: readonly string[] | undefined;
  /** Messages and blobs older than this are removed within a day. Default, and 0: kept for ever. */
  readonly retentionDays?: number | undefined;
  /** Shared stores: a conversation's lease expires after this long without renewal. Milliseconds, default 15 s. */
  readonly leaseMs?: number | undefined;
  /** The reserve of a gateway call that nobody settles is released after this. Milliseconds, default 15 minutes. */
  readonly reserveTtlMs?: number | undefined;
  /** Called after each read and write. */
  readonly onOperation?: OnStoreOperation | undefined;
}

/** Everything that survives a crash. Every failure is a ParleyError `store-unavailable` or `store-corrupt`. */
export interface Store {
  readonly conversations: Conversations;
  readonly inbox: Inbox;
  readonly queue: ConversationQueue;
  readonly erasure: Erasure;
  readonly spending: SpendingLedger;
  readonly records: Records;
  readonly claims: Claims;
  readonly settings: SettingsStore;
  /** A conversation as files: Markdown, JSON, pictures and voice notes. */
  exportConversation(conversationId: string): Promise<ConversationExport>;
  /**
   * Copies everything into a new folder while the store is in use. The copy is a store: put it in place to restore.
   * @throws ParleyError `config` when the store is a server's, which has backups of its own
   */
  backup(folder: string): Promise<void>;
  /**
   * Present for a week after a backup was put in the place of the store: a message of a person sent from `backedUpAt`
   * to `restoredAt` that the store does not know may have been answered by the store that it replaced, so a look-up
   * of missed messages must not answer it. Absent on Redis, which has backups of its own.
   */
  readonly restored: RestoredStore | undefined;
  /** Fails when the store cannot be read or written. */
  ping(): Promise<void>;
  /** Why the store is not ready, in words; empty: it is. Includes `ping`. Never rejects. */
  findProblems(): Promise<readonly string[]>;
  /** What operators should know besides, as known without asking the service. */
  notes(): Pick<BackendNotes, "warnings" | "dataLosses">;
  writes(): WriteCounts;
  /** Bytes that the store takes; of a server, all of it. `undefined`: not known. Never rejects. */
  sizeBytes(): Promise<number | undefined>;
  /** For the start lines; without credentials. */
  describe(): string;
  /** Removes expired data from the disk; also runs by itself every ten minutes. `now` in Unix ms. */
  sweep(now: number): Promise<void>;
  /**
   * Rewrites what is not encrypted with the newest key and bound to its address, and refuses all else from then on.
   * Resolves to the number of entries and blobs rewritten.
   */
  reencrypt(): Promise<number>;
  /** Closes the file or the connections. The queue must be idle. */
  close(): Promise<void>;
}

const dayMs = 24 * 60 * 60 * 1000;
const defaultReserveTtlMs = 15 * 60 * 1000;
const sweepIntervalMs = 10 * 60 * 1000;

/**
 * Opens the store that `url` names; its scheme chooses the backend.
 * @throws ParleyError `config` (unknown URL, wrong keys), `store-unavailable`, `store-corrupt`, `store-newer`
 */
export async function openStore(url: string, options: StoreOptions): Promise<Store> {
  const encryption = createEncryption(options.encryptionKeys);
  const opened = await backendOf(url).open(url, options);
  const { onOperation } = options;
  const backend =
    onOperation === undefined ? opened.backend : createMeasuredBackend(opened.backend, onOperation);
  const store = createKeyValueStore(backend, encryption);
  try {
    await prepareSealing(store, encryption, options.log);
    await fillIndexes(store, options.log);
    const [blobs, queue] = await Promise.all([
      createBlobs(opened, store, encryption, options),
      createQueue(opened, options),
    ]);
    return toStore({ opened, store, blobs, queue, encryption, options });
  } catch (error) {
    await opened.backend.close();
    throw error;
  }
}

/** Loads only the module that the backend needs. */
async function createBlobs(
  { blobs }: OpenedBackend,
  store: KeyValueStore,
  encryption: Encryption,
  { log }: StoreOptions,
): Promise<BlobStore> {
  if (blobs === "entries") {
    const { createBlobEntries } = await import("./blob-entries.ts");
    return createBlobEntries(store);
  }
  const { createBlobFiles } = await import("./blob-files.ts");
  return createBlobFiles({ store, folder: blobs.folder, log, encryption });
}

async function createQueue(
  { leases }: OpenedBackend,
  { log, leaseMs, clock = systemClock }: StoreOptions,
): Promise<ConversationQueue> {
  if (leases === undefined) return createLocalQueue();
  const { createLeasedQueue } = await import("./leased-queue.ts");
  return createLeasedQueue({ leases, log, clock, ttlMs: leaseMs });
}

interface Parts {
  readonly opened: OpenedBackend;
  readonly store: KeyValueStore;
  readonly blobs: BlobStore;
  readonly queue: ConversationQueue;
  readonly encryption: Encryption;
  readonly options: StoreOptions;
}

function toStore({ opened, store, blobs, queue, encryption, options }: Parts): Store {
  const { log, retentionDays = 0, reserveTtlMs = defaultReserveTtlMs, clock = systemClock } = options;
  const { backend, name, backup } = opened;
  const retentionMs = retentionDays > 0 ? retentionDays * dayMs : undefined;
  const writers = createKeyedQueue();
  const spending = createSpendingLedger({ store, retentionMs, reserveTtlMs });
  const stopSweeping = clock.every(sweepIntervalMs, () => {
    sweep(store, blobs, steadyClock.earliest()).catch((error: unknown) =>
      log.warn({ error }, "store sweep failed"),
    );
  });
  const isShared = opened.leases !== undefined;
  const isOpenToOthers = isShared || options.exclusive === false;
  const inbox = createInbox({ store, log, isShared, isOpenToOthers, retentionMs });
  backend.onDataLost(async () => {
    await restoreSealing(store, encryption);
    await fillIndexes(store, log);
    const events = await inbox.storeAnew();
    if (events > 0) log.warn({ events }, "accepted messages that the store lost are stored anew");
  });
  return {
    conversations: createConversationLog({ store, blobs, log, writers, clock, retentionMs }),
    inbox,
    queue,
    records: {
      get: (key) => store.get<Json>("record", key),
      set: (key, value, ttlMs) => store.write([{ kind: "set", at: { space: "record", key }, value, ttlMs }]),
      delete: (key) => store.write([{ kind: "delete", at: { space: "record", key } }]),
    },
    claims: toClaims(opened.leases),
    settings: createSettingsStore(store, createKeyedQueue()),
    spending,
    erasure: createErasure({ store, blobs, writers, spending, clock, retentionMs }),
    exportConversation: (conversationId) => exportConversation(store, blobs, conversationId, clock),
    async backup(folder) {
      if (typeof backup !== "function") throw new ParleyError("config", backup.unsupported);
      await backup(folder);
    },
    restored: opened.restored,
    ping: () => backend.ping(),
    findProblems: () => findProblems(backend),
    notes: () => backend.notes(),
    writes: () => backend.writes(),
    sizeBytes: () => sizeOf(opened),
    describe: () => (encryption.isOn ? `${name}, encrypted` : name),
    sweep: (now) => sweep(store, blobs, now),
    reencrypt: () => reencrypt({ store, blobs, encryption, log }),
    async close() {
      stopSweeping();
      await backend.close();
    },
  };
}

async function sizeOf({ sizeBytes }: OpenedBackend): Promise<number | undefined> {
  try {
    return await sizeBytes();
  } catch (error) {
    // An outage shows in other figures.
    if (error instanceof Error) return undefined;
    throw error;
  }
}

/** Leases that nobody renews. */
function toClaims(leases: Leases | undefined): Claims {
  return {
    isShared: leases !== undefined,
    claim: async (name, ttlMs) => leases === undefined || leases.take(`claim ${name}`, randomUUID(), ttlMs),
  };
}

async function findProblems(backend: Backend): Promise<readonly string[]> {
  const failure = await backend.ping().then(
    () => [],
    (error: unknown) => [toProblem(error)],
  );
  return [...backend.notes().problems, ...failure];
}

/** A failure in words; the message itself is for the log. */
function toProblem(error: unknown): string {
  const { problem, reason } = error instanceof ParleyError ? error.detail : {};
  if (problem === undefined) return "cannot be reached";
  return reason === undefined ? String(problem) : `${problem} (${reason})`;
}
