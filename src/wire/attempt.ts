import type { CancelTimer, Clock } from "../core/clock.ts";
import { ParleyError } from "../core/errors.ts";
import type { Operation } from "../core/gateway.ts";
import { systemClock } from "../support/clock.ts";
import { backoffMs, retry } from "../support/retry.ts";
import { AttemptError, type RetryClass } from "./failures.ts";

/**
 * How attempts are repeated. Delays are `baseDelayMs`, doubled with each up to `maxDelayMs`, and at random as
 * little as half of that. They are never shorter, so that a gateway that starts anew has time for it.
 */
export interface RetryRules {
  /** The number of attempts, including the first. */
  readonly maxAttempts: number;
  readonly baseDelayMs: number;
  readonly maxDelayMs: number;
}

/** The default rules: 3 attempts, with delays of 0.5 s doubling up to 8 s. */
export const defaultRetryRules: RetryRules = { maxAttempts: 3, baseDelayMs: 500, maxDelayMs: 8000 };

/** A repeated image generation is billed twice, so only failures that certainly did nothing are retried. */
const retriableImageFailures: ReadonlySet<RetryClass> = new Set(["unconnected", "busy"]);

/** Whether to retry the same model. After a timeout there is no time left for that. */
export function isRetriable(error: AttemptError, operation: Operation): boolean {
  if (operation === "image") return retriableImageFailures.has(error.retryClass);
  return error.retryClass !== "never" && error.retryClass !== "timeout";
}

/** The call that {@link withRetries} repeats. */
interface RetryContext {
  readonly operation: Operation;
  readonly rules: RetryRules;
  /** The latest end of a wait, on the monotonic time of the clock. */
  readonly deadlineAt: number;
  /** A longer wait is not begun, since a fallback model can be asked instead. */
  readonly maxWaitMs: number;
  readonly signal: AbortSignal;
  /** The default is the time of this process. */
  readonly clock?: Pick<Clock, "sleep" | "monotonic">;
  onRetry(failure: ParleyError, delayMs: number): void;
  /** Returns a number from 0 up to, but without, 1. Default `Math.random`. */
  readonly random?: () => number;
}

/**
 * Repeats attempts that failed with an {@link AttemptError}, by the rules. The gateway's Retry-After is a
 * minimum.
 * @throws AttemptError of the last attempt, or the signal's reason when it aborts
 */
export function withRetries<T>(attempt: () => Promise<T>, context: RetryContext): Promise<T> {
  const { rules, signal, clock = systemClock, random = () => Math.random() } = context;
  const limits = { baseMs: rules.baseDelayMs, maxMs: rules.maxDelayMs };
  return retry(attempt, {
    signal,
    clock,
    delayMs: (error, attempts) => {
      if (!(error instanceof AttemptError) || attempts >= rules.maxAttempts) return undefined;
      if (!isRetriable(error, context.operation)) return undefined;
      const jitterMs = Math.ceil((0.5 + random() / 2) * backoffMs(attempts, limits));
      const delayMs = Math.max(jitterMs, error.failure.retryAfterMs ?? 0);
      if (delayMs > context.maxWaitMs || clock.monotonic() + delayMs >= context.deadlineAt) return undefined;
      context.onRetry(error.failure, delayMs);
      return delayMs;
    },
  });
}

/** How long the body may stay open after the finish reason. Only usage follows it. */
export const endGraceMs = 3000;

/** The limits of one attempt in milliseconds. `deadlineAt` is by the clock, `totalMs` is for errors. */
interface TimeoutLimits {
  readonly firstEventMs: number;
  readonly idleMs: number;
  readonly deadlineAt: number;
  readonly totalMs: number;
}

/** The timers of one attempt. They abort its request when one expires or the caller aborts. */
export interface AttemptTimeouts {
  /** The signal for the request. Its reason is the caller's own, or a `gateway-timeout`. */
  readonly signal: AbortSignal;
  /** Restarts the idle timer when text, an image or part of a large body arrived. Pings do not count. */
  progress(): void;
  /** Restarts the running timer when anything arrived from a server whose answer has not begun. */
  alive(): void;
  /** Stops the idle timer while the caller works on what arrived. */
  pause(): void;
  resume(): void;
  /** Notes that the answer is complete. The body must then end within {@link endGraceMs}. */
  expectEnd(): void;
  /** Stops all timers. Contract: called on every path. */
  dispose(): void;
}

/** Starts the timers of an attempt: first event, idle and total. One timer of the clock serves all three. */
export function createAttemptTimeouts(
  callerSignal: AbortSignal,
  limits: TimeoutLimits,
  clock: Pick<Clock, "monotonic" | "after">,
): AttemptTimeouts {
  const controller = new AbortController();
  let which: "first-event" | "idle" | "end" = "first-event";
  let limitMs = limits.firstEventMs;
  let since = clock.monotonic();
  let isPaused = false;
  let cancel: CancelTimer = () => {};

  const expire = (timeout: string, ms: number) => {
    controller.abort(
      new ParleyError("gateway-timeout", `the gateway timed out (${timeout}, ${ms} ms)`, {
        detail: { timeout, timeoutMs: ms },
      }),
    );
  };

  // This is the shortest possible limit. Checks this often need no new timer when a limit changes.
  const checkMs = Math.min(limits.idleMs, endGraceMs, 0x7fffffff);
  const check = () => {
    const now = clock.monotonic();
    if (now >= limits.deadlineAt) return expire("total", limits.totalMs);
    const leftMs = isPaused ? limitMs : since + limitMs - now;
    if (leftMs <= 0) return expire(which, limitMs);
    cancel = clock.after(Math.min(leftMs, limits.deadlineAt - now, checkMs), check);
  };

  const onAbort = () => controller.abort(callerSignal.reason);
  if (callerSignal.aborted) onAbort();
  else {
    callerSignal.addEventListener("abort", onAbort, { once: true });
    check();
  }

  return {
    signal: controller.signal,
    progress() {
      since = clock.monotonic();
      if (which !== "first-event") return;
      which = "idle";
      limitMs = limits.idleMs;
    },
    alive() {
      since = clock.monotonic();
    },
    pause() {
      isPaused = true;
    },
    resume() {
      if (!isPaused) return;
      isPaused = false;
      since = clock.monotonic();
    },
    expectEnd() {
      which = "end";
      limitMs = Math.min(endGraceMs, limits.idleMs);
      since = clock.monotonic();
      isPaused = false;
    },
    dispose() {
      cancel();
      callerSignal.removeEventListener("abort", onAbort);
    },
  };
}
