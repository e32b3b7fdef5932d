import type { EarlyCount, IndexChange, PassedLimit, ScoreLimit } from "../backend.ts";
import type { Written } from "./group-commit.ts";
import type { SqliteWriter } from "./sqlite-writer.ts";

/**
 * Counts of the only process that counts in a file: they are decided at once, and written in the next transaction, which is
 * that of the event whose request is counted.
 */
export interface EarlyCounts {
  /** As `Backend.count`, decided by the file and by what is not written yet. Throws SQLite's errors. */
  count(
    limits: readonly ScoreLimit[],
    changes: readonly IndexChange[],
    early: EarlyCount,
  ): PassedLimit | undefined;
}

/**
 * @see {@link EarlyCounts}
 * @param write queues work for the next transaction; rejects where it is not committed
 */
export function createEarlyCounts(
  writer: Pick<SqliteWriter, "count" | "findPassed">,
  write: (work: () => Written<unknown>) => Promise<unknown>,
): EarlyCounts {
  /** What is added to scores by counts that are not written yet, by index and member. */
  const unwritten = new Map<string, number>();
  const add = (changes: readonly IndexChange[], sign: 1 | -1): void => {
    for (const change of changes) {
      if (change.kind !== "add-score") continue;
      const name = toName(change.index, change.member);
      const sum = (unwritten.get(name) ?? 0) + sign * change.score;
      if (sum === 0) unwritten.delete(name);
      else unwritten.set(name, sum);
    }
  };

  return {
    count(limits, changes, { onLost }) {
      const passed = writer.findPassed(limits, (index, member) => unwritten.get(toName(index, member)) ?? 0);
      if (passed !== undefined) return passed;
      add(changes, 1);
      let isWaiting = true;
      const end = (): void => {
        if (isWaiting) add(changes, -1);
        isWaiting = false;
      };
      write(() => {
        const written = writer.count([], changes);
        // A transaction that is rolled back may be tried again.
        end();
        return written;
      }).catch(() => {
        end();
        onLost();
      });
      return undefined;
    },
  };
}

function toName(index: string, member: string): string {
  return `${index}\0${member}`;
}
