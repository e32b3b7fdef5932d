/** Cancels a timer. Calling it again, or after the timer has fired, does nothing. */
export type CancelTimer = () => void;

/**
 * The source of time of a part of Parley. Everything that waits, expires or measures is given one, so that a
 * test can set the time instead of waiting for it.
 */
export interface Clock {
  /** Wall time in Unix milliseconds, without jumps of the system clock. It is for stored times and ages. */
  now(): number;
  /** Milliseconds since an arbitrary moment. It never goes back, and is for durations and deadlines. */
  monotonic(): number;
  /**
   * Resolves after `ms` milliseconds.
   * @throws the reason of `signal` when it aborts first
   */
  sleep(ms: number, signal?: AbortSignal): Promise<void>;
  /** Calls `callback` once after `ms` milliseconds. The process waits for it unless `keepsAlive` is false. */
  after(ms: number, callback: () => void, options?: { readonly keepsAlive?: boolean }): CancelTimer;
  /** Calls `callback` every `ms` milliseconds. It does not keep the process alive. */
  every(ms: number, callback: () => void): CancelTimer;
  /** A signal that aborts with a `TimeoutError` after `ms` milliseconds. The process does not wait for it. */
  timeout(ms: number): AbortSignal;
}
