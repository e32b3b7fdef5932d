import type { createClient } from "@redis/client";
import type { CancelTimer } from "../../core/clock.ts";
import { ParleyError } from "../../core/errors.ts";
import { systemClock } from "../../support/clock.ts";
import { backoffMs, backoffs } from "../../support/retry.ts";
import type { BackendOptions } from "../backend.ts";
import { withinDeadline } from "../server-store.ts";
import { parseRedisUrl, type ClusterUrl, type RedisAddress, type RedisUrl } from "./redis-store.ts";

/** A client of node-redis. */
export type RedisClient = ReturnType<typeof createClient>;

/** A connection that reconnects by itself. */
export interface RedisConnection {
  /** The current client, which a failover replaces. In a cluster it only takes commands with keys. */
  readonly client: RedisClient;
  /** The server, or the primaries of a cluster. */
  readonly nodes: () => Promise<readonly RedisClient[]>;
  /** Whether the keys of a command must share a hash tag. */
  readonly isCluster: boolean;
  /** It rises whenever the connection may have been replaced. */
  readonly epoch: number;
  /** `host:port` without credentials, or several for a cluster. */
  readonly address: string;
  /** How many replicas must have a write before it is acknowledged. */
  readonly replicas: number;
  /** How many replicas have everything that this connection wrote before to the server of a key. */
  readonly wait: (key: string, replicas: number, timeoutMs: number) => Promise<number>;
  /**
   * Runs commands within the deadline, so that a server that hangs counts as an outage.
   * @throws ParleyError `store-unavailable`, after which the outcome of the commands is unknown
   */
  readonly attempt: <T>(work: () => Promise<T>) => Promise<T>;
  /** Runs work on each replica that responds, one by one. It is absent for a single server. */
  readonly onEachReplica?: (work: (replica: RedisClient) => Promise<void>) => Promise<void>;
  /** Calls the listener whenever it is connected again. */
  readonly onReady: (listener: () => void) => void;
  readonly close: () => Promise<void>;
}

const pingIntervalMs = 5000;

/**
 * Connects to the server or cluster of a store URL.
 * @throws ParleyError `store-unavailable`
 */
export async function connectRedis(url: string, options: BackendOptions): Promise<RedisConnection> {
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
async function connectServer({ url, replicas }: RedisUrl, options: BackendOptions): Promise<RedisConnection> {
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

const noAnswer = "does not respond";
const refusesWrites = "refuses writes";
/** What is wrong, and what to do about it, by what a reason contains. */
const problems: readonly (readonly [reason: string, problem: string, remedy: string])[] = [
  ["ECONNREFUSED", noAnswer, "nothing listens there: start Redis, or correct STORE_URL and its port"],
  ["ENOTFOUND", noAnswer, "no such host name: correct STORE_URL"],
  [
    "WRONGPASS",
    "refuses this user or password",
    "correct user and password in STORE_URL: redis://user:password@host:6379/0",
  ],
  ["NOAUTH", "refuses to serve", "Redis asks for a password: STORE_URL=redis://:password@host:6379/0"],
  ["NOPERM", "refuses this user", "give Parley's user all commands on the keys parley:*"],
  ["OOM", refusesWrites, "Redis is full: raise maxmemory"],
  ["MISCONF", refusesWrites, "Redis cannot save: look at its log and its disk"],
  ["READONLY", refusesWrites, "this is a replica: point STORE_URL to the primary"],
  ["NOREPLICAS", refusesWrites, "look at its replicas, or lower wait_replicas in STORE_URL"],
  ["", noAnswer, "look at Redis and the network (rediss:// where it wants TLS)"],
];

/** Makes a ParleyError without credentials of an error of Redis or its client. */
function toRedisStoreError(error: unknown, address: string): ParleyError {
  if (error instanceof ParleyError) return error;
  const reason = reasonOf(error);
  const [, problem = noAnswer, remedy = ""] = problems.find(([code]) => reason.includes(code)) ?? [];
  return new ParleyError(
    "store-unavailable",
    `the Redis store at ${address} ${problem} (${reason}): ${remedy}`,
    { detail: { address, problem, reason }, cause: error },
  );
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

/** After this time an unreachable node may have been replaced, so the others are asked. */
const refreshAfterMs = 500;

/**
 * Connects to the primaries of a cluster. A command goes to the server of its first key, and fails at once if
 * that is not connected.
 * @throws ParleyError `store-unavailable`
 */
async function connectCluster(
  { cluster: target, isTls, replicas: asked }: RedisUrl & { readonly cluster: ClusterUrl },
  { log, deadlineMs = 5000, clock = systemClock }: BackendOptions,
): Promise<RedisConnection> {
  const { createClient, createCluster } = await import("@redis/client");
  const address = `${target.addresses.map(({ host, port }) => `${host}:${port}`).join(", ")} (cluster)${isTls ? " (TLS)" : ""}`;
  const login = {
    ...(target.username === undefined ? {} : { username: target.username }),
    ...(target.password === undefined ? {} : { password: target.password }),
    disableOfflineQueue: true,
    pingInterval: pingIntervalMs,
  };
  let wasConnected = false;
  const cluster = createCluster({
    rootNodes: target.addresses.map(({ host, port }) => ({ socket: { host, port } })),
    defaults: {
      ...login,
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
        // It does not reconnect, and its commands report its errors.
        const replica: RedisClient = createClient({
          ...login,
          socket: {
            ...(isTls ? { tls: true as const, servername: at.host } : {}),
            ...at,
            connectTimeout: deadlineMs,
            reconnectStrategy: false,
          },
        });
        replica.on("error", () => {});
        try {
          await withinDeadline(() => replica.connect(), { deadlineMs, clock });
          await work(replica);
        } finally {
          if (replica.isOpen) replica.destroy();
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
