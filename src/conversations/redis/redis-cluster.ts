import { withinDeadline } from "../response-deadline.ts";
import { systemClock } from "../../support/clock.ts";
import { backoffMs } from "../../support/retry.ts";
import { openServer } from "./open-server.ts";
import type { RedisClient, RedisConnection, RedisConnectionOptions } from "./redis-connection.ts";
import { reasonOf, toRedisStoreError } from "./redis-errors.ts";
import type { ClusterUrl, RedisAddress, RedisUrl } from "./redis-url.ts";

const pingIntervalMs = 5000;
const reconnectBackoff = { baseMs: 50, maxMs: 1000 };
/** A node that cannot be reached for so long may have been replaced: the others are asked. */
const refreshAfterMs = 500;

/**
 * Connects to the primaries of a cluster. A command is sent to the server of its first key; one that is not connected
 * fails it at once.
 * @throws ParleyError `store-unavailable`
 */
export async function connectCluster(
  { cluster: target, isTls, replicas: asked }: RedisUrl & { readonly cluster: ClusterUrl },
  { log, deadlineMs = 5000, clock = systemClock }: RedisConnectionOptions,
): Promise<RedisConnection> {
  const { createCluster } = await import("@redis/client");
  const address = `${target.addresses.map(({ host, port }) => `${host}:${port}`).join(", ")} (cluster)${isTls ? " (TLS)" : ""}`;
  const { username, password } = target;
  let wasConnected = false;
  const cluster = createCluster({
    rootNodes: target.addresses.map(({ host, port }) => ({ socket: { host, port } })),
    defaults: {
      ...(username === undefined ? {} : { username }),
      ...(password === undefined ? {} : { password }),
      disableOfflineQueue: true,
      pingInterval: pingIntervalMs,
      socket: {
        connectTimeout: deadlineMs,
        ...(isTls ? { tls: true } : {}),
        reconnectStrategy: (retries: number, cause: Error) =>
          wasConnected ? backoffMs(retries + 1, reconnectBackoff) * (0.75 + Math.random() / 2) : cause,
      },
    },
    topologyRefreshOnReconnectionAttemptStrategy: refreshAfterMs,
  });

  let epoch = 0;
  const lost = new Set<string>();
  const listeners: (() => void)[] = [];
  cluster.on("error", () => {
    epoch++;
  });
  cluster.on("node-error", (error: unknown, { host, port }: { host: string; port: number }) => {
    epoch++;
    const node = `${host}:${port}`;
    if (wasConnected && !lost.has(node))
      log.warn({ store: address, node, reason: reasonOf(error) }, "Redis connection lost");
    lost.add(node);
  });
  cluster.on("node-disconnect", () => {
    epoch++;
  });
  cluster.on("node-ready", ({ host, port }: { host: string; port: number }) => {
    epoch++;
    if (lost.delete(`${host}:${port}`) && wasConnected)
      log.info({ store: address, node: `${host}:${port}` }, "Redis connection restored");
    if (wasConnected) for (const listener of listeners) listener();
  });

  const attempt = async <T>(work: () => Promise<T>): Promise<T> => {
    try {
      return await withinDeadline(work, { deadlineMs, clock });
    } catch (error) {
      throw toRedisStoreError(error, address);
    }
  };
  try {
    await attempt(() => cluster.connect());
  } catch (error) {
    cluster.destroy();
    throw error;
  }
  wasConnected = true;
  const nodes = () =>
    Promise.all(
      cluster.masters.map(async (node) => (await cluster.nodeClient(node)) as unknown as RedisClient),
    );
  const findReplicas = async (): Promise<RedisAddress[]> => {
    const [node] = await nodes();
    return node === undefined ? [] : await replicasKnownTo(node);
  };
  // Without replicas a primary that fails is not replaced.
  const replicas = asked ?? ((await attempt(findReplicas)).length > 0 ? 1 : 0);
  return {
    // The same commands, sent by their first key.
    client: cluster as unknown as RedisClient,
    nodes,
    isCluster: true,
    get epoch() {
      return epoch;
    },
    address,
    replicas,
    wait: async (key, count, timeoutMs) =>
      Number(await cluster.sendCommand(key, false, ["WAIT", String(count), String(timeoutMs)])),
    async onEachReplica(work) {
      for (const at of await attempt(findReplicas)) {
        const login = { username, password, isTls, deadlineMs };
        const replica = await withinDeadline(() => openServer(at, login), { deadlineMs, clock });
        try {
          await work(replica);
        } finally {
          replica.destroy();
        }
      }
    },
    attempt,
    onReady: (listener) => void listeners.push(listener),
    async close() {
      if (cluster.isOpen)
        await withinDeadline(() => cluster.close(), { deadlineMs, clock }).catch(() => cluster.destroy());
    },
  };
}

/** The replicas of all slots: an entry is its first slot, its last one, the primary, the replicas, each with its address. */
async function replicasKnownTo(node: RedisClient): Promise<RedisAddress[]> {
  const slots = await node.sendCommand<readonly (readonly unknown[])[]>(["CLUSTER", "SLOTS"]);
  const servers = slots.flatMap((each) => each.slice(3) as readonly (readonly [string, number])[]);
  const addresses = servers.map(([host, port]): [string, RedisAddress] => [
    `${host}:${port}`,
    { host, port },
  ]);
  return [...new Map(addresses).values()];
}
