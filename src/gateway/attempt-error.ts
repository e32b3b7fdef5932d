import type { ParleyError } from "../core/errors.ts";
import type { ErrorInfo } from "./error-body.ts";

/**
 * What may be done about a failed attempt:
 * `unconnected`: no byte of the request reached the gateway; `lost`: the connection broke later; `busy`: the gateway
 * said 429 or 503, so it did nothing; `trouble`: another status that a second try often mends; `silent`: a timer ran
 * out; `never`: a second try gets the same answer.
 */
export type RetryClass = "unconnected" | "lost" | "busy" | "trouble" | "silent" | "never";

/** A failed attempt on its way to the retry loop, which unwraps {@link AttemptError.failure}. Never leaves src/gateway. */
export class AttemptError extends Error {
  readonly failure: ParleyError;
  readonly retryClass: RetryClass;
  /** What the gateway said, as it said it: to be matched, never shown. */
  readonly info: ErrorInfo | undefined;

  constructor(failure: ParleyError, retryClass: RetryClass, info?: ErrorInfo) {
    super(failure.message, { cause: failure });
    this.name = "AttemptError";
    this.failure = failure;
    this.retryClass = retryClass;
    this.info = info;
  }
}
