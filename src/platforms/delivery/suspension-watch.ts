/** Time between checks. */
const checkMs = 1000;
/** A check this late means that the process was stopped or the machine asleep. */
const lateMs = 5000;

/** Detects that this process was suspended. */
export interface SuspensionWatch {
  /** True once after each suspension, even if no timer has run since. */
  wasSuspended(): boolean;
  stop(): void;
}

/** Checks until it is stopped; does not keep the process alive. */
export function createSuspensionWatch(): SuspensionWatch {
  let lastCheck = performance.now();
  let wasSuspended = false;
  const check = (): void => {
    const now = performance.now();
    if (now - lastCheck > lateMs) wasSuspended = true;
    lastCheck = now;
  };
  const timer = setInterval(check, checkMs).unref();
  return {
    wasSuspended() {
      check();
      const result = wasSuspended;
      wasSuspended = false;
      return result;
    },
    stop() {
      clearInterval(timer);
    },
  };
}
