import type { Log } from "../../core/telemetry.ts";
import { withRetries } from "../../wire/attempt.ts";
import { type Exchange, ApiError } from "../api-error.ts";
import type { LoadImage } from "../load-image.ts";
import type { Charge, Target } from "../router.ts";
import type { Headers } from "../../wire/failures.ts";
import { type UpstreamClient, UpstreamFailure } from "./upstream-client.ts";

/** The request that {@link tryTargets} sends. */
interface AttemptOptions {
  readonly targets: readonly [Target, ...Target[]];
  readonly signal: AbortSignal;
  readonly log: Log;
  readonly charge: Charge;
  /** Whether a repeated request may be billed twice, so that it is retried only when it cannot have begun. */
  readonly isCostly: boolean;
}

/** For longer waits the client gets the error, with the upstream's own `Retry-After`. */
const maxWaitMs = 2000;

/**
 * Tries the targets in order, each with its retries, until one answers. Contract: `attempt` throws
 * UpstreamFailure only while nothing of an answer has been sent to the client.
 * @throws ApiError of the first target's last failure, since its model was requested, or the signal's reason
 */
export async function tryTargets<T>(
  options: AttemptOptions,
  attempt: (target: Target) => Promise<T>,
): Promise<T> {
  const { targets, signal } = options;
  let first: UpstreamFailure | undefined;
  for (const target of targets) {
    try {
      return await withRetries(() => charged(target, options, attempt), {
        // A costly request is repeated by the rule of images: only when it cannot have begun.
        operation: options.isCostly ? "image" : "chat",
        rules: { maxAttempts: target.upstream.retries + 1, baseDelayMs: 200, maxDelayMs: maxWaitMs },
        deadlineAt: Number.POSITIVE_INFINITY,
        maxWaitMs,
        signal,
        onRetry: () => {},
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
  { charge, signal, log }: AttemptOptions,
  attempt: (target: Target) => Promise<T>,
): Promise<T> {
  charge.begin(target);
  try {
    return await attempt(target);
  } catch (error) {
    // Whatever failed then, the client has left a request that was sent.
    if (signal.aborted) throw error;
    if (error instanceof UpstreamFailure) {
      const { status, code } = error.toClient;
      log.warn({ model: target.publicId, status, code }, "upstream failed");
      charge.fail(error.kind === "broken" ? "broken" : "free");
    }
    // The client's own mistakes, such as an image that cannot be loaded, end the request before it is sent.
    else if (error instanceof ApiError) charge.fail("free");
    throw error;
  }
}

/** Whether the request itself is invalid, so that another model would reject it too. */
function isClientError(failure: UpstreamFailure): boolean {
  return failure.kind === "status" && [400, 413, 415, 422].includes(failure.toClient.status);
}

/** A client's request that is being forwarded. */
export interface Forwarding {
  readonly exchange: Exchange;
  readonly targets: readonly [Target, ...Target[]];
  readonly log: Log;
  /** The silence after which a waiting stream is opened with a comment, in milliseconds. */
  readonly pingMs: number;
  clientOf(target: Target): UpstreamClient;
  readonly loadImage: LoadImage;
  /** Whether a URL is one of this gateway's own pictures, which upstreams cannot reach. */
  isOwnPicture(url: string): boolean;
  /** The cost of the request. {@link tryTargets} reports each attempt to it. */
  readonly charge: Charge;
}

/** Returns headers that name the upstream of an answer, without those that are no valid header. */
export function toAnswerHeaders(target: Target, headers: Headers): Record<string, string> {
  const requestId = headers["x-request-id"];
  return {
    "x-upstream": target.prefix,
    ...(typeof requestId === "string" && /^[\w.:/=+-]{1,200}$/.test(requestId)
      ? { "x-upstream-request-id": requestId }
      : {}),
  };
}
