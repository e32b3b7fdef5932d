import { sleep } from "../../../src/support/clock.ts";
import type { PostgresServer } from "../../support/postgres-server.ts";
import type { FaultMaker, FaultTools } from "./faults.ts";
import type { RedisPair } from "./redis-pair.ts";
import type { SmallDisk } from "./small-disk.ts";

type Tools = Pick<FaultTools, "random" | "windows" | "leaseMs">;

/** Makes crashes, pauses, a changed password, no memory, and failover of a Redis. */
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

/** Makes crashes, pauses, closed connections and refused writes of a Postgres. */
export function postgresFaults(server: PostgresServer, { random, windows, leaseMs }: Tools): FaultMaker[] {
  const during = (work: () => Promise<void>) => async (): Promise<boolean> => {
    await windows.during("store", work);
    return true;
  };
  const setReadOnly = async (value: "on" | "off") => {
    // This comes from another database, which takes writes.
    await server.query(`ALTER DATABASE postgres SET default_transaction_read_only = ${value}`, "template1");
    // New connections have the setting.
    await server.terminateConnections();
  };
  return [
    {
      name: "postgresKilled",
      weight: 2,
      make: during(async () => {
        await server.kill();
        await sleep(random.between(50, leaseMs * 2));
        await server.start();
      }),
    },
    {
      name: "postgresPaused",
      weight: 2,
      make: during(async () => {
        await server.pause();
        await sleep(random.between(leaseMs / 4, leaseMs * 1.5));
        await server.resume();
      }),
    },
    { name: "connectionsTerminated", weight: 2, make: during(() => server.terminateConnections()) },
    {
      name: "madeReadOnly",
      weight: 1,
      make: during(async () => {
        await setReadOnly("on");
        await sleep(random.between(100, 2500));
        await setReadOnly("off");
      }),
    },
  ];
}

/** Fills the disk under an SQLite file. */
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
