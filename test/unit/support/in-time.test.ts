import { expect, it } from "vitest";
import { inTime, untilAborted } from "../../../src/support/clock.ts";
import { createManualClock } from "../../support/manual-clock.ts";

it("gives what comes in time, and leaves no timer", async () => {
  const clock = createManualClock();
  expect(await inTime(Promise.resolve("words"), 1000, { clock })).toBe("words");
  await expect(inTime(Promise.reject(new Error("broken")), 1000, { clock })).rejects.toThrow("broken");
  expect(clock.waiting()).toBe(0);
});

it("gives nothing once the time is over, and swallows what fails later", async () => {
  const clock = createManualClock();
  const work = Promise.withResolvers<string>();
  const waited = inTime(work.promise, 1000, { clock });
  await clock.advance(1000);
  expect(await waited).toBeUndefined();
  work.reject(new Error("too late"));
});

it("ends with the signal, also with one that has aborted before, and swallows what fails later", async () => {
  const reason = new Error("stopped");
  const controller = new AbortController();
  const work = Promise.withResolvers<string>();
  const waited = untilAborted(work.promise, controller.signal);
  controller.abort(reason);
  await expect(waited).rejects.toBe(reason);
  await expect(untilAborted(Promise.resolve("words"), controller.signal)).rejects.toBe(reason);
  work.reject(new Error("too late"));
});

it("gives what comes before the signal aborts", async () => {
  const { signal } = new AbortController();
  expect(await untilAborted(Promise.resolve("words"), signal)).toBe("words");
});
