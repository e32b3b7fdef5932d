import { vi } from "vitest";

const systemNow = Date.now;

/**
 * Shifts `Date.now` of this process by so many milliseconds. It goes on from there, and `performance.now`
 * does not step. Contract: `vi.restoreAllMocks` must undo it.
 */
export function setClockOff(ms: number): void {
  vi.spyOn(Date, "now").mockImplementation(() => systemNow() + ms);
}
