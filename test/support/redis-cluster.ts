import { execFile } from "node:child_process";
import { promisify } from "node:util";
import { createClient } from "redis";
import { sleep } from "../../src/support/clock.ts";
import { freePort } from "./free-port.ts";
import { type RedisServer, startRedis } from "./redis-server.ts";
import { redisPrograms } from "./redis-programs.ts";
import { orRemove, startAll } from "./start-all.ts";

const run = promisify(execFile);
const pollMs = 50;
const primaries = 3;

/** A cluster of three primaries with a replica each. */
export interface RedisCluster {
  /** The URL `redis+cluster://…` of two of its servers. */
  readonly url: string;
  readonly servers: readonly RedisServer[];
  /** Resolves to the present primary of a key. */
  primaryOf(key: string): Promise<RedisServer>;
  /** Resolves when another server than this one is the primary of the key. */
  whenReplaced(key: string, server: RedisServer): Promise<void>;
  /** Resolves when all slots are served, each primary has a replica in step, and every server knows it. */
  whenWhole(): Promise<void>;
  isReplicaOf(server: RedisServer, primary: RedisServer): Promise<boolean>;
  /** Resolves to the keys of each primary. */
  keys(): Promise<readonly (readonly string[])[]>;
  remove(): Promise<void>;
}

export async function startCluster(): Promise<RedisCluster> {
  const servers = await startAll(
    Array.from(
      { length: primaries * 2 },
      () => async () =>
        startRedis([
          "--cluster-enabled",
          "yes",
          "--cluster-node-timeout",
          "1000",
          "--cluster-port",
          String(await freePort()),
          "--cluster-replica-validity-factor",
          "0",
        ]),
    ),
  );
  const addresses = servers.map(({ port }) => `127.0.0.1:${port}`);
  const create = ["--cluster", "create", ...addresses, "--cluster-replicas", "1", "--cluster-yes"];
  await orRemove(servers, () => run(redisPrograms.client, create));

  /** Asks the first server that responds. */
  const ask = async (...command: string[]): Promise<unknown> => {
    let failure: unknown;
    for (const { port } of servers) {
      try {
        return await send(port, ...command);
      } catch (error) {
        failure = error;
      }
    }
    throw failure;
  };
  const shards = async () => ((await ask("CLUSTER", "SLOTS")) as RawShard[]).map(toShard);
  const byPort = (port: number): RedisServer => {
    const found = servers.find((server) => server.port === port);
    if (found === undefined) throw new Error(`no server has the port ${port}`);
    return found;
  };
  const primaryOf = async (key: string) => {
    const slot = Number(await ask("CLUSTER", "KEYSLOT", key));
    const shard = (await shards()).find(({ from, to }) => slot >= from && slot <= to);
    if (shard === undefined) throw new Error("nobody serves the slot");
    return byPort(shard.primary);
  };
  const until = async (holds: () => Promise<boolean>) => {
    while (!(await holds().catch(() => false))) await sleep(pollMs);
  };
  const whenWhole = () =>
    until(async () => {
      for (const { port } of servers) {
        const info = String(await send(port, "CLUSTER", "INFO"));
        if (!info.includes("cluster_state:ok") || !info.includes("cluster_known_nodes:6")) return false;
        // Each server hears for itself who replicates whom.
        const slots = (await send(port, "CLUSTER", "SLOTS")) as RawShard[];
        if (slots.some(([, , , ...replicas]) => replicas.length === 0)) return false;
      }
      for (const { primary } of await shards()) {
        if (!/slave0:.*state=online/.test(String(await send(primary, "INFO", "replication")))) return false;
      }
      return true;
    });
  await whenWhole();

  return {
    url: `redis+cluster://${addresses.slice(0, 2).join(",")}`,
    servers,
    primaryOf,
    whenWhole,
    whenReplaced: (key, server) => until(async () => (await primaryOf(key)).port !== server.port),
    isReplicaOf: async (server, primary) =>
      String(await send(server.port, "INFO", "replication")).includes(`master_port:${primary.port}`),
    keys: async () =>
      Promise.all(
        (await shards()).map(async ({ primary }) => (await send(primary, "KEYS", "*")) as string[]),
      ),
    async remove() {
      await Promise.all(servers.map((server) => server.remove()));
    },
  };
}

interface Shard {
  readonly from: number;
  readonly to: number;
  readonly primary: number;
}
type RawNode = readonly [host: string, port: number];
type RawShard = readonly [from: number, to: number, primary: RawNode, ...replicas: RawNode[]];

function toShard([from, to, [, primary]]: RawShard): Shard {
  return { from, to, primary };
}

async function send(port: number, ...command: string[]): Promise<unknown> {
  const client = createClient({
    socket: { host: "127.0.0.1", port, reconnectStrategy: false, connectTimeout: 1000 },
  });
  client.on("error", () => {});
  await client.connect();
  try {
    return await client.sendCommand(command);
  } finally {
    client.destroy();
  }
}
