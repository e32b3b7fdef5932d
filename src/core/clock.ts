/** Cancels a timer. Calling it again, or after the timer has fired, does nothing. */
export type CancelTimer = () => void;

/**
 * The time that a part of Parley lives in. Whatever waits, expires or measures takes one, so that a test can give the time
 * instead of waiting for it.
 */
export interface Clock {
  /** Wall time in Unix milliseconds, without the steps of the system's clock. For stored times and ages. */
  now(): number;
  /** Milliseconds since an arbitrary moment; never goes back. For durations and deadlines. */
  monotonic(): number;
  /**
   * Resolves after `ms` milliseconds.
   * @throws the reason of `signal` when it aborts first
   */
  sleep(ms: number, signal?: AbortSignal): Promise<void>;
  /** Calls `callback` once, after `ms` milliseconds. `keepsAlive`: the process does not end before; default true. */
  after(ms: number, callback: () => void, options?: { readonly keepsAlive?: boolean }): CancelTimer;
  /** Calls `callback` every `ms` milliseconds. It does not keep the process alive. */
  every(ms: number, callback: () => void): CancelTimer;
  /** A signal that aborts with a `TimeoutError` after `ms` milliseconds. It does not keep the process alive. */
  timeout(ms: number): AbortSignal;
}
