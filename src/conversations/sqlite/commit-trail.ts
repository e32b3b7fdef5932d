import { closeSync, openSync, readFileSync, writeSync } from "node:fs";
import type { DatabaseSync } from "node:sqlite";
import { steadyClock } from "../../support/steady-clock.ts";
import { createPrivateFile } from "./private-file.ts";
import { prepareRows } from "./prepare-rows.ts";
import { readMark } from "./store-marks.ts";

/**
 * Notices at an open that the file lacks writes that were acknowledged: its `-wal` was deleted, cut or damaged, or
 * an older file was put in its place. SQLite itself opens such a file without a word. Each write raises a number in
 * the same transaction and then notes it in a small file beside the database.
 */
export interface CommitTrail {
  /** Raises the number; within a transaction. Roughly the time of the write, in Unix ms. */
  advance(): number;
  /** Notes it, after the transaction. Not synced: the note may lag, but is never ahead of what is on disk. */
  note(commit: number): void;
  /** The newest write that the file has, if it lacks later ones that were noted. Unix ms. */
  readonly lostAfter: number | undefined;
  close(): void;
}

const mark = "committed-at";
const digits = 16;

/**
 * Compares the note with the file; `adopt` then takes the file as it is, which is up to the bot alone. Throws SQLite's
 * and the system's errors. @see {@link CommitTrail}
 */
export function openCommitTrail(
  database: DatabaseSync,
  { file, adopt }: { readonly file: string; readonly adopt: boolean },
): CommitTrail {
  const path = `${file}-commit`;
  createPrivateFile(path);
  const noted = Number(readFileSync(path, "latin1"));
  const inFile = readMark(database, mark) ?? 0;
  // "r+": every note overwrites the one before.
  const descriptor = openSync(path, "r+");
  // With RETURNING, one statement would take longer than both.
  const read = prepareRows<[number]>(
    database,
    `SELECT score FROM rankings WHERE ranking = 'store-marks' AND member = '${mark}'`,
  );
  const raise = database.prepare(
    `INSERT INTO rankings (ranking, member, score) VALUES ('store-marks', '${mark}', ?)
     ON CONFLICT (ranking, member) DO UPDATE SET score = excluded.score`,
  );
  const note = (commit: number) => {
    try {
      writeSync(descriptor, String(commit).padStart(digits, "0"), 0, "latin1");
    } catch {
      // A full disk. The note then lags, and the write itself is on disk.
    }
  };
  if (adopt) note(inFile);
  return {
    advance() {
      const commit = Math.max((read.get()?.[0] ?? 0) + 1, steadyClock.now());
      raise.run(commit);
      return commit;
    },
    note,
    lostAfter: noted > inFile ? inFile : undefined,
    close: () => closeSync(descriptor),
  };
}
