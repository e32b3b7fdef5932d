import { expect, test } from "vitest";
import { sleep, sleepUnlessAborted } from "../../../src/support/clock.ts";

test("an abort ends the sleep at once, with the signal's own reason", async () => {
  const controller = new AbortController();
  const reason = new Error("enough");
  const sleeping = sleep(60_000, controller.signal);
  controller.abort(reason);
  await expect(sleeping).rejects.toBe(reason);
  await expect(sleep(60_000, controller.signal)).rejects.toBe(reason);
});

test("sleepUnlessAborted resolves when the signal aborts", async () => {
  const controller = new AbortController();
  const sleeping = sleepUnlessAborted(60_000, controller.signal);
  controller.abort();
  await expect(sleeping).resolves.toBeUndefined();
});

test("the sleep ends by itself and leaves no listener on the signal", async () => {
  const controller = new AbortController();
  await sleep(1, controller.signal);
  controller.abort();
});
