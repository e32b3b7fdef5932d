/**
 * Why something may fail, and whether the same request may succeed `later` or `never`, which decides on a
 * Retry button. Only `error-messages.ts` turns a code into words for people, and a new code does not compile
 * until it has words.
 */
const errorCodes = {
  // settings and start
  config: "never",
  stopping: "later",
  busy: "later",
  internal: "later",
  // access and limits
  "access-denied": "never",
  "rate-limited": "later",
  "over-budget": "later",
  "model-not-allowed": "never",
  "not-permitted": "never",
  // store
  "store-unavailable": "later",
  "store-corrupt": "never",
  "store-newer": "never",
  // gateway
  "gateway-unreachable": "later",
  "gateway-unauthorized": "later",
  "gateway-payment": "later",
  "gateway-rate-limited": "later",
  "gateway-bad-request": "never",
  "gateway-unknown-model": "never",
  "gateway-context-length": "never",
  "gateway-refused": "never",
  "gateway-timeout": "later",
  "gateway-error": "later",
  "gateway-bad-answer": "later",
  "gateway-empty-answer": "later",
  "gateway-interrupted": "later",
  "gateway-unsupported": "never",
  // attachments and downloads
  "attachment-too-large": "never",
  "attachment-empty": "never",
  "attachment-unreadable": "never",
  "attachment-blocked": "never",
  "attachment-gone": "never",
  // commands
  "unknown-command": "never",
  "invalid-option": "never",
  // platforms
  "platform-unauthorized": "never",
  "platform-forbidden": "never",
  "platform-unreachable": "later",
  "platform-rejected": "never",
  // turns
  cancelled: "later",
  "too-old": "later",
} as const satisfies Readonly<Record<string, "later" | "never">>;

export type ErrorCode = keyof typeof errorCodes;

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

const ofPeople: ReadonlySet<ErrorCode> = new Set([...refusals, "busy", "invalid-option", "unknown-command"]);

/** Whether people cause an error: by what they may or type, or by how much they ask at once. */
export function isCausedByPeople(error: unknown): error is ParleyError {
  return isParleyError(error) && ofPeople.has(error.code);
}

/** The code of an error for logs and metrics. It is `internal` for anything but a {@link ParleyError}. */
export function codeOf(error: unknown): ErrorCode {
  return isParleyError(error) ? error.code : "internal";
}

/** Whether the same request may succeed later, so that a Retry button is useful. */
export function isWorthRetrying(error: unknown): boolean {
  return errorCodes[codeOf(error)] === "later";
}

/** Whether a web page came in the place of the gateway's answer, as from an address of something else. */
export function isWebPage({ gatewayMessage }: ParleyError["detail"]): boolean {
  return typeof gatewayMessage === "string" && gatewayMessage.startsWith("a web page");
}
