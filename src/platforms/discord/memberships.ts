import type { Clock } from "../../core/clock.ts";
import { LRUCache } from "lru-cache";
import { createConcurrencyLimit } from "../../support/concurrency-limit.ts";
import { systemClock } from "../../support/clock.ts";
import { expiringBy } from "../../support/lru-time.ts";
import type { DiscordApi } from "./api.ts";

const maxPeople = 5000;
/** Somebody who leaves the last common server keeps direct messages for so long. */
const memberTtlMs = 10 * 60_000;
/** Somebody who joins a server is a stranger in direct messages for so long. */
const strangerTtlMs = 60_000;
/** Servers that are looked at for one person. */
const maxGuilds = 200;
/** Concurrent requests for all people. */
const maxConcurrent = 5;

/** Whether people share a server with the bot. Discord does not say it in direct messages. */
export interface Memberships {
  /** Notes that somebody was seen in a server of the bot. */
  seen(userId: string, guildId: string): void;
  /**
   * From memory (10 minutes for members, one for strangers), else from Discord: first the server that they were last
   * seen in, at most 200 servers. `undefined`: the
   * bot is in more servers, and in none of those 200 with this person.
   * @throws ParleyError `platform-unreachable` where Discord did not say it of every server
   */
  isMember(userId: string): Promise<boolean | undefined>;
  /** Drops what is known: the bot has left a server. */
  clear(): void;
}

/**
 * @param guildIds the servers of the bot, of all its shards; more than 200 need not be complete
 * @see {@link Memberships}
 */
export function createMemberships(
  api: Pick<DiscordApi, "getMember">,
  guildIds: () => readonly string[] | Promise<readonly string[]>,
  clock: Clock = systemClock,
): Memberships {
  const limit = createConcurrencyLimit(maxConcurrent);
  const known = new LRUCache<string, boolean>({ max: maxPeople, ttl: strangerTtlMs, ...expiringBy(clock) });
  /** Servers that people were seen in: one request is enough as long as they stay there. */
  const lastGuilds = new LRUCache<string, string>({ max: maxPeople });
  const lookups = new Map<string, Promise<boolean | undefined>>();

  function note(userId: string, isMember: boolean): void {
    known.set(userId, isMember, { ttl: isMember ? memberTtlMs : strangerTtlMs });
  }

  async function lookUp(userId: string): Promise<boolean | undefined> {
    const all = await guildIds();
    const last = all.find((id) => id === lastGuilds.get(userId));
    const others = all.filter((id) => id !== last).slice(0, last === undefined ? maxGuilds : maxGuilds - 1);
    const groups = last === undefined ? [] : [[last]];
    for (let first = 0; first < others.length; first += maxConcurrent)
      groups.push(others.slice(first, first + maxConcurrent));
    let failure: unknown;
    for (const ids of groups) {
      const members = await Promise.allSettled(ids.map((id) => limit(() => api.getMember(id, userId))));
      for (const [index, member] of members.entries()) {
        if (member.status === "rejected") failure ??= member.reason;
        else if (member.value !== undefined) {
          lastGuilds.set(userId, ids[index] ?? "");
          return true;
        }
      }
    }
    if (failure !== undefined) throw failure;
    return all.length > maxGuilds ? undefined : false;
  }

  return {
    seen(userId, guildId) {
      lastGuilds.set(userId, guildId);
      note(userId, true);
    },
    async isMember(userId) {
      const before = known.get(userId);
      if (before !== undefined) return before;
      let lookup = lookups.get(userId);
      if (lookup === undefined) {
        lookup = lookUp(userId).finally(() => lookups.delete(userId));
        lookups.set(userId, lookup);
      }
      const isMember = await lookup;
      if (isMember !== undefined) note(userId, isMember);
      return isMember;
    },
    clear: () => known.clear(),
  };
}
