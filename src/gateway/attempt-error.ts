import type { ParleyError } from "../core/errors.ts";
import type { ErrorInfo } from "./error-body.ts";

/**
 * What a retry may achieve. `unconnected`: no byte of the request was sent; `lost`: the connection broke later;
 * `busy`: status 429 or 503, the gateway did nothing; `transient`: another status that often passes; `timeout`: a
 * timer ran out; `never`: a retry fails the same way.
 */
export type RetryClass = "unconnected" | "lost" | "busy" | "transient" | "timeout" | "never";

/** A failed attempt, for the retry loop, which unwraps {@link AttemptError.failure}. Never leaves src/gateway. */
export class AttemptError extends Error {
  readonly failure: ParleyError;
  readonly retryClass: RetryClass;
  /** The gateway's error as it was sent: to be matched, never shown or logged. */
  readonly info: ErrorInfo | undefined;

  constructor(failure: ParleyError, retryClass: RetryClass, info?: ErrorInfo) {
    super(failure.message, { cause: failure });
    this.name = "AttemptError";
    this.failure = failure;
    this.retryClass = retryClass;
    this.info = info;
  }
}
