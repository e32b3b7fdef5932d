/** Waits until one more call is within a limit. */
export interface Pace {
  /** `isUrgent` calls may use all of the limit, others leave a part of it free. */
  take(options: { readonly isUrgent: boolean }): Promise<void>;
}

export interface PaceOptions {
  /** Calls that are let through in any `windowMs`. */
  readonly max: number;
  readonly windowMs: number;
  /** Of `max`, so many are kept for urgent calls. */
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

  return {
    async take({ isUrgent }) {
      const most = isUrgent ? max : max - reserved;
      for (;;) {
        const at = now();
        while (times.length > 0 && (times[0] ?? 0) <= at - windowMs) times.shift();
        if (times.length < most) {
          times.push(at);
          return;
        }
        // The call that must leave the window first for this one to fit in.
        await sleep((times[times.length - most] ?? at) + windowMs - at + 1);
      }
    },
  };
}

function delay(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}
