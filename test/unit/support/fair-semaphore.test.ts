import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { createFairSemaphore, type Release } from "../../../src/support/queues.ts";

const settle = () => new Promise((resolve) => setImmediate(resolve));

describe("a fair semaphore", () => {
  // Attack: Eight threads of one person with documents of 20 s each, so that another's waits 37
  // s. What holds: two processes, one of a person; who has had a turn comes after all who wait.
  test("serves waiting keys in turn, however many requests one of them has", async () => {
    const semaphore = createFairSemaphore({ max: 1, maxPerKey: 1 });
    const order: string[] = [];
    const run = async (key: string) => {
      const release = await semaphore.acquire(key, 1);
      order.push(key);
      await settle();
      release();
    };
    await Promise.all([run("a"), run("a"), run("a"), run("a"), run("b"), run("c")]);
    expect(order).toEqual(["a", "b", "c", "a", "a", "a"]);
  });

  test("leaves units for others: a key has its own limit", async () => {
    const semaphore = createFairSemaphore({ max: 4, maxPerKey: 2 });
    const held = [await semaphore.acquire("a", 1), await semaphore.acquire("a", 1)];
    const third = semaphore.acquire("a", 1);
    await semaphore.acquire("b", 1);
    expect([semaphore.used(), semaphore.waiting()]).toEqual([3, 1]);
    held[0]!();
    await third;
    expect(semaphore.waiting()).toBe(0);
  });

  test("a request above the limit counts as the limit", async () => {
    const semaphore = createFairSemaphore({ max: 10, maxPerKey: 5 });
    await semaphore.acquire("a", 1_000);
    expect(semaphore.used()).toBe(5);
  });

  test("a large request is not overtaken for ever", async () => {
    const semaphore = createFairSemaphore({ max: 10, maxPerKey: 10 });
    const small = await semaphore.acquire("a", 4);
    let isStarted = false;
    const large = semaphore.acquire("b", 10).then((release) => {
      isStarted = true;
      return release;
    });
    const later = semaphore.acquire("c", 1);
    await settle();
    expect(isStarted).toBe(false);
    small();
    (await large)();
    await later;
  });

  test("an abort leaves the line, and releasing twice changes nothing", async () => {
    const semaphore = createFairSemaphore({ max: 1, maxPerKey: 1 });
    const release = await semaphore.acquire("a", 1);
    const controller = new AbortController();
    const waiting = semaphore.acquire("a", 1, controller.signal);
    controller.abort(new Error("stopped"));
    await expect(waiting).rejects.toThrow("stopped");
    await expect(semaphore.acquire("a", 1, controller.signal)).rejects.toThrow("stopped");
    release();
    release();
    expect([semaphore.used(), semaphore.waiting()]).toEqual([0, 0]);
  });

  test("never passes a limit and serves everybody, in any order of events", async () => {
    const step = fc.record({ key: fc.constantFrom("a", "b", "c"), units: fc.integer({ min: 1, max: 9 }) });
    await fc.assert(
      fc.asyncProperty(
        fc.array(step, { maxLength: 40 }),
        fc.infiniteStream(fc.nat(9)),
        async (steps, picks) => {
          const semaphore = createFairSemaphore({ max: 8, maxPerKey: 5 });
          const held: Release[] = [];
          let served = 0;
          for (const { key, units } of steps)
            void semaphore.acquire(key, units).then((release) => {
              served += 1;
              held.push(release);
            });
          while (served < steps.length) {
            await settle();
            expect(semaphore.used()).toBeLessThanOrEqual(8);
            expect(held.length).toBeGreaterThan(0);
            held.splice((picks.next().value ?? 0) % held.length, 1)[0]!();
          }
          expect(semaphore.waiting()).toBe(0);
        },
      ),
      { numRuns: 50 },
    );
  });
});
