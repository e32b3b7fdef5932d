import { connectServer } from "./redis-client.ts";
import { connectCluster } from "./redis-cluster.ts";
import type { RedisConnection, RedisConnectionOptions } from "./redis-connection.ts";
import { connectBySentinels } from "./redis-sentinel.ts";
import { parseRedisUrl } from "./redis-url.ts";

/**
 * Connects to what a store URL names.
 * @throws ParleyError `store-unavailable`
 */
export async function connectRedis(url: string, options: RedisConnectionOptions): Promise<RedisConnection> {
  const parsed = parseRedisUrl(url);
  const { sentinels, cluster } = parsed;
  if (sentinels !== undefined) return connectBySentinels({ ...parsed, sentinels }, options);
  return cluster === undefined
    ? connectServer(parsed, options)
    : connectCluster({ ...parsed, cluster }, options);
}
