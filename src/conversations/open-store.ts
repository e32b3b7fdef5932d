import { right, wrong, type Check, type Finding } from "../core/checks.ts";
import { ParleyError, isParleyError } from "../core/errors.ts";
import type { Json } from "../core/events.ts";
import type { Inbox } from "../core/inbox.ts";
import type { SpendingLedger } from "../core/spending.ts";
import type {
  ConversationExport,
  ConversationQueue,
  Claims,
  Conversations,
  ConversationLists,
  Records,
} from "../core/storage.ts";
import type { Log, Meter } from "../core/telemetry.ts";
import { expiryTime, systemClock } from "../support/clock.ts";
import { createKeyedQueue } from "../support/queues.ts";
import {
  type Backend,
  type WriteCounts,
  type BackendOptions,
  type OpenedBackend,
  type RestoredStore,
  isAbsentStore,
  raisesVersion,
} from "./backend.ts";
import { backendOf } from "./backends.ts";
import { createBlobs } from "./blobs.ts";
import { createConversationLists } from "./conversation-lists.ts";
import { createConversationLog } from "./conversation-log.ts";
import { type Encryption, createEncryption } from "./encryption.ts";
import { createErasure, type Erasure } from "./erasure.ts";
import { exportConversation } from "./export.ts";
import { createInbox } from "./inbox.ts";
import { type KeyValueStore, createKeyValueStore, createSettingsStore } from "./key-value.ts";
import { createLeasedQueue, createLocalQueue } from "./leased-queue.ts";
import { migrateInbox } from "./migrate-inbox.ts";
import { sweep } from "./retention.ts";
import { createSpendingLedger } from "./spending-ledger.ts";
import { checkMarks } from "./store-marks.ts";
import { randomUUID } from "node:crypto";

/** How a store is opened. {@link BackendOptions} has what its backend needs. */
export interface StoreOptions extends BackendOptions {
  /** Keys that encrypt what people wrote or sent: 32 bytes in base64 or hex, newest first. Default: none. */
  readonly encryptionKeys?: readonly string[] | undefined;
  /** Older messages and blobs are removed within a day. By default, and with 0, they are kept for ever. */
  readonly retentionDays?: number | undefined;
  /** How many milliseconds a lease of a shared store lasts without renewal. Default 15 s. */
  readonly leaseMs?: number | undefined;
  /** After this many milliseconds an unsettled reserve of a call is released. Default 15 minutes. */
  readonly reserveTtlMs?: number | undefined;
  /** Learns of each read and write. */
  readonly meter?: Meter | undefined;
}

/** Everything that survives a crash. Failures are ParleyErrors `store-unavailable` or `store-corrupt`. */
export interface Store {
  readonly conversations: Conversations;
  readonly lists: ConversationLists;
  readonly inbox: Inbox;
  readonly queue: ConversationQueue;
  readonly erasure: Erasure;
  readonly spending: SpendingLedger;
  readonly records: Records;
  readonly claims: Claims;
  readonly settings: ReturnType<typeof createSettingsStore>;
  /** Exports a conversation as Markdown, JSON, pictures and voice notes. */
  exportConversation(conversationId: string): Promise<ConversationExport>;
  /**
   * Copies everything into a new folder while the store is in use. The copy is a store by itself.
   * @throws ParleyError `config` if the store is on a server, which has its own backups
   */
  backup(folder: string): Promise<void>;
  /**
   * Present for a week after a backup was restored. The replaced store may have answered messages sent from
   * `backedUpAt` to `restoredAt` that this store does not know, so a search for missed messages must not
   * answer them. It is absent on Redis, which has its own backups.
   */
  readonly restored: RestoredStore | undefined;
  /** Fails if the store cannot be read or written. */
  ping(): Promise<void>;
  /** Says why the store is not ready, including `ping`. It is empty if it is, and never rejects. */
  findProblems(): Promise<readonly string[]>;
  writes(): WriteCounts;
  /** The bytes of the store, or of the whole server, if known. It never rejects. */
  sizeBytes(): Promise<number | undefined>;
  /** The description for the start lines, without credentials. */
  describe(): string;
  /** Removes expired data from the disk, and runs every ten minutes by itself. `now` is in Unix ms. */
  sweep(now: number): Promise<void>;
  /** Closes the file or the connections. The queue must be idle. */
  close(): Promise<void>;
}

const dayMs = 24 * 60 * 60 * 1000;
const defaultReserveTtlMs = 15 * 60 * 1000;
const sweepIntervalMs = 10 * 60 * 1000;

/**
 * Opens the store of `url`, whose scheme chooses the backend.
 * @throws ParleyError `config` (unknown URL, wrong keys), `store-unavailable`, `store-corrupt`, `store-newer`
 */
export async function openStore(url: string, options: StoreOptions): Promise<Store> {
  const { encryptionKeys, log, meter, report = toReporter(log), isLook = false } = options;
  const encryption = createEncryption(encryptionKeys);
  const kind = backendOf(url);
  const opened = await kind.open(url, { ...options, report });
  const store = createKeyValueStore(opened.backend, { encryption, meter });
  try {
    report(await checkMarks(store, encryption, isLook));
    if (raisesVersion(options)) await migrateInbox(store, { log, retentionMs: toRetentionMs(options) });
    return toStore({ opened, isShared: kind.isShared, store, encryption, options });
  } catch (error) {
    await opened.backend.close();
    throw error;
  }
}

