import { expect, it, onTestFinished, vi } from "vitest";
import { setClockOff } from "../../support/clock-off.ts";
import { createManualClock } from "../../support/manual-clock.ts";
import { expiryTime, systemClock } from "../../../src/support/clock.ts";

it("a manual clock stands still, and fires what becomes due in order, each at its own time", async () => {
  const clock = createManualClock(1000);
  const fired: string[] = [];
  const note = (name: string) => (): void => void fired.push(`${name} at ${clock.now() - 1000}`);
  clock.after(30, note("late"));
  clock.after(10, () => {
    note("early")();
    clock.after(5, note("from early"));
  });
  const cancel = clock.after(12, note("cancelled"));
  const stop = clock.every(20, note("every"));
  cancel();
  expect(fired).toEqual([]);
  await clock.advance(45);
  expect(fired).toEqual(["early at 10", "from early at 15", "every at 20", "late at 30", "every at 40"]);
  stop();
  expect(clock.waiting()).toBe(0);
  expect(clock.monotonic()).toBe(45);
});

it.for([
  ["manual", createManualClock()],
  ["system", systemClock],
] as const)(
  "sleep of the %s clock rejects with the reason of its signal and leaves no timer",
  async ([, clock]) => {
    const controller = new AbortController();
    const slept = clock.sleep(60_000, controller.signal);
    const reason = new Error("enough");
    controller.abort(reason);
    await expect(slept).rejects.toBe(reason);
    await expect(clock.sleep(60_000, controller.signal)).rejects.toBe(reason);
  },
);

it("a timeout of a manual clock aborts when its time has come", async () => {
  const clock = createManualClock();
  const signal = clock.timeout(100);
  await clock.advance(99);
  expect(signal.aborted).toBe(false);
  expect(await clock.advanceToNext()).toBe(true);
  expect(signal.reason).toMatchObject({ name: "TimeoutError" });
  expect(await clock.advanceToNext()).toBe(false);
});

it.each([
  ["an hour ahead", 3_600_000, true],
  ["two days ahead", 48 * 3_600_000, false],
  ["two days behind", -48 * 3_600_000, false],
])("nothing expires after a jump of the clock by more than a day: %s", (_, ms, expires) => {
  onTestFinished(() => void vi.restoreAllMocks());
  setClockOff(ms);
  expect(expiryTime() !== undefined).toBe(expires);
});
