/** What a fault concerns: the store, a process that stops or is paused, any process, or anything else. */
export type FaultKind = "store" | "stopping" | "paused" | "process" | "platform" | "gateway" | "clock";

/** Knows when which faults were in effect, in Unix milliseconds. */
export interface FaultWindows {
  /** Runs `work` within a window. */
  during<T>(kind: FaultKind, work: () => Promise<T>): Promise<T>;
  /** Whether one of these kinds was in effect at some moment from `from` to `to`. */
  had(kinds: readonly FaultKind[], from: number, to: number): boolean;
}

/** A client notices the end of an outage this much later, since reconnecting backs off to 2.5 s. */
const aftermathMs = 4000;
/** How long a process that was paused needs to catch up. */
const afterPauseMs = 500;

/** Starts without faults. */
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
