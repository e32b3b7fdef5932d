import path from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { createClient } from "redis";
import { startRedis } from "../../test/support/redis-server.ts";
import { startChild, type Child } from "./child.ts";
import { quantile } from "./figures.ts";
import { createStage, type Stage } from "./stage.ts";
import type { Talk } from "./talks.ts";
import type { Turn } from "./turn-watch.ts";

/** The result of one run of several instances on one Redis. */
export interface InstancesResult {
  readonly instances: number;
  readonly conversations: number;
  readonly seconds: number;
  readonly turns: number;
  /** The number of turns that were refused as busy or not answered within a minute. */
  readonly lost: number;
  readonly turnsPerSecond: number;
  /** The seconds from the question to the whole answer. */
  readonly wholeAnswerSeconds: { readonly p50: number; readonly p95: number };
  /** CPU milliseconds per turn: of all instances, of Redis, and of the simulators in this process. */
  readonly cpuMs: { readonly parley: number; readonly redis: number; readonly simulators: number };
  /** The number of the machine's CPUs in use. */
  readonly cpusUsed: number;
  readonly rssMb: readonly number[];
  /** The number of refused requests by reason, over the whole run. */
  readonly refused: Readonly<Record<string, number>>;
  readonly redis: { readonly commands: number; readonly bytesKept: number; readonly bytesWritten: number };
}

const root = path.join(import.meta.dirname, "..", "..");
const connectWithinMs = 60_000;
const answerWithinMs = 60_000;

/**
 * People in many Slack threads ask at the same time, and again after each answer and a pause, without Slack's
 * limits. All instances share one Redis that has every acknowledged write on disk.
 */
export async function measureInstances(
  instances: number,
  { conversations, seconds, pauseMs }: { conversations: number; seconds: number; pauseMs: number },
): Promise<InstancesResult> {
  const redis = await startRedis();
  const stage = await createStage("lifted");
  const started: Instance[] = [];
  const client = await createClient({ url: redis.url }).connect();
  try {
    Object.assign(stage.gateway.script, { thinkMs: 300, tokens: 20, gapMs: 25 });
    for (let index = 0; index < instances; index += 1)
      started.push(await startInstance(stage, redis.url, index + 1));
    const children = started.map(({ child }) => child);
    const talks = Array.from({ length: conversations }, () => stage.talk("slack-thread"));
    // The first run compiles code and opens threads.
    await askFor(talks, { seconds: seconds / 3, pauseMs });
    const before = await readUse(client, children);
    const startedAt = performance.now();
    const turns = await askFor(talks, { seconds, pauseMs });
    const elapsed = (performance.now() - startedAt) / 1000;
    const after = await readUse(client, children);
    const answered = turns.filter(({ lastVisibleAt }) => !Number.isNaN(lastVisibleAt));
    const waits = answered.map(({ sentAt, lastVisibleAt }) => (lastVisibleAt - sentAt) / 1000);
    const cpuOf = (name: "parleyMs" | "redisMs" | "ownMs"): number =>
      (after[name] - before[name]) / Math.max(1, answered.length);
    const cpuMs = { parley: cpuOf("parleyMs"), redis: cpuOf("redisMs"), simulators: cpuOf("ownMs") };
    const memories = await Promise.all(children.map((child) => child.memory()));
    return {
      instances,
      conversations,
      seconds: elapsed,
      turns: answered.length,
      lost: turns.length - answered.length,
      turnsPerSecond: answered.length / elapsed,
      wholeAnswerSeconds: { p50: quantile(waits, 0.5), p95: quantile(waits, 0.95) },
      cpuMs,
      cpusUsed: ((cpuMs.parley + cpuMs.redis + cpuMs.simulators) * answered.length) / 1000 / elapsed,
      refused: await readRefusals(started),
      rssMb: memories.map(({ rss }) => rss),
      redis: {
        commands: (after.commands - before.commands) / Math.max(1, answered.length),
        bytesKept: (after.kept - before.kept) / Math.max(1, answered.length),
        bytesWritten: (after.written - before.written) / Math.max(1, answered.length),
      },
    };
  } finally {
    await client.close();
    await Promise.all(started.map(({ child }) => child.stop()));
    await stage.close();
    await redis.remove();
  }
}

