import type { DatabaseSync } from "node:sqlite";
import type { CancelTimer, Clock } from "../../core/clock.ts";
import { afterRequests } from "../../support/after-requests.ts";
import type { Resolves, WriteCounts } from "../backend.ts";
import type { CommitTrail } from "./commit-trail.ts";
import type { WalSync } from "./wal-sync.ts";

/** As of a backend. `counted`: like `soon`, and its loss at a power failure is no loss of data. */
export type GroupResolves = Resolves | "counted";

/** What a write came to. `isWritten` false: it has changed nothing. */
export interface Written<T> {
  readonly result: T;
  readonly isWritten: boolean;
}

/** Writes of all conversations, each moment's in one transaction. */
export interface GroupCommit {
  /**
   * Runs `work` in the next transaction, in the order of the calls. A write that fails takes no other with it.
   * Rejects with SQLite's and the system's errors. `onWritten`: called after the commit, before the disk has it, if
   * something was written. Contract: does not throw.
   */
  run<T>(work: () => Written<T>, resolves: GroupResolves, onWritten?: () => void): Promise<T>;
  /** Commits what waits and waits for the disk, on the main thread. Does not throw: the writes reject. */
  flush(): void;
  readonly counts: WriteCounts;
}

/** How long a write that resolves soon waits for the disk when no other write makes it wait. */
const soonMs = 250;
/** How long it waits for another write to join its transaction. */
const joinMs = 10;
/** How long a write that resolves with others waits for one whose sync it can share: a question follows its event sooner. */
const togetherMs = 5;

interface Write {
  readonly work: () => Written<unknown>;
  readonly resolves: GroupResolves;
  readonly onWritten: (() => void) | undefined;
  readonly resolve: (result: unknown) => void;
  readonly reject: (error: unknown) => void;
}

/** Waits until the transactions up to a number are on disk. */
interface Waiting {
  readonly transaction: number;
  /** For others to share its sync. */
  canWait: boolean;
  readonly settle: (error: unknown) => void;
}

export interface GroupCommitOptions {
  readonly trail: Pick<CommitTrail, "advance" | "note">;
  readonly disk: Pick<WalSync, "sync" | "syncNow">;
  readonly clock: Clock;
  /** Whether an error concerns one write alone; the others of its transaction are then tried without it. */
  readonly isOfOneWrite: (error: unknown) => boolean;
  /** Called when a transaction is rolled back. */
  onRollback(): void;
}

