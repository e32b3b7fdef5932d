import { randomUUID } from "node:crypto";
import type { Clock } from "../../core/clock.ts";
import type { Log } from "../../core/telemetry.ts";
import { type DataLossWatch, watchDataLoss } from "../data-loss-watch.ts";
import type { RedisConnection } from "./redis-connection.ts";

/** What the watch works with. */
export interface GenerationWatchOptions {
  readonly connection: RedisConnection;
  readonly log: Log;
  /** Writes what the emptied server must have again. Repeated at the next check when it fails. */
  readonly restore: () => Promise<void>;
  readonly clock: Clock;
}

/** A random id; a server that does not have it has lost what was written after it. */
const generationKey = "parley:generation";
/** So many ids of a cluster, by different slots: each of its servers has some. */
const marksOfCluster = 64;

/**
 * Watches the server's mark, and writes one if it has none. A check writes nothing while the mark is there, but fails
 * when the server refuses writes.
 */
export function watchGeneration(options: GenerationWatchOptions): Promise<DataLossWatch> {
  const { connection, log, restore, clock } = options;
  const { attempt, address } = connection;
  const keys = connection.isCluster
    ? Array.from({ length: marksOfCluster }, (_, n) => `${generationKey}:${n}`)
    : [generationKey];
  return watchDataLoss({
    restore,
    clock,
    // A SET that finds the key writes nothing, but a server that refuses writes refuses it.
    readMark: () =>
      attempt(async () => {
        const marks = await Promise.all(
          keys.flatMap((key) => [
            connection.client.set(key, randomUUID(), { condition: "NX" }),
            connection.client.get(key),
          ]),
        );
        return marks.filter((_, position) => position % 2 === 1).join(" ");
      }),
    report() {
      log.error(
        { store: address },
        "Redis lost its data: conversations and settings in it are gone, and messages that this process had accepted are stored anew. Find out who emptied it or whether it restarted without persistence; set appendonly yes and maxmemory-policy noeviction; to restore a backup of Redis, stop Parley first",
      );
      return true;
    },
  });
}
