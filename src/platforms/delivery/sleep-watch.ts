/** Beats this often, in milliseconds. */
const beatMs = 1000;
/** A beat this late means that the process was stopped or its machine asleep, in milliseconds. */
const lateMs = 5000;

/** Tells whether this process has been paused. */
export interface SleepWatch {
  /** True once after each pause, whichever runs first when the process goes on: a timer or what came in. */
  hasSlept(): boolean;
  stop(): void;
}

/** Watches until it is stopped; keeps no process alive. */
export function createSleepWatch(): SleepWatch {
  let lastBeat = performance.now();
  let hasSlept = false;
  const look = (): void => {
    const now = performance.now();
    if (now - lastBeat > lateMs) hasSlept = true;
    lastBeat = now;
  };
  const timer = setInterval(look, beatMs).unref();
  return {
    hasSlept() {
      look();
      const answer = hasSlept;
      hasSlept = false;
      return answer;
    },
    stop() {
      clearInterval(timer);
    },
  };
}