/** @see {@link GroupCommit} */
export function createGroupCommit(database: DatabaseSync, options: GroupCommitOptions): GroupCommit {
  const { trail, disk, clock, isOfOneWrite } = options;
  const begin = database.prepare("BEGIN IMMEDIATE");
  const commit = database.prepare("COMMIT");
  let queue: Write[] = [];
  let isScheduled = false;
  let cancelJoining: CancelTimer | undefined;
  /** Numbers of transactions that must reach the disk. */
  let committed = 0;
  let synced = 0;
  /** What the trail notes once the transactions so far are on disk. */
  let unnoted: number | undefined;
  let waiting: Waiting[] = [];
  let isSyncing = false;
  let cancelSoon: CancelTimer | undefined;
  let cancelTogether: CancelTimer | undefined;
  const counts = { commits: 0, durableCommits: 0, syncs: 0 };

  function commitNext(): void {
    isScheduled = false;
    cancelJoining?.();
    cancelJoining = undefined;
    const writes = queue;
    queue = [];
    if (writes.length > 0) commitTogether(writes);
  }

  function commitTogether(writes: readonly Write[]): void {
    let written: readonly Written<unknown>[];
    try {
      written = inTransaction(writes);
    } catch (error) {
      if (writes.length > 1 && isOfOneWrite(error)) for (const write of writes) commitTogether([write]);
      else for (const { reject } of writes) reject(error);
      return;
    }
    for (const [position, write] of writes.entries()) conclude(write, written[position]!);
    // The disk works while what follows begins.
    syncIfDue();
    for (const [position, { onWritten }] of writes.entries()) if (written[position]!.isWritten) onWritten?.();
  }

  /** All of them, or none. */
  function inTransaction(writes: readonly Write[]): readonly Written<unknown>[] {
    begin.run();
    try {
      const written = writes.map(({ work }) => work());
      const kinds = new Set(written.flatMap(({ isWritten }, at) => (isWritten ? writes[at]!.resolves : [])));
      const isDurable = kinds.has("durable") || kinds.has("together");
      const mustReachDisk = isDurable || kinds.has("soon");
      const noted = mustReachDisk ? trail.advance() : undefined;
      commit.run();
      if (kinds.size > 0) counts.commits++;
      if (isDurable) counts.durableCommits++;
      if (noted !== undefined) {
        committed++;
        unnoted = noted;
      }
      return written;
    } catch (error) {
      // First, since rolling back may fail too.
      options.onRollback();
      // A full disk rolls back by itself; a second ROLLBACK would hide the first error.
      if (database.isTransaction) database.exec("ROLLBACK");
      throw error;
    }
  }

  /** Also a write that found its entry taken waits for the one that took it. */
  function conclude({ resolves, resolve, reject }: Write, { result }: Written<unknown>): void {
    if (resolves === "soon" || resolves === "counted" || committed === synced) {
      resolve(result);
      return;
    }
    waiting.push({
      transaction: committed,
      canWait: resolves === "together",
      settle: (error) => (error === undefined ? resolve(result) : reject(error)),
    });
  }

  function syncIfDue(): void {
    if (waiting.some(({ canWait }) => !canWait)) sync();
    else if (waiting.length > 0) cancelTogether ??= clock.after(togetherMs, syncTogether);
    else if (committed > synced) cancelSoon ??= clock.after(soonMs, syncSoon, { keepsAlive: false });
  }

  function syncTogether(): void {
    cancelTogether = undefined;
    sync();
  }

  function syncSoon(): void {
    cancelSoon = undefined;
    sync();
  }

  function sync(): void {
    if (isSyncing || committed === synced) return;
    isSyncing = true;
    const [transaction, noted] = [committed, unnoted];
    disk.sync((error) => {
      isSyncing = false;
      concludeSync(transaction, noted, error);
      // Those that came meanwhile have waited.
      for (const each of waiting) each.canWait = false;
      syncIfDue();
    });
  }

  function concludeSync(transaction: number, noted: number | undefined, error: unknown): void {
    counts.syncs++;
    const done = waiting.filter((each) => each.transaction <= transaction);
    waiting = waiting.filter((each) => each.transaction > transaction);
    if (error === undefined) {
      // `flush` may have been faster.
      synced = Math.max(synced, transaction);
      if (noted !== undefined) trail.note(noted);
      if (synced === committed) {
        cancelSoon?.();
        cancelTogether?.();
        cancelSoon = cancelTogether = undefined;
      }
    }
    for (const { settle } of done) settle(error);
  }

  return {
    run<T>(work: () => Written<T>, resolves: GroupResolves, onWritten?: () => void) {
      return new Promise<T>((resolve, reject) => {
        queue.push({ work, resolves, onWritten, resolve: resolve as (result: unknown) => void, reject });
        if (isScheduled) return;
        if (resolves === "soon") {
          cancelJoining ??= clock.after(joinMs, commitNext);
          return;
        }
        isScheduled = true;
        // What else is written in answer to the same input of the event loop joins in, and nobody's request waits for it.
        afterRequests(commitNext);
      });
    },
    flush() {
      commitNext();
      if (committed === synced) return;
      let failure: unknown;
      try {
        disk.syncNow();
      } catch (error) {
        failure = error;
      }
      concludeSync(committed, unnoted, failure);
    },
    counts,
  };
}
