import { setTimeout as sleep } from "node:timers/promises";
import type { Log } from "../../core/telemetry.ts";
import type { Target } from "../router.ts";
import { UpstreamFailure } from "./upstream-failure.ts";

export interface AttemptOptions {
  readonly targets: readonly [Target, ...Target[]];
  readonly signal: AbortSignal;
  readonly log: Log;
  /** A second try of such a request may be billed twice, so only what cannot have begun is tried again. */
  readonly isCostly: boolean;
}

/** Longer waits are left to the client, with the upstream's own `Retry-After`. */
const maxWaitMs = 2000;

/**
 * Tries the targets in order, each with its retries, until one answers. `attempt` throws UpstreamFailure only as
 * long as nothing of an answer has reached the client.
 * @throws ApiError of the first target's last failure: it is the model that was asked for
 */
export async function tryTargets<T>(
  options: AttemptOptions,
  attempt: (target: Target) => Promise<T>,
): Promise<T> {
  const { targets, signal, log } = options;
  let first: UpstreamFailure | undefined;
  for (const [index, target] of targets.entries()) {
    for (let tries = 0; ; tries += 1) {
      try {
        return await attempt(target);
      } catch (error) {
        if (!(error instanceof UpstreamFailure)) throw error;
        signal.throwIfAborted();
        if (index === 0) first = error;
        const { status, code } = error.toClient;
        log.warn({ model: target.publicId, status, code, tries }, "upstream failed");
        const waitMs = Math.max(error.retryAfterMs ?? 0, 200 * 2 ** tries * (0.5 + Math.random()));
        if (tries >= target.upstream.retries || !isWorthATry(error, options.isCostly) || waitMs > maxWaitMs)
          break;
        await sleep(waitMs, undefined, { signal });
      }
    }
    if (first !== undefined && isClientsFault(first)) break;
  }
  throw first?.toClient ?? new Error("There was no target.");
}

function isWorthATry(failure: UpstreamFailure, isCostly: boolean): boolean {
  const { status, code } = failure.toClient;
  if (failure.kind === "connection") return true;
  if (code === "insufficient_quota" || code === "upstream_unauthorized") return false;
  if (isCostly) return failure.kind === "status" && (status === 429 || status === 503);
  return failure.kind === "broken" || [408, 429, 500, 502, 503, 504, 529].includes(status);
}

/** Another model would refuse the same request too. */
function isClientsFault(failure: UpstreamFailure): boolean {
  return failure.kind === "status" && [400, 413, 415, 422].includes(failure.toClient.status);
}
