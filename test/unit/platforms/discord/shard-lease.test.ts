import { describe, expect, test } from "vitest";
import {
  createShardLease,
  leaseMs,
  type ShardLease,
} from "../../../../src/platforms/discord/transport/shard-lease.ts";
import { createManualClock } from "../../../support/manual-clock.ts";
import { createSharedMemory } from "../../../support/memory-records.ts";

/** Two instances that share the records of one store. */
function createPair({ counts = [1, 1], shardId = 0 }: { counts?: [number, number]; shardId?: number } = {}) {
  const clock = createManualClock();
  const { records } = createSharedMemory(clock);
  const leaseOf = (self: string, count: number, id = shardId): ShardLease =>
    createShardLease({ records, shardId: id, count, self });
  return { clock, leaseOf, one: leaseOf("one", counts[0]), other: leaseOf("other", counts[1]) };
}

describe("the lease of a shard", () => {
  test("is one instance's while that renews it, and free when it says nothing for six seconds", async () => {
    const { clock, one, other } = createPair();
    expect(await one.take()).toBe("taken");
    for (let second = 0; second < 20; second += 2) {
      await clock.advance(2000);
      expect(await other.look()).toEqual({ holder: "one" });
      expect(await other.take()).toBe("held");
      expect(await one.renew()).toBe(true);
    }
    await clock.advance(leaseMs - 1);
    expect(await other.take()).toBe("held");
    await clock.advance(1);
    expect(await other.look()).toBe("free");
    expect(await other.take()).toBe("taken");
    // The first one was frozen meanwhile.
    expect(await one.renew()).toBe(false);
    await one.release();
    expect(await other.renew()).toBe(true);
  });

  test("that is over is its holder's again where nobody took it", async () => {
    const { clock, one, other } = createPair();
    await one.take();
    await clock.advance(60_000);
    expect(await one.renew()).toBe(true);
    expect(await other.take()).toBe("held");
  });

  test("is free at once when it is given back", async () => {
    const { one, other } = createPair();
    await one.take();
    await one.release();
    expect(await other.look()).toBe("free");
    expect(await other.take()).toBe("taken");
  });

  test("passes to the one that announces itself, when that hears; until then its holder has it", async () => {
    const { leaseOf, one, other } = createPair();
    const third = leaseOf("third", 1);
    await one.take();
    expect(await one.offer()).toBe(true);
    expect(await one.whereOffered()).toBe("here");
    expect(await other.look()).toBe("offered");
    expect(await other.take()).toBe("offered");
    expect(await third.look()).toEqual({ holder: "one" });
    expect(await third.take()).toBe("held");
    expect(await one.whereOffered()).toBe("awaited");
    expect(await one.renew()).toBe(true);
    expect(await other.takeOver()).toBe(true);
    expect(await one.whereOffered()).toBe("taken");
    expect(await one.renew()).toBe(false);
    expect(await third.takeOver()).toBe(false);
  });

  test("is not offered to an instance with another number of shards, nor free to it", async () => {
    const { leaseOf, one, other } = createPair({ counts: [1, 2] });
    await one.take();
    await one.offer();
    expect(await other.look()).toEqual({ holder: "one" });
    expect(await other.take()).toBe("held");
    const second = leaseOf("other", 2, 1);
    expect(await second.look()).toEqual({ holder: "one" });
    await one.release();
    expect(await second.look()).toBe("free");
  });
});
