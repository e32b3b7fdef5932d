import { LRUCache } from "lru-cache";
import { createConcurrencyLimit } from "../../support/concurrency-limit.ts";
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
  seen(userId: string): void;
  /**
   * From memory (10 minutes for members, one for strangers), else from Discord, at most 200 servers. `undefined`: the
   * bot is in more servers, and in none of those 200 with this person.
   * @throws ParleyError `platform-unreachable` where Discord did not say it of every server
   */
  isMember(userId: string): Promise<boolean | undefined>;
  /** Drops what is known: the bot has left a server. */
  clear(): void;
}

/**
 * @param guildIds the servers of the bot
 * @see {@link Memberships}
 */
export function createMemberships(
  api: Pick<DiscordApi, "getMember">,
  guildIds: () => readonly string[],
): Memberships {
  const limit = createConcurrencyLimit(maxConcurrent);
  const known = new LRUCache<string, boolean>({ max: maxPeople, ttl: strangerTtlMs });
  const lookups = new Map<string, Promise<boolean | undefined>>();

  function note(userId: string, isMember: boolean): void {
    known.set(userId, isMember, { ttl: isMember ? memberTtlMs : strangerTtlMs });
  }

  async function lookUp(userId: string): Promise<boolean | undefined> {
    const all = guildIds();
    const ids = all.slice(0, maxGuilds);
    let failure: unknown;
    for (let first = 0; first < ids.length; first += maxConcurrent) {
      const members = await Promise.allSettled(
        ids.slice(first, first + maxConcurrent).map((id) => limit(() => api.getMember(id, userId))),
      );
      for (const member of members) {
        if (member.status === "rejected") failure ??= member.reason;
        else if (member.value !== undefined) return true;
      }
    }
    if (failure !== undefined) throw failure;
    return all.length > ids.length ? undefined : false;
  }

  return {
    seen: (userId) => note(userId, true),
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
