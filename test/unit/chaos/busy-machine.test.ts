import { afterEach, expect, it } from "vitest";
import { setTimeout as sleep } from "node:timers/promises";
import { watchBusyMachine } from "../../chaos/busy-machine.ts";
import { createFaultWindows } from "../../chaos/fault-windows.ts";

let stop = () => {};
afterEach(() => stop());

it("records when the process waited for a processor", async () => {
  const windows = createFaultWindows();
  stop = watchBusyMachine(windows);
  const from = Date.now();
  await sleep(50);
  // Sleeps without computing, as a process does that gets no processor.
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 400);
  await sleep(50);
  expect(windows.had(["starved"], from, Date.now())).toBe(true);
  expect(windows.had(["paused", "store"], from, Date.now())).toBe(false);
});

it("does not record what the process computed itself", async () => {
  const found: number[] = [];
  stop = watchBusyMachine({ add: (_, from, to) => found.push(to - from) });
  await sleep(50);
  const { user } = process.cpuUsage();
  // 200 ms of its own processor time, however busy the machine is.
  while (process.cpuUsage().user - user < 200_000);
  await sleep(50);
  // Longer ones: what it computed, and 60 ms or more that it waited besides.
  expect(found.filter((ms) => ms >= 150 && ms < 230)).toEqual([]);
});
