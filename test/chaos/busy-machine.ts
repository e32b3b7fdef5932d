import type { FaultWindows } from "./fault-windows.ts";

const intervalMs = 20;
/** A timer that is this late, in a process that did not compute meanwhile, waited for a processor. */
const lateMs = 60;

/**
 * Records when this process had to wait for a processor: then the bots, on the same machine, had to as well.
 * @returns ends it
 */
export function watchBusyMachine(windows: Pick<FaultWindows, "add">): () => void {
  let dueAt = performance.now() + intervalMs;
  let cpu = process.cpuUsage();
  const timer = setInterval(() => {
    const behindMs = performance.now() - dueAt;
    const { user, system } = process.cpuUsage(cpu);
    const waitedMs = behindMs - (user + system) / 1000;
    if (waitedMs >= lateMs) windows.add("starved", Date.now() - behindMs, Date.now());
    dueAt = performance.now() + intervalMs;
    cpu = process.cpuUsage();
  }, intervalMs);
  return () => clearInterval(timer);
}
