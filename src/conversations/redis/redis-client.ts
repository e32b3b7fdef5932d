import type { createClient } from "@keyv/redis";
import { ParleyError } from "../../core/errors.ts";
import type { Log } from "../../core/telemetry.ts";
import { backoffMs } from "../../support/retry.ts";

/** A client of node-redis. */
export type RedisClient = ReturnType<typeof createClient>;

/** A connection that reconnects by itself. */
export interface RedisConnection {
  readonly client: RedisClient;
  /** `host:port`, without credentials. */
  readonly address: string;
  /**
   * Runs commands within the deadline: a server that hangs is an outage like one that is down.
   * @throws ParleyError `store-unavailable`; the outcome of what was sent is then unknown
   */
  readonly attempt: <T>(work: () => Promise<T>) => Promise<T>;
  readonly close: () => Promise<void>;
}

/** How the connection is made. */
export interface RedisConnectionOptions {
  readonly log: Log;
  /** Longest wait for a response, in milliseconds. Default 5 s. */
  readonly deadlineMs?: number | undefined;
}

/** A timer that runs later than this means that the process was suspended, or busy all the time. */
const maxLateMs = 250;
/** How long a response is waited for after that. */
const afterSuspensionMs = 1000;
const reconnectBackoff = { baseMs: 50, maxMs: 2000 };

/**
 * Connects to `redis://` or `rediss://`. While disconnected every command fails at once instead of waiting in a
 * queue; the client reconnects by itself, trying at least every 2.5 seconds.
 * @throws ParleyError `store-unavailable`
 */
export async function connectRedis(url: string, options: RedisConnectionOptions): Promise<RedisConnection> {
  const { log, deadlineMs = 5000 } = options;
  const { hostname, port, protocol } = new URL(url);
  const address = `${hostname}:${port === "" ? "6379" : port}${protocol === "rediss:" ? " (TLS)" : ""}`;

  const redis = await import("@keyv/redis");
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
  client.on("error", (error: unknown) => {
    if (!isDown && wasConnected)
      log.warn({ store: address, reason: reasonOf(error) }, "Redis connection lost");
    isDown = true;
  });
  client.on("ready", () => {
    if (isDown && wasConnected) log.info({ store: address }, "Redis connection restored");
    isDown = false;
    wasConnected = true;
  });
  // Each space's adapter listens for its errors.
  client.setMaxListeners(50);

  // The system would wait for many minutes on a connection that no longer responds: replace it, and replace the
  // new one too if that does not respond either.
  let isClosed = false;
  let watchdog: NodeJS.Timeout | undefined;
  const reconnect = () => {
    if (isClosed || watchdog !== undefined) return;
    if (client.isOpen) client.destroy();
    // A failure is reported by the `error` event, and by every command until it is connected.
    client.connect().catch(() => {});
    watchdog = setTimeout(() => {
      watchdog = undefined;
      if (!client.isReady) reconnect();
    }, deadlineMs * 2);
    watchdog.unref();
  };

  const attempt = async <T>(work: () => Promise<T>): Promise<T> => {
    let timer: NodeJS.Timeout | undefined;
    const deadline = new Promise<never>((_, reject) => {
      const dueAt = performance.now() + deadlineMs;
      const timeOut = (): void => {
        reject(new Error(`no response within ${deadlineMs} ms`));
        if (wasConnected) reconnect();
      };
      timer = setTimeout(() => {
        // A process that was suspended: its timers run before it reads the response that waits in its socket.
        const wasSuspended = performance.now() - dueAt > maxLateMs;
        if (wasSuspended) timer = setTimeout(timeOut, Math.min(deadlineMs, afterSuspensionMs));
        else timeOut();
      }, deadlineMs);
    });
    try {
      return await Promise.race([work(), deadline]);
    } catch (error) {
      throw toRedisStoreError(error, address);
    } finally {
      clearTimeout(timer);
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
    address,
    attempt,
    async close() {
      isClosed = true;
      clearTimeout(watchdog);
      if (!client.isOpen) return;
      if (!client.isReady) {
        client.destroy();
        return;
      }
      await attempt(async () => client.close());
    },
  };
}

/** An error of Redis or its client as a ParleyError without credentials. ParleyErrors pass through. */
function toRedisStoreError(error: unknown, address: string): ParleyError {
  if (error instanceof ParleyError) return error;
  const reason = reasonOf(error);
  const problem = /^(WRONGPASS|NOAUTH|NOPERM)/.test(reason)
    ? "refuses this user or password: check STORE_URL"
    : /^(OOM|MISCONF|READONLY)/.test(reason)
      ? "refuses writes"
      : "does not respond";
  return new ParleyError("store-unavailable", `the Redis store at ${address} ${problem} (${reason})`, {
    detail: { address, problem, reason },
    cause: error,
  });
}

function reasonOf(error: unknown): string {
  if (!(error instanceof Error)) return "unknown";
  const { code } = error as NodeJS.ErrnoException;
  if (typeof code === "string" && code !== "") return code;
  // Error replies of Redis begin with a word in capitals; the rest may quote a command.
  const [word = ""] = error.message.split(" ", 1);
  return /^[A-Z]{3,}$/.test(word) ? word : error.name === "Error" ? error.message.slice(0, 80) : error.name;
}