function toRetentionMs({ retentionDays = 0 }: Pick<StoreOptions, "retentionDays">): number | undefined {
  return retentionDays > 0 ? retentionDays * dayMs : undefined;
}

/** Logs what is not right. */
function toReporter(log: Log): (finding: Finding) => void {
  return ({ level, subject, text, remedy }) => {
    if (level !== "right") log[level === "wrong" ? "error" : "warn"]({ subject }, `${text}: ${remedy}`);
  };
}

/**
 * The check of the store for the doctor, which opens it beside a running bot, makes nothing and tells what
 * that reports.
 */
export function createStoreChecks(url: string, options: StoreOptions): Check[] {
  const subject = "Store";
  return [
    {
      subject,
      async run() {
        const findings: Finding[] = [];
        const report = (finding: Finding) => void findings.push(finding);
        try {
          const store = await openStore(url, { ...options, isLook: true, report });
          await store.close();
        } catch (error) {
          if (!isParleyError(error)) throw error;
          const [problem = "", remedy = "see docs/operations.md"] = error.message.split(/: (.*)/s);
          report(isAbsentStore(error) ? right(subject, error.message) : wrong(subject, problem, remedy));
        }
        return findings.toSorted((a, b) => Number(b.subject === subject) - Number(a.subject === subject));
      },
    },
  ];
}

interface Parts {
  readonly opened: OpenedBackend;
  readonly isShared: boolean;
  readonly store: KeyValueStore;
  readonly encryption: Encryption;
  readonly options: StoreOptions;
}

function toStore({ opened, isShared, store, encryption, options }: Parts): Store {
  const { log, retentionDays = 0, reserveTtlMs = defaultReserveTtlMs, clock = systemClock } = options;
  const { backend, name, backup, writes } = opened;
  const blobs = createBlobs(opened, { store, log, encryption });
  const retentionMs = toRetentionMs({ retentionDays });
  const writers = createKeyedQueue();
  const spending = createSpendingLedger({ store, retentionMs, reserveTtlMs });
  const erasure = createErasure({ store, blobs, writers, spending, retentionMs });
  const stopSweeping = clock.every(sweepIntervalMs, () => {
    sweep(store, blobs, expiryTime() ?? 0).catch((error: unknown) =>
      log.warn({ error }, "store sweep failed"),
    );
  });
  return {
    conversations: createConversationLog({ store, blobs, writers, retentionMs }),
    lists: createConversationLists({ store, log, clock }),
    inbox: createInbox({
      store,
      log,
      writers,
      eraseFiles: (...given) => erasure.eraseFilesOf(...given),
      retentionMs,
      clock,
    }),
    queue: isShared
      ? createLeasedQueue({
          lease: (...given) => backend.lease(...given),
          log,
          clock,
          ttlMs: options.leaseMs,
        })
      : createLocalQueue(),
    records: {
      get: (key) => store.get<Json>("record", key),
      set: (key, value, ttlMs) => store.write([{ kind: "set", at: { space: "record", key }, value, ttlMs }]),
      async update(key, change, ttlMs) {
        const at = { space: "record", key } as const;
        for (;;) {
          const { value: before, unchanged } = await store.observe<Json>(at);
          const value = change(before);
          if (value === undefined) return;
          if ((await store.writeIf([unchanged], [{ kind: "set", at, value, ttlMs }])) === undefined) return;
        }
      },
      async delete(key) {
        await store.write([{ kind: "delete", at: { space: "record", key } }]);
        await store.scrub();
      },
    },
    claims: {
      isShared,
      // Nobody renews it, so that its end is what its holder asked for.
      claim: (name, ttlMs) => backend.lease(`claim ${name}`, randomUUID(), ttlMs),
    },
    settings: createSettingsStore(store, createKeyedQueue()),
    spending,
    erasure,
    exportConversation: (conversationId) => exportConversation(store, blobs, conversationId),
    async backup(folder) {
      if (typeof backup !== "function") throw new ParleyError("config", backup.unsupported);
      await backup(folder);
    },
    restored: opened.restored,
    async ping() {
      await backend.look();
    },
    findProblems: () => findProblems(backend),
    writes,
    sizeBytes: () => sizeOf(opened),
    describe: () => (encryption.isOn ? `${name}, encrypted` : name),
    sweep: (now) => sweep(store, blobs, now),
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
    // Other metrics show an outage.
    if (error instanceof Error) return undefined;
    throw error;
  }
}

async function findProblems(backend: Backend): Promise<readonly string[]> {
  try {
    return (await backend.look()).problems;
  } catch (error) {
    return [toProblem(error)];
  }
}

/** A failure in words, because its message is for the log. */
function toProblem(error: unknown): string {
  const { problem, reason } = error instanceof ParleyError ? error.detail : {};
  if (problem === undefined) return "cannot be reached";
  return reason === undefined ? String(problem) : `${problem} (${reason})`;
}
