import type { KeyvStorageAdapter } from "keyv";

/**
 * The kinds of entries there are; each is a Keyv namespace of its own.
 * `head`: where a conversation ends. `slot`: its messages. `id`: which slot a message id has. `settings`.
 * `blob`: what is known of a blob. `inbox`: accepted events. `turn`: how far their turns are. `record`: small
 * values of other rooms. `meta`: the store's own.
 */
export const spaces = ["head", "slot", "id", "settings", "blob", "inbox", "turn", "record", "meta"] as const;
export type Space = (typeof spaces)[number];

export interface Place {
  readonly space: Space;
  readonly key: string;
}

/** One step of an atomic write. Values are encoded already; times are Unix ms. */
export type BackendChange =
  | { readonly kind: "set"; readonly at: Place; readonly value: string; readonly expires: number | undefined }
  | { readonly kind: "delete"; readonly at: Place }
  /** Moves the expiry of an entry, where there is one. */
  | { readonly kind: "keep"; readonly at: Place; readonly expires: number | undefined }
  /** Puts a member into a ranking, or moves it. A lower score never replaces a higher one. */
  | { readonly kind: "rank"; readonly ranking: string; readonly member: string; readonly score: number }
  | { readonly kind: "unrank"; readonly ranking: string; readonly member: string };

interface Ranked {
  readonly member: string;
  readonly score: number;
}

interface RankingPage {
  readonly order: "highest-first" | "lowest-first";
  readonly offset: number;
  readonly max: number;
}

/**
 * A key-value service underneath Keyv, with what Keyv has no words for: set-if-absent, writes of several entries
 * that happen together or not at all, and rankings (members sorted by a number).
 * Every failure is a ParleyError `store-unavailable` or `store-corrupt`.
 */
export interface Backend {
  /** The Keyv storage adapter of one space. */
  adapter(space: Space): KeyvStorageAdapter;
  /**
   * Applies all changes, or none where one of `ifAbsent` exists. Durable when it resolves.
   * Resolves to the position in `ifAbsent` of the first entry that exists, or -1 when everything was written.
   */
  apply(ifAbsent: readonly Place[], changes: readonly BackendChange[]): Promise<number>;
  /** Writes a value where it is still `old`, and keeps its expiry; false: it was changed or is gone. */
  replace(at: Place, old: string, value: string): Promise<boolean>;
  ranking(name: string, page: RankingPage): Promise<readonly Ranked[]>;
  /** Keys that begin with `prefix`, in any order. Slow on a server (it walks everything): for maintenance only. */
  keys(space: Space, prefix: string): AsyncIterable<string>;
  /** Removes what has expired; resolves to how many entries that were, where the service does not do it itself. */
  sweep(now: number): Promise<number>;
  /** Takes what was deleted out of the files too, as far as the service can. */
  scrub(): Promise<void>;
  /**
   * Runs work that uses the service (through Keyv), for as long as an answer can be waited for. Failures become
   * ParleyErrors; ParleyErrors pass through.
   */
  readonly attempt: <T>(work: () => Promise<T>) => Promise<T>;
  ping(): Promise<void>;
  close(): Promise<void>;
}
