import { describe, expect, it } from "vitest";
import { createKeyedQueue } from "../../../src/support/queues.ts";

describe("the queue by key", () => {
  it("is idle when nothing was ever added", async () => {
    await createKeyedQueue().idle();
  });

  it("waits in idle() for what is added meanwhile too", async () => {
    const queue = createKeyedQueue();
    const done: string[] = [];
    void queue.run("a", async () => {
      await new Promise((resolve) => setImmediate(resolve));
      void queue.run("b", async () => {
        await new Promise((resolve) => setImmediate(resolve));
        done.push("b");
      });
      done.push("a");
    });
    await queue.idle();
    expect(done).toEqual(["a", "b"]);
  });

  it("keeps order and never overlaps, over many keys that come and go", async () => {
    const queue = createKeyedQueue();
    const running = new Set<string>();
    const seen = new Map<string, number[]>();
    await Promise.all(
      Array.from({ length: 500 }, (_, n) => {
        const key = `k${n % 7}`;
        return queue.run(key, async () => {
          expect(running.has(key)).toBe(false);
          running.add(key);
          await new Promise((resolve) => setImmediate(resolve));
          running.delete(key);
          seen.set(key, [...(seen.get(key) ?? []), n]);
        });
      }),
    );
    for (const order of seen.values()) expect(order).toEqual(order.toSorted((a, b) => a - b));
    expect(seen.size).toBe(7);
  });
});
