import type { Finding } from "../core/checks.ts";
import type { Clock } from "../core/clock.ts";
import type { Log } from "../core/telemetry.ts";
import type { Leases } from "./leased-queue.ts";

/**
 * The spaces of the store; each is a Keyv namespace of its own.
 * `head`: where a conversation ends. `slot`: its messages. `id`: the slot of a message id. `settings`.
 * `blob`: media type and size, or the bytes, of a blob. `inbox`: accepted events. `turn`: progress of their turns.
 * `layer`: what people set for a server, channel or person. `record`: small values of other rooms.
 * `meta`: the store's own.
 */
export const spaces = [
  "head",
  "slot",
  "id",
  "settings",
  "blob",
  "inbox",
  "turn",
  "layer",
  "record",
  "meta",
] as const;
export type Space = (typeof spaces)[number];

/** Where an entry is. `key` may hold any Unicode, NUL included, and is case-sensitive. */
export interface EntryAddress {
  readonly space: Space;
  readonly key: string;
}

/**
 * What must hold for a write: that an entry is absent, with `mustExist` that it is there, or with `mustBe` that its stored
 * value is this one.
 */
export interface WriteCondition extends EntryAddress {
  readonly mustExist?: boolean;
  readonly mustBe?: string;
}

/** One step of an atomic write. Values are encoded already; times are Unix ms of `steadyClock`. */
export type BackendChange =
  | {
      readonly kind: "set";
      readonly at: EntryAddress;
      readonly value: string;
      readonly expires: number | undefined;
    }
  | { readonly kind: "delete"; readonly at: EntryAddress }
  /** Moves the expiry of an entry, if it exists. */
  | { readonly kind: "keep"; readonly at: EntryAddress; readonly expires: number | undefined }
  | IndexChange;

/** A change of a sorted index. Names and members may hold any Unicode, NUL included; scores are safe integers. */
export type IndexChange =
  /** Adds a member or raises its score. A lower score never replaces a higher one. */
  | { readonly kind: "add-member"; readonly index: string; readonly member: string; readonly score: number }
  /** Adds a member after all others: with that score, or with the next one after the highest. */
  | {
      readonly kind: "append-member";
      readonly index: string;
      readonly member: string;
      readonly score: number;
    }
  /** Adds to a member's score, which begins at 0. */
  | { readonly kind: "add-score"; readonly index: string; readonly member: string; readonly score: number }
  | { readonly kind: "remove-member"; readonly index: string; readonly member: string }
  /** Removes every member with that score or a lower one. */
  | { readonly kind: "trim-index"; readonly index: string; readonly maxScore: number };

/** Begins the names of indexes whose scores change with every turn and that are seldom read in order. */
export const countedPrefix = "ledger:";

/** A member of a sorted index. */
export interface IndexMember {
  readonly member: string;
  readonly score: number;
}

/** When a write resolves: once it is on disk, or once it survives the end of the process. */
export type Resolves = "durable" | "soon";

/** A part of a sorted index. */
export interface IndexPage {
  readonly order: "highest-first" | "lowest-first";
  /** Only members with this score or a higher one; default all. */
  readonly minScore?: number | undefined;
  /** Of the members that `minScore` leaves. */
  readonly offset: number;
  readonly max: number;
}

/** A limit on a sum of scores. A member that does not exist counts as 0. */
export interface ScoreLimit {
  /** `weight`: what the score is multiplied with; default 1. */
  readonly terms: readonly { readonly index: string; readonly member: string; readonly weight?: number }[];
  /** The highest sum at which the changes apply. */
  readonly max: number;
}

/** A limit that was passed: its position, and the scores of its terms. */
export interface PassedLimit {
  readonly position: number;
  readonly scores: readonly number[];
}

/** Reads of one space, as Keyv calls them. Expired entries are absent. Failures are the service's own errors. */
export interface EntryReader {
  get(key: string): Promise<string | undefined>;
  /** In the order of the keys. */
  getMany(keys: string[]): Promise<(string | undefined)[]>;
  hasMany(keys: string[]): Promise<boolean[]>;
}

/** How a service was written to since it was opened. */
export interface WriteCounts {
  /** Atomic writes that changed something: transactions, or scripts of a server. */
  readonly commits: number;
  /** Those of them that somebody waited for to be durable. */
  readonly durableCommits: number;
  /** How often this process had the disk written; 0 where a server does so. */
  readonly syncs: number;
}

/** What operators should know of a service that can be reached. In words, without credentials and paths. */
export interface BackendNotes {
  /** What keeps it from serving every entry: damage. */
  readonly problems: readonly string[];
  /** What happened, although it works. */
  readonly warnings: readonly string[];
  /** How often the loss of written data was noticed since the start. */
  readonly dataLosses: number;
}

/**
 * A key-value service underneath Keyv, with what Keyv lacks: set-if-absent, atomic writes of several entries, and
 * sorted indexes (members sorted by a number; nothing in them expires). Keys, index names and members may hold any
 * Unicode, NUL included. Except in {@link EntryReader}, every failure is a ParleyError `store-unavailable` or
 * `store-corrupt`.
 */
