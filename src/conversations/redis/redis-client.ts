import type { createClient } from "@keyv/redis";
import { ParleyError } from "../../core/errors.ts";
import type { Log } from "../../core/telemetry.ts";

export type RedisClient = ReturnType<typeof createClient>;

export interface RedisConnection {
  readonly client: RedisClient;
  /** `host:port`, without credentials. */
  readonly address: string;
  /**
   * Runs commands and waits for at most the deadline: a server that hangs is an outage like one that is gone.
   * @throws ParleyError `store-unavailable`; the outcome of what was sent is then unknown
   */
  readonly attempt: <T>(work: () => Promise<T>) => Promise<T>;
  readonly close: () => Promise<void>;
}

export interface RedisConnectionOptions {
  readonly log: Log;
  /** Longest wait for an answer. Default 5 s. */
  readonly deadlineMs?: number | undefined;
}

/**
 * Connects to `redis://` or `rediss://`. While the connection is away every command fails at once rather than
 * waiting unseen in a queue; the client comes back by itself, trying at least every two seconds.
 * @throws ParleyError `config` (not a URL), `store-unavailable`
 */
export async function connectRedis(url: string, options: RedisConnectionOptions): Promise<RedisConnection> {
  const { log, deadlineMs = 5000 } = options;
  // The parser's own error would carry the URL, and with it the password.
  if (!URL.canParse(url)) throw new ParleyError("config", "STORE_URL is not a URL: write redis://host:6379");
  const { hostname, port, protocol } = new URL(url);
  const address = `${hostname}:${port === "" ? "6379" : port}${protocol === "rediss:" ? " (TLS)" : ""}`;

  const redis = await import("@keyv/redis");
  let wasConnected = false;
  const client: RedisClient = redis.createClient({
    url,
    disableOfflineQueue: true,
    // Idle connections are dropped by firewalls without a word.
    pingInterval: 30_000,
    socket: {
      connectTimeout: deadlineMs,
      // The first connection fails loudly; a lost one is looked for until it is found.
      reconnectStrategy: (retries: number, cause: Error) =>
        wasConnected ? Math.min(50 * 2 ** retries, 2000) * (0.75 + Math.random() / 2) : cause,
    },
  });

  let isAway = false;
  client.on("error", (error: unknown) => {
    if (!isAway && wasConnected) log.warn({ store: address, reason: reasonOf(error) }, "Redis is away");
    isAway = true;
  });
  client.on("ready", () => {
    if (isAway && wasConnected) log.info({ store: address }, "Redis is back");
    isAway = false;
    wasConnected = true;
  });
  // Nine spaces listen for its errors.
  client.setMaxListeners(50);

  // A connection that went mute would be waited on for many minutes by the system: better a new one, and yet
  // another where that goes mute too.
  let isClosed = false;
  let watchdog: NodeJS.Timeout | undefined;
  const reconnect = () => {
    if (isClosed || watchdog !== undefined) return;
    if (client.isOpen) client.destroy();
    // Its failure is told by the `error` event, and by every command until it is back.
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
      timer = setTimeout(() => {
        reject(new Error(`no answer within ${deadlineMs} ms`));
        if (wasConnected) reconnect();
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
    // Otherwise it would go on trying behind the back of a start that has failed.
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

/** What Redis or its client said, as a ParleyError without credentials. ParleyErrors pass through. */
function toRedisStoreError(error: unknown, address: string): ParleyError {
  if (error instanceof ParleyError) return error;
  const reason = reasonOf(error);
  const problem = /^(WRONGPASS|NOAUTH|NOPERM)/.test(reason)
    ? "refuses this user or password: check STORE_URL"
    : /^(OOM|MISCONF|READONLY)/.test(reason)
      ? "does not take writes"
      : "does not answer";
  return new ParleyError("store-unavailable", `the Redis store at ${address} ${problem} (${reason})`, {
    detail: { address, reason },
    cause: error,
  });
}

function reasonOf(error: unknown): string {
  if (!(error instanceof Error)) return "unknown";
  const { code } = error as NodeJS.ErrnoException;
  if (typeof code === "string" && code !== "") return code;
  // Replies of Redis begin with a word in capitals; the rest may quote a command.
  const [word = ""] = error.message.split(" ", 1);
  return /^[A-Z]{3,}$/.test(word) ? word : error.name === "Error" ? error.message.slice(0, 80) : error.name;
}
