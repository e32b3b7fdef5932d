import type { CancelTimer } from "../../core/clock.ts";
import { systemClock } from "../../support/clock.ts";
import { backoffMs } from "../../support/retry.ts";
import { withinDeadline } from "../response-deadline.ts";
import type { RedisClient, RedisConnection, RedisConnectionOptions } from "./redis-connection.ts";
import { reasonOf, toRedisStoreError } from "./redis-errors.ts";
import type { RedisUrl } from "./redis-url.ts";

const reconnectBackoff = { baseMs: 50, maxMs: 2000 };

/**
 * Connects to one server. While disconnected every command fails at once instead of waiting in a
 * queue; the client reconnects by itself, trying at least every 2.5 seconds.
 * @throws ParleyError `store-unavailable`
 */
export async function connectServer(
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
      // The first connection is tried once; a lost one is retried for ever.
      reconnectStrategy: (retries: number, cause: Error) =>
        wasConnected ? backoffMs(retries + 1, reconnectBackoff) * (0.75 + Math.random() / 2) : cause,
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
    // It was closed while it reconnected: the client itself would stay connected, and keep the process running.
    if (isClosed) {
      client.destroy();
      return;
    }
    if (isDown && wasConnected) log.info({ store: address }, "Redis connection restored");
    isDown = false;
    wasConnected = true;
  });

  // The system would wait for many minutes on a connection that no longer responds: replace it, and replace the
  // new one too if that does not respond either.
  let cancelWatchdog: CancelTimer | undefined;
  const reconnect = () => {
    if (isClosed || cancelWatchdog !== undefined) return;
    if (client.isOpen) client.destroy();
    // A failure is reported by the `error` event, and by every command until it is connected.
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
    // Otherwise the client would go on reconnecting after a failed start.
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
        // A server that does not respond, or is gone meanwhile: the client would wait for it, and ping it, for ever.
        client.destroy();
      }
    },
  };
}
