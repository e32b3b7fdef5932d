import { right, warning, type Finding } from "../core/checks.ts";
import type { Clock } from "../core/clock.ts";
import { ParleyError } from "../core/errors.ts";
import type { Log } from "../core/telemetry.ts";
import type { EntryAddress, Space } from "./keys.ts";

/**
 * What must be true for a write. By default the entry must be absent, with `mustExist` it must exist, and
 * with `mustBe` it must have this stored value.
 */
export interface WriteCondition extends EntryAddress {
  readonly mustExist?: boolean;
  readonly mustBe?: string;
}

/** One step of an atomic write. Values are already encoded, and times are Unix ms. */
export type BackendChange =
  | {
      readonly kind: "set";
      readonly at: EntryAddress;
      readonly value: string;
      /** With `kept`, an existing entry keeps its expiry, and an absent one stays absent. */
      readonly expires: number | "kept" | undefined;
    }
  | { readonly kind: "delete"; readonly at: EntryAddress }
  /** Changes the expiry of an entry if it exists. */
  | { readonly kind: "keep"; readonly at: EntryAddress; readonly expires: number | undefined }
  | IndexChange;

/** A change of a sorted index. Names and members may hold any Unicode but NUL, scores are safe integers. */
export type IndexChange =
  /** Adds a member or raises its score. A lower score never replaces a higher one. */
  | { readonly kind: "add-member"; readonly index: string; readonly member: string; readonly score: number }
  /** Adds a member after all others, with this score or with the next one after the highest. */
  | {
      readonly kind: "append-member";
      readonly index: string;
      readonly member: string;
      readonly score: number;
    }
  /** Adds to a member's score, which begins at 0. */
  | { readonly kind: "add-score"; readonly index: string; readonly member: string; readonly score: number }
  | { readonly kind: "remove-member"; readonly index: string; readonly member: string }
  /** Removes every member with this score or a lower one. */
  | { readonly kind: "trim-index"; readonly index: string; readonly maxScore: number };

/** A member of a sorted index. */
export interface IndexMember {
  readonly member: string;
  readonly score: number;
}

/**
 * When a write resolves: when it is on disk, already when it survives the end of the process, or when deleted
 * data has also been removed from the service's files as far as the service can. A server does that in the
 * background, so there it is when that is requested, and the request outlives this process.
 */
export type Resolves = "durable" | "soon" | "scrubbed";

/** Selects a part of a sorted index. */
export interface IndexPage {
  readonly order: "highest-first" | "lowest-first";
  /**
   * Only members that are behind this one in the order are read. It may be gone or have another score by now.
   * Every member is behind the empty one of its score, lowest first. Default: all.
   */
  readonly after?: IndexMember | undefined;
  readonly max: number;
}

/** A limit on a sum of scores. A missing member counts as 0. */
export interface ScoreLimit {
  /** The terms of the sum. `weight` multiplies the score, by default with 1. */
  readonly terms: readonly { readonly index: string; readonly member: string; readonly weight?: number }[];
  /** The highest sum with which the changes are applied. */
  readonly max: number;
}

/** The position of a limit that was exceeded, and the scores of its terms. */
export interface PassedLimit {
  readonly position: number;
  readonly scores: readonly number[];
}

/** How much was written to a service since it was opened. */
export interface WriteCounts {
  /** The number of atomic writes that changed something, as transactions or as scripts of a server. */
  readonly commits: number;
  /** How many of them somebody waited for to become durable. */
  readonly durableCommits: number;
  /** How often this process synced the disk. It is 0 if a server does that. */
  readonly syncs: number;
}

/** A key of a space or the name of an index, and when an entry expires, in Unix ms. */
export interface ScannedKey {
  readonly key: string;
  readonly expires: number | undefined;
}

/** What {@link Backend.look} has found. */
export interface LookedAt {
  /**
   * Damage that keeps a reachable service from serving every entry, in words without credentials and paths.
   */
  readonly problems: readonly string[];
  /** How many expired entries were removed. It is 0 if the service removes them itself. */
  readonly swept: number;
}

