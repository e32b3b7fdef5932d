import type { createClient } from "@redis/client";
import type { CancelTimer } from "../../core/clock.ts";
import { ParleyError } from "../../core/errors.ts";
import { systemClock } from "../../support/clock.ts";
import { backoffMs, backoffs } from "../../support/retry.ts";
import type { BackendOptions } from "../backend.ts";
import { withinDeadline } from "../server-store.ts";

/** A client of node-redis. */
export type RedisClient = ReturnType<typeof createClient>;

/** A connection that reconnects by itself. */
export interface RedisConnection {
  readonly client: RedisClient;
  /** `host:port` without credentials. */
  readonly address: string;
  /**
   * Runs commands within the deadline, so that a server that hangs counts as an outage.
   * @throws ParleyError `store-unavailable`, after which the outcome of the commands is unknown
   */
  readonly attempt: <T>(work: () => Promise<T>) => Promise<T>;
  /** Calls the listener whenever it is connected again. */
  readonly onReady: (listener: () => void) => void;
  readonly close: () => Promise<void>;
}

/**
 * Connects to one server. Without a connection every command fails at once instead of waiting in a queue. The
 * client reconnects by itself, at least every 2.5 seconds.
 * @throws ParleyError `store-unavailable`
 */
export async function connectRedis(url: string, options: BackendOptions): Promise<RedisConnection> {
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
  client.on("error", (error: unknown) => {
    if (!isDown && wasConnected)
      log.warn({ store: address, reason: reasonOf(error) }, "Redis connection lost");
    isDown = true;
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
      // Behind one address another server may be the primary now. The connection would stay with this one.
      if (wasConnected && error instanceof Error && error.message.includes("READONLY")) reconnect();
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
    address,
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
  ["NOREPLICAS", refusesWrites, "look at its replicas, or lower min-replicas-to-write"],
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
