/**
 * Why something failed. Only `error-messages.ts` turns a code into words for people; a new code does not compile until
 * it has some.
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

/** What a {@link ParleyError} carries beside its code. All of it may be shown or logged: no secrets, no user text. */
interface ErrorOptions {
  /** Earliest sensible retry, in milliseconds from now. */
  retryAfterMs?: number;
  /** Facts for the error words: a limit, a model id, a file name. */
  detail?: Readonly<Record<string, string | number>>;
  cause?: unknown;
}

/**
 * The one error class that crosses rooms. SDK and system errors are translated into it once, where they occur. The
 * message is for the log: it holds no token, URL query or user text.
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

/** Whether `error` is a {@link ParleyError}, of the given code where one is named. */
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
 * Whether an error refuses a person: by the access rules, their rights, their rate or a budget. The event is acknowledged and not
 * kept, and the words are for this person alone.
 */
export function isRefusal(error: unknown): error is ParleyError {
  return isParleyError(error) && refusals.has(error.code);
}

/** The code of an error, for logs and figures; `internal` for one that is no {@link ParleyError}. */
export function codeOf(error: unknown): ErrorCode {
  return isParleyError(error) ? error.code : "internal";
}
