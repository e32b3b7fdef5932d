/** From how long an iteration of the event loop is slow, in milliseconds. */
const slowMs = 10;
/** Turns that begin in one iteration after one that was not slow. */
const atOnce = 16;

/**
 * Lets turns of commands begin a few at a time. Acknowledgements, whose platforms wait for them, are sent in between: what is
 * left of the processor is for the turns.
 */
export interface TurnPace {
  /** Resolves when the turn may begin: in the order of the calls, always, at once where few begin. */
  begin(): Promise<void>;
}

/** @see {@link TurnPace} */
export function createTurnPace(now: () => number = () => performance.now()): TurnPace {
  const waiting: (() => void)[] = [];
  /** How many may still begin in this iteration of the event loop. */
  let room = atOnce;
  /** Whether the next iteration is timed. */
  let isCounting = false;
  let since = 0;

  function count(): void {
    isCounting = true;
    since = now();
    setImmediate(admit);
  }

  function admit(): void {
    const wasSlow = now() - since > slowMs;
    room = wasSlow ? 1 : atOnce;
    isCounting = false;
    if (wasSlow || waiting.length > 0) count();
    for (const begin of waiting.splice(0, room)) {
      room -= 1;
      begin();
    }
  }

  return {
    begin: () =>
      new Promise((resolve) => {
        if (!isCounting) {
          room = atOnce;
          count();
        }
        if (room === 0) {
          waiting.push(resolve);
          return;
        }
        room -= 1;
        resolve();
      }),
  };
}
