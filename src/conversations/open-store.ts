import { right, warning, wrong, type Check, type Finding } from "../core/checks.ts";
import { ParleyError, isParleyError } from "../core/errors.ts";
import type { Json } from "../core/events.ts";
import type { Inbox } from "../core/inbox.ts";
import type { SpendingLedger } from "../core/spending.ts";
import type {
  ConversationExport,
  ConversationQueue,
  Claims,
  Conversations,
  Records,
} from "../core/storage.ts";
import type { Log, Meter } from "../core/telemetry.ts";
import { expiryTime, systemClock } from "../support/clock.ts";
import { createKeyedQueue } from "../support/queues.ts";
import {
  type EntryAddress,
  spaces,
  type Backend,
  type WriteCounts,
  type BackendOptions,
  type OpenedBackend,
  type RestoredStore,
  isAbsentStore,
} from "./backend.ts";
import { backendOf } from "./backends.ts";
import { createBlobEntries, createBlobFiles, type BlobStore } from "./blobs.ts";
import { createConversationLog } from "./conversation-log.ts";
import { type Encryption, createEncryption } from "./encryption.ts";
import { createErasure, type Erasure } from "./erasure.ts";
import { exportConversation } from "./export.ts";
import { createInbox } from "./inbox.ts";
import {
  type KeyValueStore,
  readRaw,
  replaceValue,
  createKeyValueStore,
  createSettingsStore,
} from "./key-value.ts";
import { createLeasedQueue, createLocalQueue, type Leases } from "./leased-queue.ts";
import { sweep } from "./retention.ts";
import { createSpendingLedger } from "./spending-ledger.ts";
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
  /**
   * Rewrites what is not encrypted with the newest key and bound to its address, and refuses other forms from
   * then on. Resolves to the number of rewritten entries and blobs.
   */
  reencrypt(): Promise<number>;
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
  const opened = await backendOf(url).open(url, { ...options, report });
  const store = createKeyValueStore(opened.backend, { encryption, meter });
  try {
    report(await prepareSealing(store, encryption, isLook));
    return toStore({ opened, store, encryption, options });
  } catch (error) {
    await opened.backend.close();
    throw error;
  }
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
  readonly store: KeyValueStore;
  readonly encryption: Encryption;
  readonly options: StoreOptions;
}

function toStore({ opened, store, encryption, options }: Parts): Store {
  const { log, retentionDays = 0, reserveTtlMs = defaultReserveTtlMs, clock = systemClock } = options;
  const { backend, name, backup, leases } = opened;
  const blobs =
    opened.blobs === "entries"
      ? createBlobEntries(store)
      : createBlobFiles({ store, folder: opened.blobs.folder, log, encryption });
  const retentionMs = retentionDays > 0 ? retentionDays * dayMs : undefined;
  const writers = createKeyedQueue();
  const spending = createSpendingLedger({ store, retentionMs, reserveTtlMs });
  const stopSweeping = clock.every(sweepIntervalMs, () => {
    sweep(store, blobs, expiryTime() ?? 0).catch((error: unknown) =>
      log.warn({ error }, "store sweep failed"),
    );
  });
  return {
    conversations: createConversationLog({ store, blobs, log, writers, clock, retentionMs }),
    inbox: createInbox({ store, log, retentionMs }),
    queue:
      leases === undefined
        ? createLocalQueue()
        : createLeasedQueue({ leases, log, clock, ttlMs: options.leaseMs }),
    records: {
      get: (key) => store.get<Json>("record", key),
      set: (key, value, ttlMs) => store.write([{ kind: "set", at: { space: "record", key }, value, ttlMs }]),
      async update(key, change) {
        const at = { space: "record", key } as const;
        for (;;) {
          const { value: before, unchanged } = await store.observe<Json>(at);
          const value = change(before);
          if (value === undefined) return;
          if ((await store.writeIf([unchanged], [{ kind: "set", at, value }])) === undefined) return;
        }
      },
      async delete(key) {
        await store.write([{ kind: "delete", at: { space: "record", key } }]);
        await store.backend.scrub();
      },
    },
    claims: toClaims(leases),
    settings: createSettingsStore(store, createKeyedQueue()),
    spending,
    erasure: createErasure({ store, blobs, writers, spending, retentionMs }),
    exportConversation: (conversationId) => exportConversation(store, blobs, conversationId),
    async backup(folder) {
      if (typeof backup !== "function") throw new ParleyError("config", backup.unsupported);
      await backup(folder);
    },
    restored: opened.restored,
    ping: () => backend.ping(),
    findProblems: () => findProblems(backend),
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
    // Other metrics show an outage.
    if (error instanceof Error) return undefined;
    throw error;
  }
}

/** Makes claims from leases that nobody renews. */
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
  return [...backend.problems(), ...failure];
}

/** A failure in words, because its message is for the log. */
function toProblem(error: unknown): string {
  const { problem, reason } = error instanceof ParleyError ? error.detail : {};
  if (problem === undefined) return "cannot be reached";
  return reason === undefined ? String(problem) : `${problem} (${reason})`;
}

