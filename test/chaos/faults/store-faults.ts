import { sleep } from "../../../src/support/sleep.ts";
import type { FaultMaker, FaultTools } from "./faults.ts";
import type { RedisPair } from "./redis-pair.ts";
import type { SmallDisk } from "./small-disk.ts";

type Tools = Pick<FaultTools, "random" | "windows" | "leaseMs">;

/** Crashes, pauses, a changed password, no memory, and failover of a Redis. */
export function redisFaults(redis: RedisPair, { random, windows, leaseMs }: Tools): FaultMaker[] {
  const during = (work: () => Promise<void>) => async (): Promise<boolean> => {
    await windows.during("store", work);
    return true;
  };
  return [
    {
      name: "redisKilled",
      weight: 2,
      make: during(async () => {
        const server = redis.primary();
        await server.kill();
        await sleep(random.between(50, leaseMs * 2));
        await server.start();
      }),
    },
    {
      name: "redisPaused",
      weight: 2,
      make: during(async () => {
        const server = redis.primary();
        server.pause();
        await sleep(random.between(leaseMs / 4, leaseMs * 1.5));
        server.resume();
      }),
    },
    {
      name: "passwordChanged",
      weight: 1,
      make: during(() => redis.changePassword(random.between(100, 2500))),
    },
    { name: "outOfMemory", weight: 1, make: during(() => redis.runOutOfMemory(random.between(100, 2500))) },
    { name: "failedOver", weight: 1, make: during(() => redis.failOver()) },
  ];
}

/** A full disk under an SQLite file. */
export function diskFaults(disk: SmallDisk, { random, windows }: Tools): FaultMaker[] {
  return [
    {
      name: "diskFull",
      weight: 2,
      async make() {
        await windows.during("store", async () => {
          await disk.fill();
          await sleep(random.between(200, 3000));
          await disk.free();
        });
        return true;
      },
    },
  ];
}
