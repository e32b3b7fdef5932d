import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { runParley, type RunningParley } from "../../e2e/process/run-parley.ts";
import { soonAgain } from "../../simulators/discord/session-starts.ts";
import { createDiscordSimulator } from "../../simulators/discord/simulator.ts";
import { startSlowGateway } from "../../simulators/gateway/slow-gateway.ts";
import { startRedis } from "../../support/redis-server.ts";
import { createCrowd, type Account } from "./crowd.ts";
import { growthOf, residentBytes } from "./memory.ts";

/** The options of {@link runSoak}. */
export interface SoakOptions {
  readonly minutes: number;
  /** The default is 1,000. */
  readonly servers?: number;
  /** Messages among people per second. Default 100. */
  readonly chatsPerSecond?: number;
  /** Questions to the bot per second. Default 3. */
  readonly asksPerSecond?: number;
  readonly log: (line: string) => void;
}

/** The result of {@link runSoak}. */
export interface SoakResult extends Account {
  readonly chatted: number;
  /** Messages among people that the model was asked about. */
  readonly overheard: number;
  /** Commands that nobody took although the process of their shard ran and the machine was not too busy. */
  readonly ignored: readonly string[];
  /** How often the machine gave this process no time, and for how long at most, in milliseconds. */
  readonly stalls: { readonly count: number; readonly longestMs: number };
  /** Each says in words what Discord punishes. */
  readonly violations: readonly string[];
  readonly identifies: number;
  readonly resumes: number;
  readonly requests: number;
  /** How many requests were refused as too many, by route. */
  readonly rateLimited: Readonly<Record<string, number>>;
  /** Resident memory of each process that ran to the end, in MB, with the factor of its growth. */
  readonly memory: readonly {
    readonly shard: number;
    readonly firstMb: number;
    readonly mostMb: number;
    readonly lastMb: number;
    readonly growth: number;
  }[];
}

const shardCount = 2;
/** Answers may still come for so long after the last question. */
const settleMs = 120_000;
const sampleMs = 2000;
/** A process that has started fills its caches first. */
const warmUpMs = 20_000;
/** Discord waits so long for the response to a command. */
const acknowledgeWithinMs = 3000;
/** If a pause of 20 ms takes longer than this, the machine is too busy to judge commands. */
const stalledMs = 250;
const megabyte = 1024 * 1024;

interface Shard {
  readonly id: number;
  parley: RunningParley;
  samples: number[];
  startedAt: number;
}

/**
 * Lets people of many servers write for some minutes to each other and to two processes of the bot. Each
 * process has a shard, and both use one Redis. One loses its connection, and the other is killed and started
 * again. It needs Linux.
 */
