/**
 * What a fault is about: a store that fails, a process that drains or is paused, any process, anything. `starved` is no
 * fault that was made: the machine was too busy to run a process that had something to do.
 */
export type FaultKind =
  | "store"
  | "stopping"
  | "paused"
  | "process"
  | "platform"
  | "gateway"
  | "clock"
  | "starved";

/** When which faults were in effect, in Unix milliseconds. */
export interface FaultWindows {
  /** Runs `work` within a window. */
  during<T>(kind: FaultKind, work: () => Promise<T>): Promise<T>;
  /** A window that is over. */
  add(kind: FaultKind, from: number, to: number): void;
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
    add: (kind, from, to) => void windows.push({ kind, from, to }),
    had: (kinds, from, to) =>
      windows.some((window) => {
        const isPause = window.kind === "paused" || window.kind === "starved";
        const afterMs = isPause ? afterPauseMs : aftermathMs;
        return kinds.includes(window.kind) && window.from <= to && window.to + afterMs >= from;
      }),
  };
}
