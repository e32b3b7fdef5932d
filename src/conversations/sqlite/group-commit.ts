import { closeSync, existsSync, openSync, readFileSync, writeSync } from "node:fs";
import type { DatabaseSync } from "node:sqlite";
import { steadyClock } from "../../support/clock.ts";
import type { Resolves, WriteCounts } from "../backend.ts";
import { createPrivateFile, readMark } from "./sqlite-file.ts";

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
  readonly trail: Pick<CommitTrail, "advance" | "note">;
  /** Whether an error concerns one write only. The others of its transaction are then tried without it. */
  readonly isOfOneWrite: (error: unknown) => boolean;
}

/**
 * Groups writes into transactions. With `synchronous = FULL`, SQLite returns from a commit when it is on
 * disk, with `NORMAL` when it survives the end of the process. Each transaction uses what its writes need.
 * @see https://sqlite.org/wal.html
 */
export function createGroupCommit(database: DatabaseSync, options: GroupCommitOptions): GroupCommit {
  const { trail, isOfOneWrite } = options;
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
      const noted = isChanged ? trail.advance() : undefined;
      commit.run();
      if (noted !== undefined) {
        counts.commits++;
        isAhead = !isDurable;
      }
      if (noted !== undefined && isDurable) {
        counts.durableCommits++;
        counts.syncs++;
        trail.note(noted);
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

/**
 * Notices at an open that the file lacks acknowledged writes, because its `-wal` was deleted, cut or damaged,
 * or an older file replaced it. SQLite opens such a file without an error. Each write raises a number in the
 * same transaction and then notes it in a small file beside the database.
 */
interface CommitTrail {
  /** Raises the number within a transaction. It is about the time of the write, in Unix ms. */
  advance(): number;
  /** Notes the number after the transaction. Without a sync the note may lag, but it is never ahead. */
  note(commit: number): void;
  /** The newest write of the file in Unix ms, if the file lacks later ones that were noted. */
  readonly lostAfter: number | undefined;
  close(): void;
}

const mark = "committed-at";
const digits = 16;

/**
 * Opens the {@link CommitTrail} and compares the note with the file. `adopt` then accepts the file as it is,
 * which only the bot may do. It throws errors of SQLite and the system.
 */
export function openCommitTrail(
  database: DatabaseSync,
  { file, adopt }: { readonly file: string; readonly adopt: boolean },
): CommitTrail {
  const path = `${file}-commit`;
  const noted = existsSync(path) ? Number(readFileSync(path, "latin1")) : 0;
  const inFile = readMark(database, mark) ?? 0;
  const open = () => {
    createPrivateFile(path);
    // With "r+" every note overwrites the one before.
    return openSync(path, "r+");
  };
  // The doctor writes nothing, so it makes no note either.
  let descriptor = adopt ? open() : undefined;
  // One statement with RETURNING would take longer than both.
  const read = database.prepare(
    `SELECT score FROM rankings WHERE ranking = 'store-marks' AND member = '${mark}'`,
  );
  const raise = database.prepare(
    `INSERT INTO rankings (ranking, member, score) VALUES ('store-marks', '${mark}', ?)
     ON CONFLICT (ranking, member) DO UPDATE SET score = excluded.score`,
  );
  const note = (commit: number) => {
    descriptor ??= open();
    try {
      writeSync(descriptor, String(commit).padStart(digits, "0"), 0, "latin1");
    } catch {
      // The disk is full. The note then lags, but the write itself is on disk.
    }
  };
  if (adopt) note(inFile);
  return {
    advance() {
      const last = read.get()?.["score"] as number | undefined;
      const commit = Math.max((last ?? 0) + 1, steadyClock.now());
      raise.run(commit);
      return commit;
    },
    note,
    lostAfter: noted > inFile ? inFile : undefined,
    close() {
      if (descriptor !== undefined) closeSync(descriptor);
    },
  };
}
