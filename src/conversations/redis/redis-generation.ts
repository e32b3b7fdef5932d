import { randomUUID } from "node:crypto";
import type { Log } from "../../core/telemetry.ts";
import { steadyClock } from "../../support/steady-clock.ts";
import type { RedisConnection } from "./redis-client.ts";

/** Notices that the server lost its data: restarted without persistence, emptied, or another server took its place. */
export interface GenerationWatch {
  /**
   * Compares the server's mark with the one that this process knows, and restores what the process needs when it
   * differs. Also fails when the server refuses writes, although it writes nothing while the mark is there.
   * @throws ParleyError `store-unavailable`
   */
  check(): Promise<void>;
  /** How often data was lost since the start, and when it was last noticed, in Unix ms. */
  readonly losses: { readonly count: number; readonly lastAt: number | undefined };
}

/** What the watch works with. */
export interface GenerationWatchOptions extends Pick<RedisConnection, "client" | "attempt" | "address"> {
  readonly log: Log;
  /** Writes what the emptied server must have again. Repeated at the next check when it fails. */
  readonly restore: () => Promise<void>;
}

/** A random id; a server that does not have it has lost what was written after it. */
const generationKey = "parley:generation";

/**
 * Reads the server's mark, and writes one if it has none.
 * @see {@link GenerationWatch}
 */
export async function watchGeneration(options: GenerationWatchOptions): Promise<GenerationWatch> {
  const { client, attempt, address, log, restore } = options;
  const losses: { count: number; lastAt: number | undefined } = { count: 0, lastAt: undefined };
  let mustRestore = false;

  // A SET that finds the key writes nothing, but a server that refuses writes refuses it. Always a new id, so that
  // other instances notice too.
  const readMark = () =>
    attempt(async () => {
      const [, mark] = await Promise.all([
        client.set(generationKey, randomUUID(), { condition: "NX" }),
        client.get(generationKey),
      ]);
      return mark;
    });

  const compare = async () => {
    const mark = await readMark();
    if (mark !== known) {
      known = mark;
      mustRestore = true;
      losses.count++;
      losses.lastAt = steadyClock.now();
      log.error(
        { store: address },
        "Redis lost its data: conversations and settings in it are gone, and messages that this process had accepted are stored anew. Find out who emptied it or whether it restarted without persistence; set appendonly yes and maxmemory-policy noeviction; to restore a backup of Redis, stop Parley first",
      );
    }
    if (!mustRestore) return;
    await restore();
    mustRestore = false;
  };

  let known = await readMark();
  let running: Promise<void> | undefined;
  return {
    losses,
    check: () =>
      (running ??= compare().finally(() => {
        running = undefined;
      })),
  };
}
