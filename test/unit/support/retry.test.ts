import { expect, test } from "vitest";
import { backoffMs, retry } from "../../../src/support/retry.ts";
import { createManualClock } from "../../support/manual-clock.ts";

test("the attempt is repeated until it resolves", async () => {
  const attempts: number[] = [];
  const result = await retry(
    async (attempt) => {
      attempts.push(attempt);
      if (attempt < 3) throw new Error("not yet");
      return "done";
    },
    { delayMs: () => 0 },
  );
  expect(result).toBe("done");
  expect(attempts).toEqual([1, 2, 3]);
});

test("giving up throws the last error", async () => {
  let count = 0;
  const work = async () => {
    count += 1;
    throw new Error(`failure ${count}`);
  };
  await expect(retry(work, { delayMs: (_, attempt) => (attempt < 2 ? 0 : undefined) })).rejects.toThrow(
    "failure 2",
  );
});

test("an abort while waiting rejects with the signal's reason", async () => {
  const controller = new AbortController();
  const reason = new Error("stopping");
  const running = retry(() => Promise.reject(new Error("down")), {
    delayMs: () => 60_000,
    signal: controller.signal,
  });
  setImmediate(() => controller.abort(reason));
  await expect(running).rejects.toBe(reason);
});

test("the backoff doubles up to its limit", () => {
  const limits = { baseMs: 500, maxMs: 3000 };
  expect([1, 2, 3, 4, 5].map((attempt) => backoffMs(attempt, limits))).toEqual([500, 1000, 2000, 3000, 3000]);
});

test("no attempt begins after the deadline, except the first", async () => {
  const clock = createManualClock();
  const attemptedAt: number[] = [];
  const begin = clock.monotonic();
  const running = retry(
    () => {
      attemptedAt.push(clock.monotonic() - begin);
      return Promise.reject(new Error("down"));
    },
    { delayMs: () => 100, deadline: begin + 250, clock },
  );
  const outcome = expect(running).rejects.toThrow("down");
  await clock.advance(1000);
  await outcome;
  expect(attemptedAt).toEqual([0, 100, 200]);
});
