import { AsyncLocalStorage } from "node:async_hooks";
import { expect, test } from "vitest";
import { createConcurrencyLimit } from "../../../src/support/queues.ts";

test("runs at most so many at the same time, in order, and returns each result", async () => {
  const limit = createConcurrencyLimit(2);
  const started: number[] = [];
  const gates = [0, 1, 2, 3].map(() => Promise.withResolvers<void>());
  const results = gates.map((gate, index) =>
    limit(async () => {
      started.push(index);
      await gate.promise;
      return index;
    }),
  );
  await expect.poll(() => started).toEqual([0, 1]);
  gates[1]?.resolve();
  await expect.poll(() => started).toEqual([0, 1, 2]);
  for (const gate of gates) gate.resolve();
  expect(await Promise.all(results)).toEqual([0, 1, 2, 3]);
});

test("a failure is its caller's and holds up nobody", async () => {
  const limit = createConcurrencyLimit(1);
  const failed = limit(() => Promise.reject(new Error("no")));
  const next = limit(() => Promise.resolve("yes"));
  await expect(failed).rejects.toThrow("no");
  expect(await next).toBe("yes");
});

test("work runs in the async context of its caller, not of the work before it", async () => {
  const context = new AsyncLocalStorage<string>();
  const limit = createConcurrencyLimit(1);
  const names = ["first", "second", "third"].map((name) =>
    context.run(name, () =>
      limit(async () => {
        await Promise.resolve();
        return context.getStore();
      }),
    ),
  );
  expect(await Promise.all(names)).toEqual(["first", "second", "third"]);
});
