import type { RedisClient } from "./redis-connection.ts";
import type { RedisAddress } from "./redis-url.ts";

const pingIntervalMs = 5000;

/** How {@link openServer} connects. */
export interface OpenServerOptions {
  readonly username?: string | undefined;
  readonly password?: string | undefined;
  readonly database?: number | undefined;
  readonly isTls: boolean;
  /** Longest wait for the connection, in milliseconds. */
  readonly deadlineMs: number;
}

/** A connection to one server, which is not opened again when it ends. Its errors are those of its commands. */
export async function openServer(
  { host, port }: RedisAddress,
  { username, password, database, isTls, deadlineMs }: OpenServerOptions,
): Promise<RedisClient> {
  const { createClient } = await import("@redis/client");
  const client: RedisClient = createClient({
    ...(username === undefined ? {} : { username }),
    ...(password === undefined ? {} : { password }),
    ...(database === undefined ? {} : { database }),
    disableOfflineQueue: true,
    pingInterval: pingIntervalMs,
    socket: {
      host,
      port,
      connectTimeout: deadlineMs,
      reconnectStrategy: false,
      ...(isTls ? { tls: true, servername: host } : {}),
    },
  });
  client.on("error", () => {});
  await client.connect();
  return client;
}