export interface Backend {
  reader(space: Space): EntryReader;
  /**
   * Applies all changes, or none if one of the conditions does not hold. Durable when it resolves (`resolves`), and one
   * durable write however many changes there are. Resolves to the position of the first condition that does not hold,
   * or -1 when everything was written.
   */
  apply(
    conditions: readonly WriteCondition[],
    changes: readonly BackendChange[],
    resolves?: Resolves,
  ): Promise<number>;
  /**
   * Applies all changes, or none if the sum of a limit is above its `max`; resolves to the first such limit. Atomic
   * like `apply`. Survives the end of the process, but maybe not a power failure: it waits for no disk.
   */
  count(limits: readonly ScoreLimit[], changes: readonly IndexChange[]): Promise<PassedLimit | undefined>;
  /** Writes a value if it is still `old`, and keeps its expiry; false: it was changed or removed. */
  replace(at: EntryAddress, old: string, value: string, resolves?: Resolves): Promise<boolean>;
  /** Members in the order of their scores. Members with equal scores come in a stable order. */
  readIndex(name: string, page: IndexPage): Promise<readonly IndexMember[]>;
  /** All keys of a space, in any order, each once. May scan the whole service: for maintenance only. */
  keys(space: Space): AsyncIterable<string>;
  /** Removes expired entries; resolves to their number, 0 when the service removes them by itself. */
  sweep(now: number): Promise<number>;
  /**
   * Removes deleted data from the service's files too, as far as the service can. A server does so in the background:
   * then it resolves once that is requested, and the request outlives this process.
   */
  scrub(): Promise<void>;
  /**
   * Runs work that uses the service (through Keyv) within its deadline. Failures become ParleyErrors; ParleyErrors
   * pass through.
   */
  readonly attempt: <T>(work: () => Promise<T>) => Promise<T>;
  /**
   * Fails when the service cannot be read or written. As long as writes succeed it writes nothing; after one that
   * failed it tries one.
   */
  ping(): Promise<void>;
  writes(): WriteCounts;
  /** What operators should know besides. */
  notes(): BackendNotes;
  /**
   * Calls `listener` when the service lost its data and works on without: it writes again what this process needs in
   * there. Repeated until it resolves; `ping` fails until then. One listener.
   */
  onDataLost(listener: () => Promise<void>): void;
  close(): Promise<void>;
}

/**
 * One kind of store: one folder and one line in `backends.ts`. Loaded with the settings, so it imports its driver
 * only in `open`.
 */
export interface StoreBackend {
  /** URL schemes in lower case, without the colon. */
  readonly schemes: readonly string[];
  /** The forms of its URLs, for error messages. */
  readonly urlForms: readonly string[];
  /** Whether several processes may run turns on one store. */
  readonly isShared: boolean;
  /** What is wrong with a URL of these schemes, as the end of "STORE_URL …"; `undefined`: nothing. Never quotes it. */
  checkUrl(url: string): string | undefined;
  /** Folder for data that is kept outside the store (page uploads), if the URL names one. May be relative. */
  dataFolder(url: string): string | undefined;
  /** @throws ParleyError `config`, `store-unavailable`, `store-corrupt`, `store-newer` */
  open(url: string, options: BackendOptions): Promise<OpenedBackend>;
  /**
   * Looks at a store for the doctor, also beside a running bot. Writes nothing but a probe, which it removes: no schema,
   * no migration. Default: the doctor says that it cannot look.
   * @throws ParleyError `store-unavailable`, `store-corrupt`
   */
  inspect?(url: string, options: Pick<BackendOptions, "log" | "deadlineMs">): Promise<StoreInspection>;
}

/** What {@link StoreBackend.inspect} found. */
export interface StoreInspection {
  /** Version, space, durability. */
  readonly findings: readonly Finding[];
  /** Whether the store has any entry. */
  readonly hasEntries: boolean;
  /** The stored form of some entries, in the order of the addresses; `undefined` for one that does not exist. */
  readonly entries: readonly (string | undefined)[];
}

/** The entries that {@link StoreBackend.inspect} reads: by them the doctor knows whether the keys fit the store. */
export const inspectedEntries: readonly EntryAddress[] = [{ space: "meta", key: "sealing" }];

/** How a store is opened. Each backend ignores what it has no use for. */
export interface BackendOptions {
  readonly log: Log;
  /** A backend for one process: false admits a second process that runs no turns. Default true. */
  readonly exclusive?: boolean | undefined;
  /** A server: longest wait for a response, in milliseconds. Default 5 s. */
  readonly deadlineMs?: number | undefined;
  /** Default: the time of this process. */
  readonly clock?: Clock | undefined;
}

/**
 * A backup was put in the place of the store. What was accepted and answered between these times is not in it, so
 * messages sent between them that it does not know may have been answered. Unix ms.
 */
export interface RestoredStore {
  /** Before the copy began. */
  readonly backedUpAt: number;
  /** When the copy was first opened. */
  readonly restoredAt: number;
}

/** An open backend and what the store builds around it. */
export interface OpenedBackend {
  readonly backend: Backend;
  /** For the start lines; without credentials. */
  readonly name: string;
  /** Where blobs are kept: as entries of the store (for several machines), or as files in a folder. */
  readonly blobs: "entries" | { readonly folder: string };
  /** Present when several processes may run turns on this store. */
  readonly leases: Leases | undefined;
  /** Present for a week after a backup was put in place; a server's are not noticed. */
  readonly restored: RestoredStore | undefined;
  /** Bytes that its files or tables take; of Redis: the memory of the whole server. */
  readonly sizeBytes: () => Promise<number>;
  /** Copies everything into a new folder while the store is in use; or the words why it cannot. */
  readonly backup: ((folder: string) => Promise<void>) | { readonly unsupported: string };
}