export async function runSoak(options: SoakOptions): Promise<SoakResult> {
  const { minutes, servers = 1000, chatsPerSecond = 100, asksPerSecond = 3, log } = options;
  const folder = await mkdtemp(join(tmpdir(), "parley-soak-"));
  const [discord, gateway, redis] = await Promise.all([
    createDiscordSimulator({ sessionStarts: { ...soonAgain, recommendedShards: shardCount } }),
    startSlowGateway(600),
    startRedis(),
  ]);
  const crowd = createCrowd(discord, servers, shardCount);
  const launch = async (id: number): Promise<RunningParley> => {
    const parley = await runParley({
      folder,
      settings: {
        DISCORD_TOKEN: discord.token,
        DISCORD_API_URL: discord.apiUrl,
        DISCORD_SHARDS: `${shardCount}`,
        DISCORD_SHARD_IDS: `${id}`,
        STORE_URL: redis.url,
        STORE_LEASE_MS: "3000",
        GATEWAY_BASE_URL: gateway.baseUrl,
        GATEWAY_API_KEY: "soak",
        CHAT_MODEL: "m",
        TURNS_PERSON_MINUTE: "0",
      },
    });
    await parley.says(/Ready\./);
    return parley;
  };
  const shards: Shard[] = [];
  const outages: { readonly shard: number; readonly from: number; to: number }[] = [];
  try {
    for (let id = 0; id < shardCount; id++)
      shards.push({ id, parley: await launch(id), samples: [], startedAt: performance.now() });
    log(`${shardCount} processes are connected to ${servers} servers`);
    await untilTrue(() => discord.world.commands.length > 0, 30_000);

    const startedAt = performance.now();
    const durationMs = minutes * 60_000;
    const sampler = setInterval(() => {
      for (const shard of shards) {
        const bytes = residentBytes(shard.parley.process.pid);
        if (bytes !== undefined && performance.now() - shard.startedAt > Math.min(warmUpMs, durationMs / 4))
          shard.samples.push(bytes);
      }
    }, sampleMs);
    const events = [
      { at: 0.2, work: async () => discord.gateway.drop(0) },
      { at: 0.4, work: () => killAndRestart(shards[1] as Shard) },
    ];
    const running: Promise<void>[] = [];

    async function killAndRestart(shard: Shard): Promise<void> {
      const outage = { shard: shard.id, from: performance.now(), to: Infinity };
      outages.push(outage);
      const sessions = discord.gateway.counts.identify;
      shard.parley.process.kill("SIGKILL");
      await shard.parley.ended;
      log(`shard ${shard.id} was killed`);
      await pause(Math.min(5000, durationMs / 20));
      shard.parley = await launch(shard.id);
      shard.samples = [];
      shard.startedAt = performance.now();
      // The killed process has the shard until its lease ends. Until then commands fail, as
      // docs/operations.md says.
      await untilTrue(() => discord.gateway.counts.identify > sessions, 20_000);
      outage.to = performance.now();
      log(`shard ${shard.id} is back after ${Math.round((outage.to - outage.from) / 1000)} s`);
    }

    const stalls: { readonly from: number; readonly to: number }[] = [];
    let [chats, asks] = [0, 0];
    let lastReportAt = startedAt;
    for (;;) {
      const elapsedMs = performance.now() - startedAt;
      if (elapsedMs >= durationMs) break;
      for (; chats < (elapsedMs / 1000) * chatsPerSecond; chats++) crowd.chat();
      for (; asks < (elapsedMs / 1000) * asksPerSecond; asks++) crowd.ask();
      while (events[0] !== undefined && elapsedMs >= events[0].at * durationMs)
        running.push(events.shift()!.work());
      if (performance.now() - lastReportAt > 30_000) {
        lastReportAt = performance.now();
        const rss = shards.map(({ samples }) => `${Math.round((samples.at(-1) ?? 0) / megabyte)} MB`);
        log(
          `${Math.round(elapsedMs / 1000)} s: ${asks} questions, ${chats} other messages, ${rss.join(", ")}`,
        );
      }
      const pausedAt = performance.now();
      await pause(20);
      if (performance.now() - pausedAt > stalledMs) stalls.push({ from: pausedAt, to: performance.now() });
    }
    await Promise.all(running);
    clearInterval(sampler);
    await untilTrue(() => crowd.account().lost.length === 0, settleMs);

    const account = crowd.account();
    const isDown = (shard: number, at: number): boolean =>
      [...outages.filter((one) => one.shard === shard), ...stalls].some(
        ({ from, to }) => at > from - acknowledgeWithinMs && at < to,
      );
    return {
      ...account,
      chatted: crowd.chatted(),
      overheard: gateway.turns.filter(({ labels }) => labels.some((label) => label.startsWith("#c"))).length,
      ignored: account.unacknowledged
        .filter(({ shard, askedAt }) => !isDown(shard, askedAt))
        .map(({ label }) => label),
      stalls: {
        count: stalls.length,
        longestMs: Math.round(Math.max(0, ...stalls.map(({ from, to }) => to - from))),
      },
      violations: discord.gateway.violations,
      identifies: discord.gateway.counts.identify,
      resumes: discord.gateway.counts.resume,
      requests: discord.requests.length,
      rateLimited: countBy(
        discord.requests.flatMap(({ status, method, template }) =>
          status === 429 ? [`${method} ${template}`] : [],
        ),
      ),
      memory: shards.map(({ id, samples }) => ({
        shard: id,
        firstMb: Math.round((samples[0] ?? 0) / megabyte),
        mostMb: Math.round(Math.max(0, ...samples) / megabyte),
        lastMb: Math.round((samples.at(-1) ?? 0) / megabyte),
        growth: Number(growthOf(samples).toFixed(3)),
      })),
    };
  } catch (error) {
    for (const { id, parley } of shards) log(`--- shard ${id}\n${parley.output().slice(-3000)}`);
    throw error;
  } finally {
    for (const { parley } of shards) await parley.remove();
    await Promise.all([discord.close(), gateway.close()]);
    await redis.remove();
    await rm(folder, { recursive: true, force: true });
  }
}

/** Returns what is wrong with a result, one line for each problem. @param maxGrowth of memory, as a factor */
export function findSoakProblems(result: SoakResult, maxGrowth: number): string[] {
  const { lost, doubled, ignored, violations, memory, overheard } = result;
  return [
    ...(lost.length === 0 ? [] : [`lost: ${lost.join(", ")}`]),
    ...(doubled.length === 0 ? [] : [`answered several times: ${doubled.join(", ")}`]),
    ...(ignored.length === 0 ? [] : [`commands not acknowledged: ${ignored.join(", ")}`]),
    ...(overheard === 0 ? [] : [`${overheard} turns about messages that were not for the bot`]),
    ...violations.map((violation) => `against Discord's rules: ${violation}`),
    ...memory
      .filter(({ growth }) => !(growth <= maxGrowth))
      .map(({ shard, growth }) => `the memory of shard ${shard} grew by the factor ${growth}`),
  ];
}

function countBy(names: readonly string[]): Record<string, number> {
  const counts: Record<string, number> = {};
  for (const name of names) counts[name] = (counts[name] ?? 0) + 1;
  return counts;
}

function pause(ms: number): Promise<void> {
  return new Promise((resolve) => {
    setTimeout(resolve, ms);
  });
}

async function untilTrue(isTrue: () => boolean, timeoutMs: number): Promise<void> {
  const deadline = performance.now() + timeoutMs;
  while (!isTrue() && performance.now() < deadline) await pause(500);
}
