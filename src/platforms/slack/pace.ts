/** Waits until one more call is within a limit. */
export interface Pace {
  /** Resolves when the call may be made. */
  take(): Promise<void>;
  /** Whether the call may be made now; leaves a part of the limit to {@link take}. */
  tryTake(): boolean;
}

export interface PaceOptions {
  /** Calls that are let through in any `windowMs`. */
  readonly max: number;
  readonly windowMs: number;
  /** Of `max`, so many are kept for calls that must be made. */
  readonly reserved: number;
  readonly now?: () => number;
  readonly sleep?: (ms: number) => Promise<void>;
}

/**
 * One limit for everyone who shares it, first come first served among equals. All replies of a workspace edit under
 * one of these: a 429 would hold up every call of the client, so it is better not to meet it.
 */
export function createPace(options: PaceOptions): Pace {
  const { max, windowMs, reserved, now = Date.now, sleep = delay } = options;
  const times: number[] = [];

  /** Calls within the window that ends now. */
  function recent(): number[] {
    const start = now() - windowMs;
    while (times.length > 0 && (times[0] ?? 0) <= start) times.shift();
    return times;
  }

  return {
    async take() {
      while (recent().length >= max) await sleep((times[times.length - max] ?? now()) + windowMs - now() + 1);
      times.push(now());
    },
    tryTake() {
      if (recent().length >= max - reserved) return false;
      times.push(now());
      return true;
    },
  };
}

function delay(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}
