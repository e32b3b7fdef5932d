import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { watchBusyMachine } from "../../chaos/busy-machine.ts";
import { createFaultWindows } from "../../chaos/fault-windows.ts";

let elapsedMs = 0;
let computedMs = 0;
let stop = () => {};

beforeEach(() => {
  vi.useFakeTimers({ toFake: ["setInterval", "clearInterval", "Date"] });
  vi.spyOn(performance, "now").mockImplementation(() => elapsedMs);
  vi.spyOn(process, "cpuUsage").mockImplementation(() => ({ user: computedMs * 1000, system: 0 }));
});
afterEach(() => {
  stop();
  vi.restoreAllMocks();
  vi.useRealTimers();
});

/** The timer comes after `ms`, of which the process computed for `ofItself`. */
function pass(ms: number, ofItself: number): void {
  elapsedMs += ms;
  computedMs = ofItself;
  vi.advanceTimersByTime(20);
}

it("records when the process waited for a processor", () => {
  const windows = createFaultWindows();
  stop = watchBusyMachine(windows);
  pass(20, 1);
  expect(windows.had(["starved"], 0, Date.now())).toBe(false);
  pass(220, 10);
  expect(windows.had(["starved"], 0, Date.now())).toBe(true);
  expect(windows.had(["paused", "store"], 0, Date.now())).toBe(false);
});

it("does not record what the process computed itself, nor a timer that is a little late", () => {
  const windows = createFaultWindows();
  stop = watchBusyMachine(windows);
  pass(220, 195);
  pass(70, 2);
  expect(windows.had(["starved"], 0, Date.now())).toBe(false);
});