/**
 * A key-value service below Keyv. It adds what Keyv lacks: set-if-absent, atomic writes of several entries,
 * and sorted indexes, whose members are sorted by a number and never expire. Keys, index names and members
 * may hold any Unicode but NUL, of at most 1,000 bytes. Every failure is a ParleyError `store-unavailable` or
 * `store-corrupt`, and a service that does not respond is one.
 */
export interface Backend {
  /**
   * Reads the values of entries of any spaces in one round trip, in the order of the addresses. Expired
   * entries are absent. With `presence`, an empty value stands for each entry that is there.
   */
  read(addresses: readonly EntryAddress[], what?: "presence"): Promise<(string | undefined)[]>;
  /**
   * Applies all changes, or none if a condition is not met. It is one durable write for any number of
   * changes, and durable when it resolves unless `resolves` says otherwise. Resolves to the position of the
   * first condition that is not met, or to -1 if everything was written.
   */
  apply(
    conditions: readonly WriteCondition[],
    changes: readonly BackendChange[],
    resolves?: Resolves,
  ): Promise<number>;
  /**
   * Applies all changes, or none if a limit's sum is above its `max`. Resolves to the first such limit. It is
   * atomic like `apply` but does not wait for a disk, so a power failure may undo it.
   */
  count(limits: readonly ScoreLimit[], changes: readonly IndexChange[]): Promise<PassedLimit | undefined>;
  /** Reads members in the order of their scores. Those with equal scores are in the order of their names. */
  range(index: string, page: IndexPage): Promise<readonly IndexMember[]>;
  /**
   * Returns each key of a space, or the name of each sorted index, once and in any order. It may scan the
   * whole service, for maintenance only.
   */
  scan(what: Space | "indexes"): AsyncIterable<ScannedKey>;
  /**
   * Takes, renews or releases a lease, which has one holder at a time until it expires. Returns false if
   * another holder has it. A service for one process has no others.
   */
  lease(name: string, holder: string, ttlMs: number | "release"): Promise<boolean>;
  /**
   * Fails if the service cannot be read or written. It writes only if the last write failed, or to remove
   * entries that have expired until a time (Unix ms).
   */
  look(sweepUntil?: number): Promise<LookedAt>;
  close(): Promise<void>;
}

/**
 * A kind of store, which has a folder and a line in `backends.ts`. It is loaded with the settings, so it
 * imports its driver only in `open`.
 */
export interface StoreBackend {
  /** The URL schemes in lower case, without the colon. */
  readonly schemes: readonly string[];
  /** The forms of its URLs for error messages. */
  readonly urlForms: readonly string[];
  /** Whether several processes may run turns on one store. */
  readonly isShared: boolean;
  /** Ends "STORE_URL …" if a URL of these schemes is wrong. It never quotes the URL. */
  checkUrl(url: string): string | undefined;
  /**
   * What a well-formed URL leaves open to others on the network, as the end of a sentence with the remedy
   * after a colon. Without the method it is nothing.
   */
  findExposure?(url: string): string | undefined;
  /** A folder for data outside of the store (page uploads), if the URL names one. It may be relative. */
  dataFolder(url: string): string | undefined;
  /**
   * Opens a store.
   * @throws ParleyError `config`, `store-unavailable`, `store-corrupt`, `store-newer`. What follows a colon
   *   in its message says what to do
   */
  open(url: string, options: BackendOptions): Promise<OpenedBackend>;
}