/** The options of a change of keys. */
interface KeyChangeOptions {
  readonly store: KeyValueStore;
  readonly blobs: BlobStore;
  readonly encryption: Encryption;
  readonly log: Log;
}

/**
 * Rewrites everything that is not encrypted with the newest key and bound to its address, while the store is
 * in use. It then marks the store, so that other forms are refused and older keys are not needed. It can be
 * interrupted and repeated. Values that cannot be decrypted are logged and left. Resolves to the number of
 * rewritten entries and blobs.
 * @throws ParleyError `config` if there is no key, or one of the store is missing
 */
async function reencrypt(options: KeyChangeOptions): Promise<number> {
  const { store, blobs, encryption, log } = options;
  if (!encryption.isOn)
    throw new ParleyError("config", "STORE_ENCRYPTION_KEYS is empty: there is no key to encrypt with");
  let changed = await blobs.reencrypt();
  for (const space of spaces) {
    for await (const key of store.backend.keys(space)) {
      try {
        if (await reencryptEntry(store, encryption, { space, key })) changed++;
      } catch (error) {
        if (!isParleyError(error, "store-corrupt")) throw error;
        log.error({ space, key, err: error }, "damaged entry left as it is");
      }
    }
  }
  await completeSealing(store, encryption);
  await store.backend.scrub();
  return changed;
}

async function reencryptEntry(
  store: KeyValueStore,
  { entries }: Encryption,
  at: EntryAddress,
): Promise<boolean> {
  const [old] = await readRaw(store, at.space, [at.key]);
  if (old === undefined || entries.isCurrent(old)) return false;
  // If this fails, a concurrent write has stored it with the newest key.
  return replaceValue(store.backend, at, old, entries.seal(at, entries.open(at, old)));
}

/**
 * `complete` means that everything is encrypted and bound to its address, and anything else is refused.
 * `migrating` means that values from before encryption are accepted until `reencrypt`.
 */
type SealingState = "complete" | "migrating";

/** The mark is encrypted and bound like every entry, so that it cannot be made without a key. */
const mark = { space: "meta", key: "sealing" } as const;

const batchSize = 200;

/**
 * Decides which forms of stored values are accepted. If the keys do not fit the store, it fails at the start,
 * before the first message. A fresh store is `complete` at once. A look writes no mark.
 * @throws ParleyError `config` (a key is missing), `store-corrupt` (the mark was changed or removed)
 */
async function prepareSealing(
  store: KeyValueStore,
  encryption: Encryption,
  isLook: boolean,
): Promise<Finding> {
  const subject = "Encryption";
  encryption.acceptsPlain = false;
  const found = await readState(store);
  if (!encryption.isOn) return right(subject, "off: there is no key in STORE_ENCRYPTION_KEYS");
  const state = found ?? (await createState(store, encryption, isLook));
  encryption.acceptsPlain = state !== "complete";
  return encryption.acceptsPlain
    ? warning(
        subject,
        "on; the store accepts values that are not encrypted, from before",
        "run npm run reencrypt once",
      )
    : right(subject, "on, and the keys fit the store");
}

/** Accepts only encrypted values that are bound to their address, from now on and even after a restart. */
async function completeSealing(store: KeyValueStore, encryption: Encryption): Promise<void> {
  await store.write([{ kind: "set", at: mark, value: "complete" satisfies SealingState }]);
  encryption.acceptsPlain = false;
}

async function readState(store: KeyValueStore): Promise<SealingState | undefined> {
  return store.get<SealingState>(mark.space, mark.key);
}

async function createState(
  store: KeyValueStore,
  encryption: Encryption,
  isLook: boolean,
): Promise<SealingState> {
  const found = await findForms(store, encryption);
  if (found === "bound") {
    // Another process may have created both in the meantime.
    const state = await readState(store);
    if (state !== undefined) return state;
    throw new ParleyError(
      "store-corrupt",
      "the mark that everything in the store is encrypted was removed: restore a backup",
    );
  }
  const value: SealingState = found === "empty" ? "complete" : "migrating";
  if (isLook) return value;
  await store.writeIf([mark], [{ kind: "set", at: mark, value }]);
  return (await readState(store)) ?? value;
}

/**
 * Whether any entry is bound to its address, which happens only after the mark is written. It reads every
 * entry once in the life of a store, except blobs, which are large.
 */
async function findForms(store: KeyValueStore, encryption: Encryption): Promise<"empty" | "old" | "bound"> {
  let found: "empty" | "old" = "empty";
  for (const space of spaces) {
    let keys: string[] = [];
    const hasBound = async () => {
      const values = space === "blob" ? [] : await readRaw(store, space, keys);
      keys = [];
      return values.some((value) => value !== undefined && encryption.entries.formOf(value) === "bound");
    };
    for await (const key of store.backend.keys(space)) {
      found = "old";
      keys.push(key);
      if (keys.length >= batchSize && (await hasBound())) return "bound";
    }
    if (keys.length > 0 && (await hasBound())) return "bound";
  }
  return found;
}
