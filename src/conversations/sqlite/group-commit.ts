import type { DatabaseSync } from "node:sqlite";
import type { Resolves, WriteCounts } from "../backend.ts";

/** The outcome of a write. If `isWritten` is false, it changed nothing. */
export interface Written<T> {
  readonly result: T;
  readonly isWritten: boolean;
}

/** Runs the writes of all conversations. Writes of one moment share a transaction. */
interface GroupCommit {
  /**
   * Runs `work` in the next transaction, in the order of the calls. A failing write does not affect others.
   * It rejects with SQLite's errors.
   */
  run<T>(work: () => Written<T>, resolves: Resolves): Promise<T>;
  /** Commits waiting writes and syncs everything to disk. It does not throw, because the writes reject. */
  flush(): void;
  readonly counts: WriteCounts;
}

interface Write {
  readonly work: () => Written<unknown>;
  readonly resolves: Resolves;
  readonly resolve: (result: unknown) => void;
  readonly reject: (error: unknown) => void;
}

interface GroupCommitOptions {
  /** Whether an error concerns one write only. The others of its transaction are then tried without it. */
  readonly isOfOneWrite: (error: unknown) => boolean;
}

/**
 * Groups writes into transactions. With `synchronous = FULL`, SQLite returns from a commit when it is on
 * disk, with `NORMAL` when it survives the end of the process. Each transaction uses what its writes need.
 * @see https://sqlite.org/wal.html
 */
export function createGroupCommit(database: DatabaseSync, options: GroupCommitOptions): GroupCommit {
  const { isOfOneWrite } = options;
  const begin = database.prepare("BEGIN IMMEDIATE");
  const commit = database.prepare("COMMIT");
  let queue: Write[] = [];
  /** Whether something was committed that the disk may not have. */
  let isAhead = false;
  const counts = { commits: 0, durableCommits: 0, syncs: 0 };

  function commitNext(): void {
    const writes = queue;
    queue = [];
    if (writes.length > 0) commitTogether(writes);
  }

  function commitTogether(writes: readonly Write[]): void {
    try {
      const results = inTransaction(writes);
      for (const [position, { resolve }] of writes.entries()) resolve(results[position]);
    } catch (error) {
      if (writes.length > 1 && isOfOneWrite(error)) for (const write of writes) commitTogether([write]);
      else for (const { reject } of writes) reject(error);
    }
  }

  /** Commits all of them or none. */
  function inTransaction(writes: readonly Write[]): readonly unknown[] {
    const isDurable = writes.some(({ resolves }) => resolves === "durable");
    database.exec(`PRAGMA synchronous = ${isDurable ? "FULL" : "NORMAL"}`);
    begin.run();
    try {
      const written = writes.map(({ work }) => work());
      // A durable write that found its entry taken waits until that entry is on disk too.
      const isChanged = written.some(({ isWritten }) => isWritten) || (isDurable && isAhead);
      commit.run();
      if (isChanged) {
        counts.commits++;
        isAhead = !isDurable;
      }
      if (isChanged && isDurable) {
        counts.durableCommits++;
        counts.syncs++;
      }
      return written.map(({ result }) => result);
    } catch (error) {
      // A full disk rolls back by itself. A second ROLLBACK would hide the first error.
      if (database.isTransaction) database.exec("ROLLBACK");
      throw error;
    }
  }

  return {
    run<T>(work: () => Written<T>, resolves: Resolves) {
      return new Promise<T>((resolve, reject) => {
        // Other writes in answer to the same input of the event loop join this transaction.
        if (queue.length === 0) setImmediate(commitNext);
        queue.push({ work, resolves, resolve: resolve as (result: unknown) => void, reject });
      });
    },
    flush() {
      commitNext();
      const nothing: Write = {
        work: () => ({ result: undefined, isWritten: false }),
        resolves: "durable",
        resolve: () => {},
        reject: () => {},
      };
      if (isAhead) commitTogether([nothing]);
    },
    counts,
  };
}
