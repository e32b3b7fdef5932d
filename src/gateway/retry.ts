import { setTimeout as sleep } from "node:timers/promises";
import type { ParleyError } from "../core/errors.ts";
import { AttemptError, type RetryClass } from "./attempt-error.ts";
import type { Operation } from "./failures.ts";

/** How attempts are repeated. Delays have full jitter: anywhere from 0 to `baseDelayMs` · 2ⁿ, at most `maxDelayMs`. */
export interface RetryRules {
  /** All attempts, the first included. */
  readonly maxAttempts: number;
  readonly baseDelayMs: number;
  readonly maxDelayMs: number;
}

/** The usual rules: 3 attempts, 0.5 s doubling up to 8 s. */
export const usualRetryRules: RetryRules = { maxAttempts: 3, baseDelayMs: 500, maxDelayMs: 8000 };

/** A second drawing is billed a second time, so only what surely did nothing is repeated. */
const repeatableImageFailures: ReadonlySet<RetryClass> = new Set(["unconnected", "busy"]);

/** Whether another attempt at the same model makes sense. A timer that ran out has already taken all the patience there is. */
function isRepeatable(error: AttemptError, operation: Operation): boolean {
  if (operation === "image") return repeatableImageFailures.has(error.retryClass);
  return error.retryClass !== "never" && error.retryClass !== "silent";
}

/** Whether another model may do better. An unreachable gateway is unreachable for all its models. */
export function isWorthAnotherModel(error: AttemptError, operation: Operation): boolean {
  const { code } = error.failure;
  if (code === "gateway-unknown-model") return true;
  if (error.retryClass === "silent") return operation !== "image";
  return code !== "gateway-unreachable" && isRepeatable(error, operation);
}

export interface RetryContext {
  readonly operation: Operation;
  readonly rules: RetryRules;
  /** Unix ms: no wait may end after it. */
  readonly deadlineAt: number;
  /** Longest wait that is worth it while another model could be asked instead. */
  readonly maxWaitMs: number;
  readonly signal: AbortSignal;
  onRetry(failure: ParleyError, delayMs: number): void;
  /** From 0 up to and without 1. */
  readonly random?: () => number;
}

/**
 * Runs attempts until one succeeds. The gateway's Retry-After is a minimum; a wait that would pass the deadline is not
 * begun.
 * @throws AttemptError the last one; the signal's reason when it aborts
 */
export async function withRetries<T>(attempt: () => Promise<T>, context: RetryContext): Promise<T> {
  const { rules, signal, random = () => Math.random() } = context;
  for (let attempts = 1; ; attempts++) {
    try {
      return await attempt();
    } catch (error) {
      if (signal.aborted) throw signal.reason;
      if (!(error instanceof AttemptError)) throw error;
      if (attempts >= rules.maxAttempts || !isRepeatable(error, context.operation)) throw error;
      const ceiling = Math.min(rules.maxDelayMs, rules.baseDelayMs * 2 ** (attempts - 1));
      const delayMs = Math.max(Math.ceil(random() * ceiling), error.failure.retryAfterMs ?? 0);
      if (delayMs > context.maxWaitMs || Date.now() + delayMs >= context.deadlineAt) throw error;
      context.onRetry(error.failure, delayMs);
      await wait(delayMs, signal);
    }
  }
}

async function wait(ms: number, signal: AbortSignal): Promise<void> {
  try {
    await sleep(ms, undefined, { signal });
  } catch (error) {
    // Node wraps the reason in an AbortError of its own.
    if (signal.aborted) throw signal.reason;
    throw error;
  }
}
