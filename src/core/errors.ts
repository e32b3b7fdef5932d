/**
 * Why something failed. Only `error-messages.ts` turns a code into words for people, and a new code does not
 * compile until it has words.
 */
export type ErrorCode =
  // settings and start
  | "config"
  | "stopping"
  | "busy"
  | "internal"
  // access and limits
  | "access-denied"
  | "rate-limited"
  | "over-budget"
  | "model-not-allowed"
  | "not-permitted"
  // store
  | "store-unavailable"
  | "store-corrupt"
  | "store-newer"
  // gateway
  | "gateway-unreachable"
  | "gateway-unauthorized"
  | "gateway-payment"
  | "gateway-rate-limited"
  | "gateway-bad-request"
  | "gateway-unknown-model"
  | "gateway-context-length"
  | "gateway-refused"
  | "gateway-timeout"
  | "gateway-error"
  | "gateway-bad-answer"
  | "gateway-empty-answer"
  | "gateway-interrupted"
  | "gateway-unsupported"
  // attachments and downloads
  | "attachment-too-large"
  | "attachment-empty"
  | "attachment-unreadable"
  | "attachment-blocked"
  | "attachment-gone"
  // commands
  | "unknown-command"
  | "invalid-option"
  // platforms
  | "platform-unauthorized"
  | "platform-forbidden"
  | "platform-unreachable"
  | "platform-rejected"
  // turns
  | "cancelled"
  | "too-old";

/** The facts of a {@link ParleyError}. They may be shown or logged, so they hold no secrets or user text. */
interface ErrorOptions {
  /** The earliest sensible time for a retry, in milliseconds from now. */
  retryAfterMs?: number;
  /** Facts for the words of the error, such as a limit, a model id or a file name. */
  detail?: Readonly<Record<string, string | number>>;
  cause?: unknown;
}

/**
 * The one error class that crosses rooms. SDK and system errors are translated into it where they occur. The
 * message is for the log and holds no token, URL query or user text.
 */
export class ParleyError extends Error {
  readonly code: ErrorCode;
  readonly retryAfterMs: number | undefined;
  readonly detail: Readonly<Record<string, string | number>>;

  constructor(code: ErrorCode, message: string, options: ErrorOptions = {}) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause });
    this.name = "ParleyError";
    this.code = code;
    this.retryAfterMs = options.retryAfterMs;
    this.detail = options.detail ?? {};
  }
}

/** Whether `error` is a {@link ParleyError} and, if a code is given, has that code. */
export function isParleyError(error: unknown, code?: ErrorCode): error is ParleyError {
  return error instanceof ParleyError && (code === undefined || error.code === code);
}

const refusals: ReadonlySet<ErrorCode> = new Set([
  "access-denied",
  "not-permitted",
  "rate-limited",
  "over-budget",
]);

/**
 * Whether an error refuses a person, by the access rules, their rights, their rate or a budget. Then the
 * event is acknowledged but not kept, and only this person sees the words.
 */
export function isRefusal(error: unknown): error is ParleyError {
  return isParleyError(error) && refusals.has(error.code);
}

/** The code of an error for logs and metrics. It is `internal` for anything but a {@link ParleyError}. */
export function codeOf(error: unknown): ErrorCode {
  return isParleyError(error) ? error.code : "internal";
}
