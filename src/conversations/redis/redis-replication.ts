import type { RedisConnection } from "./redis-connection.ts";

/** How long replicas are waited for. Writes after it wait behind. */
const timeoutMs = 1000;

/**
 * Runs a write and waits until so many replicas have it as the store's URL asks for, so that a failover does not lose
 * it. Writes that end in one moment wait together. Rejects when too few replicas respond in time, or when the connection
 * was replaced meanwhile, which would confirm nothing: the outcome is then unknown. `key`: one of those written.
 * `hasChanged`: whether the write changed anything. If not, what it found is confirmed: another connection may have
 * written it a moment ago.
 */
export type ConfirmedWrite = <T>(
  key: string,
  write: () => Promise<T>,
  hasChanged: (result: T) => boolean,
) => Promise<T>;

/** @see {@link ConfirmedWrite} */
export function createConfirmedWrite(connection: RedisConnection): ConfirmedWrite {
  const { replicas } = connection;
  if (replicas === 0) return (_, write) => write();
  const { isCluster } = connection;
  /** By the server: of a cluster, by the hash tag. */
  const next = new Map<string, Promise<void>>();
  // WAIT confirms everything up to the last change that its own connection made. (Redis 7.0: up to its last command.)
  const confirm = async (server: string, key: string) => {
    // Later writes must not rely on a command that is already sent.
    await Promise.resolve();
    next.delete(server);
    const count = await connection.wait(key, replicas, timeoutMs);
    if (count < replicas) throw new Error(`NOREPLICAS ${count} of ${replicas} replicas have a write`);
  };
  return async (key, write, hasChanged) => {
    const { epoch } = connection;
    const result = await write();
    const server = isCluster ? (/^[^{]*(\{[^}]*\})/.exec(key)?.[1] ?? key) : "";
    if (!hasChanged(result))
      await connection.client.set(`parley:wait${server}`, "", {
        expiration: { type: "PX", value: timeoutMs },
      });
    const waiting = next.get(server) ?? confirm(server, key);
    next.set(server, waiting);
    await waiting;
    if (connection.epoch !== epoch) throw new Error("the connection was replaced before replicas confirmed");
    return result;
  };
}
