import { systemClock } from "../../support/clock.ts";
import { backoffMs } from "../../support/retry.ts";
import { withinDeadline } from "../response-deadline.ts";
import { openServer } from "./open-server.ts";
import type { RedisClient, RedisConnection, RedisConnectionOptions } from "./redis-connection.ts";
import { reasonOf, toRedisStoreError } from "./redis-errors.ts";
import type { RedisAddress, RedisUrl, SentinelUrl } from "./redis-url.ts";

const backoff = { baseMs: 50, maxMs: 1000 };
/** How often the sentinels are asked whether the primary is still the one that we use. */
const checkIntervalMs = 5000;

/**
 * Connects to the primary that sentinels name, and to the next one after a failover. The client library has sentinels
 * too, but holds commands back during a failover and sends them long after nobody waits for them any more.
 * @throws ParleyError `store-unavailable`
 */
export async function connectBySentinels(
  target: RedisUrl & { readonly sentinels: SentinelUrl },
  { log, deadlineMs = 5000, clock = systemClock }: RedisConnectionOptions,
): Promise<RedisConnection> {
  const { sentinels, isTls, replicas } = target;
  const address = `${sentinels.name} (sentinels ${sentinels.addresses.map(toText).join(", ")})${isTls ? " (TLS)" : ""}`;
  const closing = new AbortController();
  const listeners: (() => void)[] = [];
  let epoch = 0;

  // Not connected again by itself: the sentinels are asked before each new connection.
  const open = (at: RedisAddress, { username, password, database }: Partial<SentinelUrl>) =>
    openServer(at, { username, password, database, isTls, deadlineMs });

  /** What the first sentinel says that knows something. */
  const askSentinels = async <T>(command: readonly string[]): Promise<T> => {
    let failure: unknown = new Error("no sentinel knows this name");
    for (const each of sentinels.addresses) {
      try {
        const sentinel = await open(each, {});
        try {
          const found = await sentinel.sendCommand<T | null>([...command]);
          if (found !== null) return found;
        } finally {
          sentinel.destroy();
        }
      } catch (error) {
        failure = error;
      }
    }
    throw failure;
  };

  const findPrimary = async (): Promise<RedisAddress> => {
    const command = ["SENTINEL", "GET-MASTER-ADDR-BY-NAME", sentinels.name];
    const [host, port] = await askSentinels<readonly [string, string]>(command);
    return { host, port: Number(port) };
  };

  /** Those that the sentinels do not count as down. */
  const findReplicas = async (): Promise<RedisAddress[]> => {
    const command = ["SENTINEL", "REPLICAS", sentinels.name];
    const found = await askSentinels<readonly Readonly<Record<string, string>>[]>(command);
    return found.flatMap(({ ip = "", port, flags = "" }) =>
      /_down|disconnected/.test(flags) ? [] : [{ host: ip, port: Number(port) }],
    );
  };

  const openPrimary = async (at: RedisAddress): Promise<RedisClient> => {
    const client = await open(at, sentinels);
    const [role] = (await client.sendCommand(["ROLE"])) as readonly unknown[];
    if (role === "master") return client;
    client.destroy();
    throw new Error("READONLY the sentinels name a replica");
  };

  const use = (client: RedisClient, at: RedisAddress): { client: RedisClient; at: RedisAddress } => {
    epoch++;
    const onLost = (error?: unknown) => {
      if (current.client !== client || closing.signal.aborted) return;
      epoch++;
      recover(error);
    };
    client.on("error", onLost);
    client.on("end", () => onLost());
    return { client, at };
  };

  let isRecovering = false;
  const recover = (cause?: unknown): void => {
    if (isRecovering || closing.signal.aborted) return;
    isRecovering = true;
    log.warn({ store: address, reason: reasonOf(cause) }, "Redis connection lost");
    void reconnect()
      .catch((error: unknown) => log.debug({ error: String(error) }, "Redis is not connected again"))
      .finally(() => {
        isRecovering = false;
      });
  };
  const reconnect = async (): Promise<void> => {
    const lost = current.client;
    // What waits for it fails at once.
    if (lost.isOpen) lost.destroy();
    for (let attempt = 1; !closing.signal.aborted; attempt++) {
      try {
        const at = await withinDeadline(findPrimary, { deadlineMs, clock });
        const client = await withinDeadline(() => openPrimary(at), { deadlineMs, clock });
        current = use(client, at);
        log.info({ store: address, primary: toText(at) }, "Redis connection restored");
        for (const listener of listeners) listener();
        return;
      } catch (error) {
        log.debug({ store: address, reason: reasonOf(error) }, "no primary of Redis yet");
        await clock.sleep(backoffMs(attempt, backoff) * (0.75 + Math.random() / 2), closing.signal);
      }
    }
  };

  let current: { client: RedisClient; at: RedisAddress };
  try {
    const at = await withinDeadline(findPrimary, { deadlineMs, clock });
    current = use(await withinDeadline(() => openPrimary(at), { deadlineMs, clock }), at);
  } catch (error) {
    throw toRedisStoreError(error, address);
  }

  // A primary that is cut off from the others goes on taking writes.
  const stop = clock.every(checkIntervalMs, () => {
    if (isRecovering) return;
    withinDeadline(findPrimary, { deadlineMs, clock })
      .then((at) => {
        if (toText(at) !== toText(current.at)) recover(new Error("another server is the primary"));
      })
      .catch((error: unknown) => log.debug({ reason: reasonOf(error) }, "no sentinel responds"));
  });

  return {
    get client() {
      return current.client;
    },
    nodes: async () => [current.client],
    isCluster: false,
    get epoch() {
      return epoch;
    },
    address,
    replicas: replicas ?? 1,
    wait: (_, count, timeoutMs) => current.client.wait(count, timeoutMs),
    async onEachReplica(work) {
      for (const at of await withinDeadline(findReplicas, { deadlineMs, clock })) {
        const replica = await withinDeadline(() => open(at, sentinels), { deadlineMs, clock });
        try {
          await work(replica);
        } finally {
          replica.destroy();
        }
      }
    },
    onReady: (listener) => void listeners.push(listener),
    async attempt(work) {
      try {
        return await withinDeadline(work, {
          deadlineMs,
          clock,
          onTimeout: () => recover(new Error("no response")),
        });
      } catch (error) {
        if (/^(READONLY|MASTERDOWN)/.test(reasonOf(error))) recover(error);
        throw toRedisStoreError(error, address);
      }
    },
    async close() {
      closing.abort();
      stop();
      const { client } = current;
      try {
        if (client.isReady) await withinDeadline(async () => client.close(), { deadlineMs, clock });
      } finally {
        client.destroy();
      }
    },
  };
}

function toText({ host, port }: RedisAddress): string {
  return `${host}:${port}`;
}
