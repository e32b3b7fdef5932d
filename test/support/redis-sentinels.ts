import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createClient } from "redis";
import { sleep } from "../../src/support/sleep.ts";
import { freePort } from "./free-port.ts";
import { type RedisServer, startRedis } from "./redis-server.ts";
import { redisPrograms } from "./redis-programs.ts";
import { orRemove, type Removable, startAll } from "./start-all.ts";

/** A primary with a replica, and three sentinels that watch them. */
export interface RedisSentinels {
  /** `redis+sentinel://…` */
  readonly url: string;
  readonly servers: readonly [RedisServer, RedisServer];
  /** The present primary, as the sentinels have it. */
  primary(): Promise<RedisServer>;
  /** Makes the replica the primary, as an operator does. */
  failOver(): Promise<void>;
  /** Resolves when another server than this one is the primary. */
  whenReplaced(server: RedisServer): Promise<void>;
  /** Resolves when the primary has a replica that is in step. */
  whenReplicated(): Promise<void>;
  remove(): Promise<void>;
}

const name = "parley";
const pollMs = 50;

/**
 * `options`: of both servers. `downAfterMs`: how long the primary may be silent before there is a failover; on a busy machine
 * it may be silent for half a second without being down.
 */
export async function startSentinels(
  options: readonly string[] = [],
  { downAfterMs = 500 }: { readonly downAfterMs?: number } = {},
): Promise<RedisSentinels> {
  const servers = await startAll([() => startRedis(options), () => startRedis(options)]);
  const [first, second] = servers as [RedisServer, RedisServer];
  const folder = await mkdtemp(join(tmpdir(), "parley-sentinel-"));
  const sentinels = await orRemove(servers, async () => {
    await send(second.port, "REPLICAOF", "127.0.0.1", String(first.port));
    return startAll(
      [1, 2, 3].map((n) => () => startSentinel(join(folder, `${n}.conf`), first.port, downAfterMs)),
    );
  });
  // By default they tell each other every 2 s what they know, and look every 10 s how a server is. Redis before 7.0 has no
  // such command, and is slower.
  for (const { port } of sentinels)
    await send(port, "SENTINEL", "DEBUG", "info-period", "500", "publish-period", "200").catch(() => {});
  const portOf = async () => {
    const found = await send(sentinels[0]!.port, "SENTINEL", "GET-MASTER-ADDR-BY-NAME", name);
    return Number((found as [string, string])[1]);
  };
  const sentinelInfo = async () => String(await send(sentinels[0]!.port, "INFO", "sentinel"));
  const until = async (holds: () => Promise<boolean>) => {
    while (!(await holds().catch(() => false))) await sleep(pollMs);
  };
  // Each must know the others and the replica before there can be a failover.
  await until(async () => /slaves=1,sentinels=3/.test(await sentinelInfo()));
  const primary = async () => ((await portOf()) === first.port ? first : second);
  const whenReplicated = () =>
    until(async () =>
      /slave0:.*state=online/.test(String(await send((await primary()).port, "INFO", "replication"))),
    );
  await whenReplicated();

  return {
    url: `redis+sentinel://${sentinels.map(({ port }) => `127.0.0.1:${port}`).join(",")}/${name}`,
    servers: [first, second],
    primary,
    whenReplicated,
    async failOver() {
      await send(sentinels[0]!.port, "SENTINEL", "FAILOVER", name);
    },
    whenReplaced: (server) => until(async () => (await portOf()) !== server.port),
    async remove() {
      await Promise.all([...sentinels, first, second].map((server) => server.remove()));
      await rm(folder, { recursive: true, force: true });
    },
  };
}

async function startSentinel(
  file: string,
  primaryPort: number,
  downAfterMs: number,
): Promise<Removable & { readonly port: number }> {
  const port = await freePort();
  await writeFile(
    file,
    [
      `port ${port}`,
      "bind 127.0.0.1",
      `sentinel monitor ${name} 127.0.0.1 ${primaryPort} 2`,
      `sentinel down-after-milliseconds ${name} ${downAfterMs}`,
      `sentinel failover-timeout ${name} 3000`,
      "",
    ].join("\n"),
  );
  const child = spawn(redisPrograms.server, [file, "--sentinel"], { stdio: ["ignore", "pipe", "pipe"] });
  let output = "";
  await new Promise<void>((resolve, reject) => {
    child.once("error", reject);
    child.once("exit", () => reject(new Error(`sentinel ended: ${output}`)));
    child.stderr.on("data", (chunk: Buffer) => (output += chunk.toString()));
    child.stdout.on("data", (chunk: Buffer) => {
      output += chunk.toString();
      if (output.includes("monitor master")) resolve();
    });
  });
  return {
    port,
    async remove() {
      const gone = once(child, "exit");
      child.kill("SIGKILL");
      await gone;
    },
  };
}

async function send(port: number, ...command: string[]): Promise<unknown> {
  const client = createClient({ socket: { host: "127.0.0.1", port, reconnectStrategy: false } });
  client.on("error", () => {});
  await client.connect();
  try {
    return await client.sendCommand(command);
  } finally {
    client.destroy();
  }
}
