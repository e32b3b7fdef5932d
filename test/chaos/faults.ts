import type { RedisServer } from "../support/redis-server.ts";
import type { Bot } from "./bots.ts";
import type { Chances } from "./random.ts";

/** How often each thing was done. */
export type FaultCounts = Record<"killed" | "stopped" | "paused" | "redisKilled" | "redisPaused", number>;

export interface Faults {
  readonly counts: FaultCounts;
  /** Does one thing, and undoes it; resolves when it is undone. */
  one(): Promise<void>;
}

/** What goes wrong: processes killed, asked to stop and paused, also past the lease; Redis killed and paused. */
export function createFaults(options: {
  readonly bots: readonly Bot[];
  readonly redis: RedisServer | undefined;
  readonly leaseMs: number;
  readonly chances: Chances;
}): Faults {
  const { bots, redis, leaseMs, chances } = options;
  const counts: FaultCounts = { killed: 0, stopped: 0, paused: 0, redisKilled: 0, redisPaused: 0 };
  const pause = (from: number, to: number) =>
    new Promise<void>((resolve) => setTimeout(resolve, chances.between(from, to)));

  async function signal(bot: Bot, how: "SIGKILL" | "SIGTERM"): Promise<void> {
    const { current } = bot;
    if (current === undefined) return;
    counts[how === "SIGKILL" ? "killed" : "stopped"] += 1;
    current.process.kill(how);
    await current.ended;
  }

  const kinds: readonly (() => Promise<void>)[] = [
    () => signal(chances.pick(bots), "SIGKILL"),
    () => signal(chances.pick(bots), "SIGKILL"),
    () => signal(chances.pick(bots), "SIGKILL"),
    () => signal(chances.pick(bots), "SIGTERM"),
    async () => {
      const bot = chances.pick(bots);
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
  return { counts, one: () => chances.pick(kinds)() };
}
