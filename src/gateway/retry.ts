import type { Clock } from "../core/clock.ts";
import type { ParleyError } from "../core/errors.ts";
import type { Operation } from "../core/gateway.ts";
import { backoffMs, retry } from "../support/retry.ts";
import { AttemptError, type RetryClass } from "./attempt-error.ts";

/**
 * How attempts are repeated. Delays are `baseDelayMs`, doubled with each up to `maxDelayMs`, or as little as half of that,
 * at random: not less, so that a gateway that starts anew has time for it.
 */
export interface RetryRules {
  /** Including the first. */
  readonly maxAttempts: number;
  readonly baseDelayMs: number;
  readonly maxDelayMs: number;
}

/** The default rules: 3 attempts, 0.5 s doubling up to 8 s. The last one comes 0.75 to 1.5 s after the first has failed. */
export const defaultRetryRules: RetryRules = { maxAttempts: 3, baseDelayMs: 500, maxDelayMs: 8000 };

/** A repeated image generation is billed twice, so only failures that certainly did nothing are retried. */
const retriableImageFailures: ReadonlySet<RetryClass> = new Set(["unconnected", "busy"]);

/** Whether to retry the same model. After a timeout there is no time left for that. */
function isRetriable(error: AttemptError, operation: Operation): boolean {
  if (operation === "image") return retriableImageFailures.has(error.retryClass);
  return error.retryClass !== "never" && error.retryClass !== "timeout";
}

/** Whether a fallback model may succeed. An unreachable gateway is unreachable for all its models. */
export function isWorthFallback(error: AttemptError, operation: Operation): boolean {
  const { code } = error.failure;
  if (code === "gateway-unknown-model") return true;
  if (error.retryClass === "timeout") return operation !== "image";
  return code !== "gateway-unreachable" && isRetriable(error, operation);
}

/** The call that {@link withRetries} repeats. */
export interface RetryContext {
  readonly operation: Operation;
  readonly rules: RetryRules;
  /** On the clock of `performance.now`: no wait may end after it. */
  readonly deadlineAt: number;
  /** A longer wait is not begun: a fallback model can be asked instead. */
  readonly maxWaitMs: number;
  readonly signal: AbortSignal;
  /** Default: the time of this process. */
  readonly clock?: Pick<Clock, "sleep">;
  onRetry(failure: ParleyError, delayMs: number): void;
  /** From 0 up to and without 1. Default `Math.random`. */
  readonly random?: () => number;
}

/**
 * Repeats attempts that failed with an {@link AttemptError}, by the rules. The gateway's Retry-After is a minimum.
 * @throws AttemptError the last one; the signal's reason when it aborts
 */
export function withRetries<T>(attempt: () => Promise<T>, context: RetryContext): Promise<T> {
  const { rules, signal, random = () => Math.random() } = context;
  const limits = { baseMs: rules.baseDelayMs, maxMs: rules.maxDelayMs };
  return retry(attempt, {
    signal,
    ...(context.clock === undefined ? {} : { clock: context.clock }),
    delayMs: (error, attempts) => {
      if (!(error instanceof AttemptError) || attempts >= rules.maxAttempts) return undefined;
      if (!isRetriable(error, context.operation)) return undefined;
      const jitterMs = Math.ceil((0.5 + random() / 2) * backoffMs(attempts, limits));
      const delayMs = Math.max(jitterMs, error.failure.retryAfterMs ?? 0);
      if (delayMs > context.maxWaitMs || performance.now() + delayMs >= context.deadlineAt) return undefined;
      context.onRetry(error.failure, delayMs);
      return delayMs;
    },
  });
}
