import type { Leases } from "../leased-queue.ts";
import type { RedisConnection } from "./redis-connection.ts";

const renewSource = `
if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('PEXPIRE', KEYS[1], ARGV[2]) end
return 0`;
const releaseSource = `
if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('DEL', KEYS[1]) end
return 0`;

/** One key per lease, which holds the holder and expires by itself. */
export function createRedisLeases(connection: RedisConnection): Leases {
  const { attempt } = connection;
  const keyOf = (name: string) => `parley:lease::${name}`;
  return {
    async take(name, holder, ttlMs) {
      const options = { condition: "NX", expiration: { type: "PX", value: ttlMs } } as const;
      return (await attempt(() => connection.client.set(keyOf(name), holder, options))) === "OK";
    },
    async renew(name, holder, ttlMs) {
      const input = { keys: [keyOf(name)], arguments: [holder, String(ttlMs)] };
      return Number(await attempt(() => connection.client.eval(renewSource, input))) === 1;
    },
    async release(name, holder) {
      await attempt(() =>
        connection.client.eval(releaseSource, { keys: [keyOf(name)], arguments: [holder] }),
      );
    },
  };
}
