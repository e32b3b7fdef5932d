import type { Log } from "../../core/telemetry.ts";
import { backoffMs, retry } from "../../support/retry.ts";
import { ApiError } from "../api-error.ts";
import type { Charge } from "../charge.ts";
import type { Target } from "../router.ts";
import { UpstreamFailure } from "./upstream-failure.ts";

/** The request that {@link tryTargets} sends. */
export interface AttemptOptions {
  readonly targets: readonly [Target, ...Target[]];
  readonly signal: AbortSignal;
  readonly log: Log;
  readonly charge: Charge;
  /** Whether a repeated request may be billed twice: it is then retried only when it cannot have begun. */
  readonly isCostly: boolean;
}

/** For longer waits the client gets the error, with the upstream's own `Retry-After`. */
const maxWaitMs = 2000;
const backoff = { baseMs: 200, maxMs: maxWaitMs };

/**
 * Tries the targets in order, each with its retries, until one answers. Contract: `attempt` throws UpstreamFailure
 * only while nothing of an answer has been sent to the client.
 * @throws ApiError of the first target's last failure, since its model was requested; the signal's reason
 */
export async function tryTargets<T>(
  options: AttemptOptions,
  attempt: (target: Target) => Promise<T>,
): Promise<T> {
  const { targets, signal } = options;
  let first: UpstreamFailure | undefined;
  for (const target of targets) {
    try {
      return await retry(() => charged(target, options, attempt), {
        signal,
        delayMs: (error, attempts) => retryDelayMs(error, attempts, target, options),
      });
    } catch (error) {
      if (!(error instanceof UpstreamFailure)) throw error;
      first ??= error;
      if (isClientError(first)) break;
    }
  }
  throw first?.toClient ?? new Error("no target to try");
}

async function charged<T>(
  target: Target,
  { charge, signal }: AttemptOptions,
  attempt: (target: Target) => Promise<T>,
): Promise<T> {
  charge.begin(target);
  try {
    return await attempt(target);
  } catch (error) {
    // Whatever failed then: the client has left a request that was sent.
    if (signal.aborted) throw error;
    if (error instanceof UpstreamFailure) charge.fail(error.kind === "broken" ? "broken" : "free");
    // The client's own mistakes, such as an image that cannot be loaded, end the request before it is sent.
    else if (error instanceof ApiError) charge.fail("free");
    throw error;
  }
}

function retryDelayMs(
  error: unknown,
  attempts: number,
  target: Target,
  { log, isCostly }: AttemptOptions,
): number | undefined {
  if (!(error instanceof UpstreamFailure)) return undefined;
  const { status, code } = error.toClient;
  log.warn({ model: target.publicId, status, code, attempts }, "upstream failed");
  if (attempts > target.upstream.retries || !isRetriable(error, isCostly)) return undefined;
  const jitterMs = backoffMs(attempts, backoff) * (0.5 + Math.random());
  const waitMs = Math.max(error.retryAfterMs ?? 0, jitterMs);
  return waitMs > maxWaitMs ? undefined : waitMs;
}

function isRetriable(failure: UpstreamFailure, isCostly: boolean): boolean {
  const { status, code } = failure.toClient;
  if (failure.kind === "connection") return true;
  if (code === "insufficient_quota" || code === "upstream_unauthorized") return false;
  if (isCostly) return failure.kind === "status" && (status === 429 || status === 503);
  return failure.kind === "broken" || [408, 429, 500, 502, 503, 504, 529].includes(status);
}

/** Whether the request itself is invalid, so that another model would reject it too. */
function isClientError(failure: UpstreamFailure): boolean {
  return failure.kind === "status" && [400, 413, 415, 422].includes(failure.toClient.status);
}
