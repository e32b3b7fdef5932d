import { startCluster } from "../../support/redis-cluster.ts";
import type { RedisServer } from "../../support/redis-server.ts";
import type { Random } from "../random.ts";

/** Servers of Redis that replace a lost primary by themselves. */
export interface RedisGroup {
  readonly url: string;
  /** Returns a present primary. In a cluster it is any one. */
  primary(random: Random): Promise<RedisServer>;
  /** Resolves when another server serves what this one did. */
  whenReplaced(server: RedisServer): Promise<void>;
  /** Resolves when every primary has a replica that is in step. */
  whenWhole(): Promise<void>;
  /** Returns the folders of the present primaries. */
  folders(): Promise<readonly string[]>;
  remove(): Promise<void>;
}

/** Starts three primaries with a replica each. */
export async function startClusterGroup(): Promise<RedisGroup> {
  const redis = await startCluster();
  // These are keys of all three. A primary is found by a key that it serves.
  const keys = Array.from({ length: 16 }, (_, index) => `{${index}}`);
  const served = new Map<RedisServer, string>();
  return {
    url: redis.url,
    async primary(random) {
      const key = random.pick(keys);
      const server = await redis.primaryOf(key);
      served.set(server, key);
      return server;
    },
    whenReplaced: (server) => redis.whenReplaced(served.get(server) ?? "", server),
    whenWhole: () => redis.whenWhole(),
    async folders() {
      const primaries = await Promise.all(keys.map((key) => redis.primaryOf(key)));
      return [...new Set(primaries.map(({ folder }) => folder))];
    },
    remove: () => redis.remove(),
  };
}
