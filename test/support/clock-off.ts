import { vi } from "vitest";

const systemNow = Date.now;

/**
 * From now on `Date.now` of this process is off by so many milliseconds, and goes on; `performance.now` does not step.
 * Contract: undone by `vi.restoreAllMocks`.
 */
export function setClockOff(ms: number): void {
  vi.spyOn(Date, "now").mockImplementation(() => systemNow() + ms);
}