interface Instance {
  readonly child: Child;
  /** The address of its metrics. */
  readonly url: string;
}

async function startInstance(stage: Stage, storeUrl: string, connections: number): Promise<Instance> {
  // Only Slack is used, which sends each event to one connection. Discord sends all events to all.
  const { DISCORD_TOKEN: _token, DISCORD_API_URL: _url, ...env } = stage.env;
  const child = startChild([path.join(root, "src/main.ts")], {
    ...env,
    STORE_URL: storeUrl,
    PORT: "0",
    PAGE: "off",
    LOG_LEVEL: "error",
  });
  const deadline = child.spawnedAt + connectWithinMs;
  while (stage.slackConnections() < connections) {
    child.check();
    if (performance.now() > deadline) throw new Error(`an instance did not connect:\n${child.output()}`);
    await delay(20);
  }
  return { child, url: /Health\s+(\S+)\/readyz/.exec(child.output())?.[1] ?? "" };
}

/** Makes each talk ask, wait for the whole answer, pause and ask again until the time is over. */
async function askFor(
  talks: readonly Talk[],
  { seconds, pauseMs }: { readonly seconds: number; readonly pauseMs: number },
): Promise<Turn[]> {
  const until = performance.now() + seconds * 1000;
  const done: Turn[] = [];
  await Promise.all(
    talks.map(async (talk) => {
      // Talks must not all begin in the same millisecond.
      await delay(Math.random() * pauseMs);
      while (performance.now() < until) {
        done.push(await talk.ask(answerWithinMs));
        await delay(pauseMs * (0.5 + Math.random()));
      }
    }),
  );
  return done;
}

async function readRefusals(instances: readonly Instance[]): Promise<Record<string, number>> {
  const refused: Record<string, number> = {};
  for (const { url } of instances) {
    const text = await (await fetch(`${url}/metrics`)).text();
    for (const [, code = "", count] of text.matchAll(/^parley_refusals_total\{.*code="([^"]+)"\} (\d+)$/gm))
      refused[code] = (refused[code] ?? 0) + Number(count);
  }
  return refused;
}

interface Use {
  readonly parleyMs: number;
  readonly redisMs: number;
  readonly ownMs: number;
  readonly commands: number;
  readonly kept: number;
  readonly written: number;
}

async function readUse(client: { info(): Promise<string> }, children: readonly Child[]): Promise<Use> {
  const info = await client.info();
  const field = (name: string): number => Number(new RegExp(`^${name}:([\\d.]+)`, "m").exec(info)?.[1]);
  const own = process.cpuUsage();
  const cpu = await Promise.all(children.map((child) => child.cpuMs()));
  return {
    parleyMs: cpu.reduce((sum, ms) => sum + ms, 0),
    redisMs: (field("used_cpu_user") + field("used_cpu_sys")) * 1000,
    ownMs: (own.user + own.system) / 1000,
    commands: field("total_commands_processed"),
    kept: field("used_memory"),
    written: field("aof_current_size"),
  };
}

/** Describes the result in one line. */
export function describeInstances(result: InstancesResult): string {
  const { instances, conversations, wholeAnswerSeconds: whole, cpuMs, redis } = result;
  return [
    `${instances} ${instances === 1 ? "instance" : "instances"}, ${conversations} conversations: ${result.turnsPerSecond.toFixed(1)} turns/s`,
    `${result.lost} of ${result.turns + result.lost} lost (refused in all: ${JSON.stringify(result.refused)})`,
    `whole answer ${whole.p50.toFixed(2)} s (p95 ${whole.p95.toFixed(2)} s)`,
    `CPU a turn ${cpuMs.parley.toFixed(1)} ms + Redis ${cpuMs.redis.toFixed(2)} ms + simulators ${cpuMs.simulators.toFixed(1)} ms`,
    `${result.cpusUsed.toFixed(2)} CPUs in use`,
    `RSS ${result.rssMb.map((mb) => mb.toFixed(0)).join(", ")} MB`,
    `Redis a turn: ${redis.commands.toFixed(1)} commands, ${(redis.bytesKept / 1000).toFixed(1)} kB kept, ${(redis.bytesWritten / 1000).toFixed(1)} kB in its append-only file`,
  ].join("; ");
}
