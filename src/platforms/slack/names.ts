import { LRUCache } from "lru-cache";
import type { Log } from "../../core/telemetry.ts";
import { sleepUnlessAborted } from "../../support/sleep.ts";

/** What {@link createNames} needs. */
export interface NamesOptions {
  readonly lookUp: (userId: string) => Promise<string>;
  readonly log: Log;
  /** How long an event may wait for a name, in milliseconds: it must be acknowledged within 3 s. Default 800. */
  readonly maxWaitMs?: number;
}

/** Display names of people. */
export interface Names {
  /** The person's display name, or their id if Slack does not return it in time. Never throws. */
  nameOf(userId: string): Promise<string>;
}

const maxNames = 5000;
const nameTtlMs = 60 * 60_000;

/** Looks names up and caches them for an hour. */
export function createNames({ lookUp, log, maxWaitMs = 800 }: NamesOptions): Names {
  const cache = new LRUCache<string, string>({ max: maxNames, ttl: nameTtlMs, fetchMethod: lookUp });

  async function cachedName(userId: string): Promise<string> {
    try {
      return (await cache.fetch(userId)) ?? userId;
    } catch (error) {
      log.debug({ err: error }, "user name lookup failed");
      return userId;
    }
  }

  return {
    async nameOf(userId) {
      const timer = new AbortController();
      const timeout = sleepUnlessAborted(maxWaitMs, timer.signal).then(() => userId);
      try {
        return await Promise.race([cachedName(userId), timeout]);
      } finally {
        timer.abort();
      }
    },
  };
}
