import type { Finding } from "../core/checks.ts";
import type { Clock } from "../core/clock.ts";
import type { Log } from "../core/telemetry.ts";
import type { Backend, EntryAddress } from "./backend.ts";
import type { Leases } from "./leased-queue.ts";

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
export const inspectedEntries: readonly EntryAddress[] = [
  { space: "meta", key: "sealing" },
  { space: "meta", key: "key-check" },
];

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
