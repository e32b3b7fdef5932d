import { sleep } from "../../src/support/sleep.ts";
import type { RedisServer } from "../support/redis-server.ts";
import type { Bot } from "./bots.ts";
import type { Random } from "./random.ts";

/** How often each kind of fault was made. */
export type FaultCounts = Record<"killed" | "stopped" | "paused" | "redisKilled" | "redisPaused", number>;

/** Makes faults. */
export interface Faults {
  readonly counts: FaultCounts;
  /** Makes one random fault; resolves when it is over. */
  makeOne(): Promise<void>;
}

/** Kills, stops and pauses processes, also for longer than the lease; kills and pauses Redis. */
export function createFaults(options: {
  readonly bots: readonly Bot[];
  readonly redis: RedisServer | undefined;
  readonly leaseMs: number;
  readonly random: Random;
}): Faults {
  const { bots, redis, leaseMs, random } = options;
  const counts: FaultCounts = { killed: 0, stopped: 0, paused: 0, redisKilled: 0, redisPaused: 0 };
  const pause = (from: number, to: number) => sleep(random.between(from, to));

  async function signal(bot: Bot, how: "SIGKILL" | "SIGTERM"): Promise<void> {
    const { current } = bot;
    if (current === undefined) return;
    counts[how === "SIGKILL" ? "killed" : "stopped"] += 1;
    current.process.kill(how);
    await current.ended;
  }

  const kinds: readonly (() => Promise<void>)[] = [
    () => signal(random.pick(bots), "SIGKILL"),
    () => signal(random.pick(bots), "SIGKILL"),
    () => signal(random.pick(bots), "SIGKILL"),
    () => signal(random.pick(bots), "SIGTERM"),
    async () => {
      const bot = random.pick(bots);
      counts.paused += 1;
      bot.current?.process.kill("SIGSTOP");
      await pause(leaseMs / 4, leaseMs * 2);
      bot.resume();
    },
    ...(redis === undefined
      ? []
      : [
          async () => {
            counts.redisKilled += 1;
            await redis.kill();
            await pause(50, leaseMs * 2);
            await redis.start();
          },
          async () => {
            counts.redisPaused += 1;
            redis.pause();
            await pause(leaseMs / 4, leaseMs * 1.5);
            redis.resume();
          },
        ]),
  ];
  return { counts, makeOne: () => random.pick(kinds)() };
}
