import type { CancelTimer } from "../../core/clock.ts";
import { ParleyError } from "../../core/errors.ts";
import { systemClock } from "../../support/clock.ts";
import { backoffMs, backoffs } from "../../support/retry.ts";
import { withinDeadline } from "../server-store.ts";
import {
  type ClusterUrl,
  openServer,
  parseRedisUrl,
  type RedisAddress,
  type RedisClient,
  type RedisConnection,
  type RedisConnectionOptions,
} from "./redis-connection.ts";

type RedisUrl = ReturnType<typeof parseRedisUrl>;

/**
 * Connects to the server or cluster of a store URL.
 * @throws ParleyError `store-unavailable`
 */
export async function connectRedis(url: string, options: RedisConnectionOptions): Promise<RedisConnection> {
  const parsed = parseRedisUrl(url);
  const { cluster } = parsed;
  return cluster === undefined
    ? connectServer(parsed, options)
    : connectCluster({ ...parsed, cluster }, options);
}

/**
 * Connects to one server. Without a connection every command fails at once instead of waiting in a queue. The
 * client reconnects by itself, at least every 2.5 seconds.
 * @throws ParleyError `store-unavailable`
 */
async function connectServer(
  { url, replicas }: RedisUrl,
  options: RedisConnectionOptions,
): Promise<RedisConnection> {
  const { log, deadlineMs = 5000, clock = systemClock } = options;
  const { hostname, port, protocol } = new URL(url);
  const address = `${hostname}:${port === "" ? "6379" : port}${protocol === "rediss:" ? " (TLS)" : ""}`;

  const redis = await import("@redis/client");
  let wasConnected = false;
  const client: RedisClient = redis.createClient({
    url,
    disableOfflineQueue: true,
    // Firewalls drop idle connections silently.
    pingInterval: 30_000,
    socket: {
      connectTimeout: deadlineMs,
      // The first connection is tried once, a lost one is retried for ever.
      reconnectStrategy: (retries: number, cause: Error) =>
        wasConnected ? backoffMs(retries + 1, backoffs.moment) * (0.75 + Math.random() / 2) : cause,
    },
  });

  let isDown = false;
  let isClosed = false;
  let epoch = 0;
  client.on("error", (error: unknown) => {
    if (!isDown && wasConnected)
      log.warn({ store: address, reason: reasonOf(error) }, "Redis connection lost");
    isDown = true;
    epoch++;
  });
  client.on("ready", () => {
    // It was closed while it reconnected. The client would stay connected and keep the process running.
    if (isClosed) {
      client.destroy();
      return;
    }
    if (isDown && wasConnected) log.info({ store: address }, "Redis connection restored");
    isDown = false;
    wasConnected = true;
  });

  // The system would wait many minutes on a connection that does not respond. So it is replaced, and so is
  // the new one if that does not respond either.
  let cancelWatchdog: CancelTimer | undefined;
  const reconnect = () => {
    if (isClosed || cancelWatchdog !== undefined) return;
    if (client.isOpen) client.destroy();
    // The `error` event reports a failure, and so does every command until it is connected.
    client.connect().catch(() => {});
    const look = () => {
      cancelWatchdog = undefined;
      if (!client.isReady) reconnect();
    };
    cancelWatchdog = clock.after(deadlineMs * 2, look, { keepsAlive: false });
  };

  const attempt = async <T>(work: () => Promise<T>): Promise<T> => {
    try {
      return await withinDeadline(work, {
        deadlineMs,
        clock,
        onTimeout: () => {
          if (wasConnected) reconnect();
        },
      });
    } catch (error) {
      throw toRedisStoreError(error, address);
    }
  };

  try {
    await attempt(() => client.connect());
  } catch (error) {
    // Otherwise the client would keep reconnecting after a failed start.
    if (client.isOpen) client.destroy();
    throw error;
  }
  return {
    client,
    nodes: async () => [client],
    isCluster: false,
    get epoch() {
      return epoch;
    },
    address,
    replicas: replicas ?? 0,
    wait: (_, count, timeoutMs) => client.wait(count, timeoutMs),
    attempt,
    onReady: (listener) => void client.on("ready", listener),
    async close() {
      isClosed = true;
      cancelWatchdog?.();
      if (!client.isOpen) return;
      if (!client.isReady) {
        client.destroy();
        return;
      }
      try {
        await attempt(async () => client.close());
      } finally {
        // The client would wait for, and ping, a server that does not respond or is gone, for ever.
        client.destroy();
      }
    },
  };
}

/** Makes a ParleyError without credentials of an error of Redis or its client. */
function toRedisStoreError(error: unknown, address: string): ParleyError {
  if (error instanceof ParleyError) return error;
  const reason = reasonOf(error);
  const problem = /^(WRONGPASS|NOAUTH|NOPERM)/.test(reason)
    ? "refuses this user or password: check STORE_URL"
    : /^(OOM|MISCONF|READONLY|NOREPLICAS)/.test(reason)
      ? "refuses writes"
      : "does not respond";
  return new ParleyError("store-unavailable", `the Redis store at ${address} ${problem} (${reason})`, {
    detail: { address, problem, reason },
    cause: error,
  });
}

/** A code or the beginning of a message, but never what was sent. */
function reasonOf(error: unknown): string {
  if (!(error instanceof Error)) return "unknown";
  const { code } = error as NodeJS.ErrnoException;
  if (typeof code === "string" && code !== "") return code;
  // Error replies of Redis begin with a word in capitals. The rest may quote a command.
  const [word = ""] = error.message.split(" ", 1);
  return /^[A-Z]{3,}$/.test(word) ? word : error.name === "Error" ? error.message.slice(0, 80) : error.name;
}

const pingIntervalMs = 5000;
/** After this time an unreachable node may have been replaced, so the others are asked. */
const refreshAfterMs = 500;

/**
 * Connects to the primaries of a cluster. A command goes to the server of its first key, and fails at once if
 * that is not connected.
 * @throws ParleyError `store-unavailable`
 */
async function connectCluster(
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
          wasConnected ? backoffMs(retries + 1, backoffs.moment) * (0.75 + Math.random() / 2) : cause,
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
    // It has the same commands, which it sends by their first key.
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

/** The replicas of all slots. An entry is the first slot, the last, the primary and the replicas. */
async function replicasKnownTo(node: RedisClient): Promise<RedisAddress[]> {
  const slots = await node.sendCommand<readonly (readonly unknown[])[]>(["CLUSTER", "SLOTS"]);
  const servers = slots.flatMap((each) => each.slice(3) as readonly (readonly [string, number])[]);
  const addresses = servers.map(([host, port]): [string, RedisAddress] => [
    `${host}:${port}`,
    { host, port },
  ]);
  return [...new Map(addresses).values()];
}
