import { sleep } from "../../../src/support/clock.ts";
import type { Bot } from "../bots.ts";
import type { FaultMaker, FaultTools } from "./faults.ts";

const minuteMs = 60_000;
/** A start may fail, e.g. while the store is down. */
const maxReadyMs = 8000;

/** Makes kills, drains, rolling updates, pauses and clock steps. */
export function processFaults({ bots, people, random, windows, leaseMs, hasRoom }: FaultTools): FaultMaker[] {
  /** Picks a bot, mostly once it is connected. One that dies at every start does nothing else. */
  async function pickBot(): Promise<Bot> {
    const bot = random.pick(bots);
    if (random.next() < 0.85) await Promise.race([bot.ready(), sleep(maxReadyMs)]);
    // It works for a moment.
    await sleep(random.between(0, 1200));
    return bot;
  }

  async function signal(how: "SIGKILL" | "SIGTERM"): Promise<boolean> {
    const { current } = await pickBot();
    if (current === undefined) return false;
    await windows.during(how === "SIGTERM" ? "stopping" : "process", async () => {
      current.process.kill(how);
      await current.ended;
    });
    return true;
  }

  /** Kills all processes the moment that a message is acknowledged. */
  async function killAtOnce(): Promise<boolean> {
    await pickBot();
    return await windows.during("process", async () => {
      const isAcknowledged = await people.actUntilAcknowledged();
      const killed = bots.flatMap(({ current }) => (current === undefined ? [] : [current]));
      for (const parley of killed) parley.process.kill("SIGKILL");
      await Promise.all(killed.map(({ ended }) => ended));
      return isAcknowledged;
    });
  }

  async function pause(from: number, to: number): Promise<boolean> {
    const { current } = await pickBot();
    if (current === undefined) return false;
    await windows.during("process", () =>
      windows.during("paused", async () => {
        current.process.kill("SIGSTOP");
        await sleep(random.between(from, to));
        current.process.kill("SIGCONT");
      }),
    );
    return true;
  }

  async function stepClock(bot: Bot): Promise<boolean> {
    await windows.during("clock", async () => {
      const minutes = random.between(11, 25) * (random.next() < 0.5 ? 1 : -1);
      await bot.clock.stepBy(minutes * minuteMs);
      await sleep(random.between(500, 3000));
      await bot.clock.reset();
    });
    return true;
  }

  return [
    { name: "killed", weight: 5, make: () => signal("SIGKILL") },
    { name: "killedAtOnce", weight: 1, make: killAtOnce },
    { name: "stopped", weight: 2, make: () => signal("SIGTERM") },
    { name: "paused", weight: 1, make: () => pause(leaseMs / 4, leaseMs * 0.9) },
    { name: "pausedLong", weight: 2, make: () => pause(leaseMs * 1.2, leaseMs * 4) },
    { name: "clockStepped", weight: 1, make: () => stepClock(random.pick(bots)) },
    ...(hasRoom
      ? [
          {
            name: "rolled" as const,
            weight: 3,
            make: async () => {
              await windows.during("stopping", () => random.pick(bots).roll());
              return true;
            },
          },
        ]
      : []),
  ];
}