/** How a store is opened. Each backend ignores what it does not need. */
export interface BackendOptions {
  readonly log: Log;
  /**
   * For one-process backends. False allows another process that runs no turns. True keeps others away from a
   * look, too. Default: true for the bot.
   */
  readonly exclusive?: boolean | undefined;
  /**
   * For the doctor, beside a running bot. It opens only what is there, makes no file, schema or mark, and
   * reads the whole of a file. A store that does not exist yet is the error of {@link absentStore}.
   */
  readonly isLook?: boolean | undefined;
  /**
   * Learns what an admin should know about the service: version, space, durability, damage. It is called
   * before `open` resolves or rejects.
   */
  readonly report?: ((finding: Finding) => void) | undefined;
  /** For servers. The longest wait for a response, in milliseconds. Default 5 s. */
  readonly deadlineMs?: number | undefined;
  /**
   * For servers. Called once when the service has lost its data, after which `ping` fails. The process is
   * to end.
   */
  readonly onDataLost?: (() => void) | undefined;
  /** Default: the time of this process. */
  readonly clock?: Clock | undefined;
}

const absent = "does not exist yet";

/** The error of a look at a store that the first start will create. */
export function absentStore(name: string): ParleyError {
  return new ParleyError("config", `${name} ${absent}: the first start creates it`, {
    detail: { problem: absent },
  });
}

/** Whether an error is that of {@link absentStore}. */
export function isAbsentStore(error: ParleyError): boolean {
  return error.detail["problem"] === absent;
}

/**
 * A backup that replaced the store. It lacks what was accepted and answered between these times, so unknown
 * messages from between them may have been answered. Times are Unix ms.
 */
export interface RestoredStore {
  /** The time before the copy began. */
  readonly backedUpAt: number;
  /** The time when the copy was first opened. */
  readonly restoredAt: number;
}

/** An open backend, with what the store builds around it. */
export interface OpenedBackend {
  readonly backend: Backend;
  /** The name for the start lines, without credentials. */
  readonly name: string;
  /** Where blobs are kept: as entries, if several machines share the store, or as files in a folder. */
  readonly blobs: "entries" | { readonly folder: string };
  /** Present for a week after a backup was restored. Restored servers are not noticed. */
  readonly restored: RestoredStore | undefined;
  readonly writes: () => WriteCounts;
  /** The bytes of its files or tables, or the memory of the whole server for Redis. */
  readonly sizeBytes: () => Promise<number>;
  /** Copies everything into a new folder while the store is in use, or says why it cannot. */
  readonly backup: ((folder: string) => Promise<void>) | { readonly unsupported: string };
}

/**
 * The version of a store. A change of what is stored raises it, and one of the version before is opened and
 * raised. A change of what is there already is made by a copy (`copy-store.ts`), and refuses others.
 */
export const storeVersion = 5;
const oldestVersion = storeVersion - 1;

/**
 * Checks the version of a store. No release has written those from before version 4.
 * @throws ParleyError `config` for earlier ones, `store-newer` for later ones
 */
export function expectKnownVersion(name: string, version: number): void {
  const known = storeVersion;
  if (version < oldestVersion)
    throw new ParleyError(
      "config",
      `${name} was written by a Parley from before the first release: name an empty store in STORE_URL; the Parley that wrote this one can export its conversations`,
    );
  if (version > known)
    throw new ParleyError(
      "store-newer",
      `${name} was written by a newer Parley (its version is ${version}, this one knows ${known}): update Parley, or restore an older backup`,
      { detail: { version, known } },
    );
}

/** Whether a store is opened by the bot, which alone raises its version, and by no program beside it. */
export function raisesVersion(options: Pick<BackendOptions, "exclusive" | "isLook">): boolean {
  return options.isLook !== true && options.exclusive !== false;
}

/**
 * Reports the version of a store.
 * @param found the one that it had when it was opened
 */
export function reportVersion(
  name: string,
  found: number,
  options: Pick<BackendOptions, "exclusive" | "isLook" | "report">,
): void {
  const { report = () => {} } = options;
  const isRaised = raisesVersion(options);
  report(right("Store", `${name}, version ${isRaised ? storeVersion : found}`));
  if (found === storeVersion) return;
  const raised = isRaised ? "it was raised to" : "the next start raises it to";
  report(
    warning(
      "Store version",
      `${name} was of version ${found}; ${raised} ${storeVersion}`,
      "earlier versions of Parley refuse it from then on: stop all their instances first, and keep a backup",
    ),
  );
}
