/** What a fault is about: a store that fails, a process that drains or is paused, any process, anything. */
export type FaultKind = "store" | "stopping" | "paused" | "process" | "platform" | "gateway" | "clock";

/** When which faults were in effect, in Unix milliseconds. */
export interface FaultWindows {
  /** Runs `work` within a window. */
  during<T>(kind: FaultKind, work: () => Promise<T>): Promise<T>;
  /** Whether one of these kinds was in effect at some moment from `from` to `to`. */
  had(kinds: readonly FaultKind[], from: number, to: number): boolean;
}

/** A client notices the end of an outage this much later: reconnecting backs off to 2.5 s. */
const aftermathMs = 4000;
/** What a process that was paused has to catch up with. */
const afterPauseMs = 500;

/** No faults so far. */
export function createFaultWindows(): FaultWindows {
  const windows: { readonly kind: FaultKind; readonly from: number; to: number }[] = [];
  return {
    async during(kind, work) {
      const window = { kind, from: Date.now(), to: Number.POSITIVE_INFINITY };
      windows.push(window);
      try {
        return await work();
      } finally {
        window.to = Date.now();
      }
    },
    had: (kinds, from, to) =>
      windows.some((window) => {
        const afterMs = window.kind === "paused" ? afterPauseMs : aftermathMs;
        return kinds.includes(window.kind) && window.from <= to && window.to + afterMs >= from;
      }),
  };
}
