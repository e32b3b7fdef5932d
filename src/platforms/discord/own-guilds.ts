import type { Clock } from "../../core/clock.ts";
import { LRUCache } from "lru-cache";
import { expiringBy } from "../../support/lru-time.ts";
import type { DiscordApi } from "./api.ts";
import type { GuildDirectory } from "./guild-directory.ts";
import type { ShardPlan } from "./shard-plan.ts";

/** The most that Discord lists at once. */
const pageSize = 200;
/** One page more than anybody looks at, so that it shows that there are more. */
const maxPages = 2;
const ttlMs = 10 * 60_000;

/**
 * The servers of the bot: from the gateway where this process runs all shards, else as Discord lists them, at most 400,
 * read again after ten minutes.
 * @returns a function that throws ParleyError `platform-unreachable` where Discord does not answer
 */
export function createOwnGuilds(
  api: Pick<DiscordApi, "listGuilds">,
  gateway: () => { readonly plan: ShardPlan; readonly guilds: GuildDirectory } | undefined,
  clock: Clock,
): () => readonly string[] | Promise<readonly string[]> {
  const listed = new LRUCache<"all", Promise<readonly string[]>>({
    max: 1,
    ttl: ttlMs,
    ...expiringBy(clock),
  });

  async function read(): Promise<readonly string[]> {
    const ids: string[] = [];
    for (let page = 0; page < maxPages; page++) {
      const found = await api.listGuilds({ after: ids.at(-1), limit: pageSize });
      ids.push(...found.map(({ id }) => id));
      if (found.length < pageSize) break;
    }
    return ids;
  }

  return () => {
    const known = gateway();
    if (known === undefined) return [];
    if (known.plan.ids.length === known.plan.count) return known.guilds.ids();
    const before = listed.get("all");
    if (before !== undefined) return before;
    const reading = read();
    listed.set("all", reading);
    // Failures are not cached.
    reading.catch(() => listed.delete("all"));
    return reading;
  };
}
