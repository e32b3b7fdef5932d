import type { Clock } from "../core/clock.ts";

/** Notices that a server lost its data: restarted without persistence, emptied, or another server took its place. */
export interface DataLossWatch {
  /**
   * Compares the server's mark with the one that this process knows, and restores what the process needs when it
   * differs. Also fails when the server refuses writes.
   * @throws ParleyError `store-unavailable`
   */
  check(): Promise<void>;
  /** How often data was lost since the start, and when it was last noticed, in Unix ms. */
  readonly losses: { readonly count: number; readonly lastAt: number | undefined };
}

/** What the watch works with. */
export interface DataLossWatchOptions {
  /** A random id that the server keeps, written if it has none. Always a new one, so that other instances notice too. */
  readonly readMark: () => Promise<string>;
  /** Says in the log that the mark has changed; false when that need not mean a loss. */
  readonly report: (known: string, found: string) => boolean;
  /** Writes what the emptied server must have again. Repeated at the next check when it fails. */
  readonly restore: () => Promise<void>;
  readonly clock: Clock;
}

/**
 * Reads the server's mark.
 * @see {@link DataLossWatch}
 */
export async function watchDataLoss({
  readMark,
  report,
  restore,
  clock,
}: DataLossWatchOptions): Promise<DataLossWatch> {
  const losses: { count: number; lastAt: number | undefined } = { count: 0, lastAt: undefined };
  let mustRestore = false;
  let known = await readMark();

  const compare = async () => {
    const mark = await readMark();
    if (mark !== known) {
      mustRestore = true;
      if (report(known, mark)) {
        losses.count++;
        losses.lastAt = clock.now();
      }
      known = mark;
    }
    if (!mustRestore) return;
    await restore();
    mustRestore = false;
  };

  let running: Promise<void> | undefined;
  return {
    losses,
    check: () =>
      (running ??= compare().finally(() => {
        running = undefined;
      })),
  };
}

/** How operators are told of losses; empty without any. */
export function describeLosses({ lastAt }: DataLossWatch["losses"], server: string): readonly string[] {
  return lastAt === undefined
    ? []
    : [`${server} lost its data, noticed at ${new Date(lastAt).toISOString()}: see the log`];
}
