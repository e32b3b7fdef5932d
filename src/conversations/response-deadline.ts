import type { Clock } from "../core/clock.ts";

/** A timer that runs later than this means that the process was suspended, or busy all the time. */
const maxLateMs = 250;
/** How long a response is waited for after that. */
const afterSuspensionMs = 1000;

/** How long a server's responses are waited for. */
export interface ResponseDeadline {
  readonly deadlineMs: number;
  readonly clock: Clock;
  /** Called when a response did not come in time. */
  readonly onTimeout?: () => void;
}

/**
 * Runs requests to a server within a deadline: one that hangs is an outage like one that is down. Rejects with an
 * Error; the outcome of what was sent is then unknown.
 */
export async function withinDeadline<T>(
  work: () => Promise<T>,
  { deadlineMs, clock, onTimeout = () => {} }: ResponseDeadline,
): Promise<T> {
  let cancel = () => {};
  const deadline = new Promise<never>((_, reject) => {
    const dueAt = clock.monotonic() + deadlineMs;
    const timeOut = (): void => {
      reject(new Error(`no response within ${deadlineMs} ms`));
      onTimeout();
    };
    cancel = clock.after(deadlineMs, () => {
      // A process that was suspended: its timers run before it reads the response that waits in its socket.
      const wasSuspended = clock.monotonic() - dueAt > maxLateMs;
      if (wasSuspended) cancel = clock.after(Math.min(deadlineMs, afterSuspensionMs), timeOut);
      else timeOut();
    });
  });
  try {
    return await Promise.race([work(), deadline]);
  } finally {
    cancel();
  }
}
