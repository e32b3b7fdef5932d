import { isExcessiveJson } from "../../support/json-limits.ts";
import { steadyClock } from "../../support/steady-clock.ts";
import { ApiError } from "../api-error.ts";

/** A failed attempt at an upstream, for the retry loop. */
export class UpstreamFailure extends Error {
  /** The error for the client when no other attempt succeeds. */
  readonly toClient: ApiError;
  /** `connection`: the request was not sent; `status`: an error status; `broken`: an unreadable answer. */
  readonly kind: "connection" | "status" | "broken";
  readonly retryAfterMs: number | undefined;

  constructor(kind: UpstreamFailure["kind"], toClient: ApiError, retryAfterMs?: number) {
    super(toClient.message, { cause: toClient.cause });
    this.name = "UpstreamFailure";
    this.kind = kind;
    this.toClient = toClient;
    this.retryAfterMs = retryAfterMs;
  }
}

type Headers = Readonly<Record<string, string | string[] | undefined>>;

/** The upstream could not be reached, or closed the connection. The cause is logged only: it may contain addresses. */
export function toConnectionFailure(prefix: string, cause: unknown): UpstreamFailure {
  const code = cause instanceof Error && "code" in cause ? String(cause.code) : "";
  const isTimeout = /TIMEOUT/.test(code);
  const message = isTimeout
    ? `The upstream '${prefix}' did not answer in time.`
    : `The upstream '${prefix}' could not be reached.`;
  const error = new ApiError(isTimeout ? 504 : 502, "upstream_error", message, {
    code: isTimeout ? "upstream_timeout" : "upstream_unreachable",
    cause,
  });
  const neverSent = /ECONNREFUSED|ENOTFOUND|EAI_AGAIN|CONNECT_TIMEOUT|EHOSTUNREACH|ENETUNREACH/.test(code);
  return new UpstreamFailure(neverSent ? "connection" : "broken", error);
}

/** An error status, or an error in a successful answer. */
export function toStatusFailure(
  prefix: string,
  status: number,
  headers: Headers,
  body: string,
): UpstreamFailure {
  const { message, type, param, code } = readError(body);
  const retryAfter = headers["retry-after"];
  const passed =
    typeof retryAfter === "string" && /^[\w ,:.+-]{1,64}$/.test(retryAfter)
      ? { headers: { "retry-after": retryAfter } }
      : {};
  // A 401 would blame the client's key, but the gateway's own key was rejected.
  if (status === 401 || status === 403) {
    const text = `The upstream '${prefix}' rejected the gateway's own key.`;
    return new UpstreamFailure(
      "status",
      new ApiError(502, "upstream_error", text, { code: "upstream_unauthorized" }),
    );
  }
  const shown = status < 400 ? 502 : status > 599 ? 502 : status;
  const error = new ApiError(
    shown,
    type ?? (shown >= 500 ? "upstream_error" : shown === 429 ? "rate_limit_error" : "invalid_request_error"),
    message ?? `The upstream '${prefix}' returned status ${status}.`,
    { ...passed, ...(param === undefined ? {} : { param }), code: code ?? `upstream_${status}` },
  );
  return new UpstreamFailure("status", error, toRetryAfterMs(retryAfter, headers["date"]));
}

/** An unreadable or interrupted answer. */
export function toBrokenFailure(
  prefix: string,
  problem: string,
  code: string,
  cause?: unknown,
): UpstreamFailure {
  const message = `The upstream '${prefix}' ${problem}.`;
  return new UpstreamFailure("broken", new ApiError(502, "upstream_error", message, { code, cause }));
}

/** The error in a parsed answer, as JSON text. `undefined` when there is none. */
export function errorIn(value: unknown): string | undefined {
  if (typeof value !== "object" || value === null) return undefined;
  const record = value as Record<string, unknown>;
  const isError = (record["error"] ?? undefined) !== undefined || record["object"] === "error";
  return isError ? JSON.stringify(value) : undefined;
}

interface ReadError {
  readonly message?: string | undefined;
  readonly type?: string | undefined;
  readonly param?: string | undefined;
  readonly code?: string | undefined;
}

function readError(body: string): ReadError {
  if (isExcessiveJson(body)) return {};
  let value: unknown;
  try {
    value = JSON.parse(body);
  } catch {
    // An empty body or a proxy's web page; the status is enough.
    return {};
  }
  const outer = toRecord(Array.isArray(value) ? value[0] : value);
  const inner =
    typeof outer["error"] === "string" ? { message: outer["error"] } : toRecord(outer["error"] ?? outer);
  const text = (field: unknown): string | undefined =>
    typeof field === "string" && field !== ""
      ? field.slice(0, 2000)
      : typeof field === "number"
        ? String(field)
        : undefined;
  return {
    message: text(inner["message"]) ?? text(outer["detail"]) ?? text(outer["message"]),
    type: text(inner["type"]),
    param: text(inner["param"]),
    code: text(inner["code"]),
  };
}

function toRecord(value: unknown): Record<string, unknown> {
  return typeof value === "object" && value !== null ? (value as Record<string, unknown>) : {};
}

/** @param sentAt the `date` header: a date is by the upstream's clock */
function toRetryAfterMs(
  header: string | string[] | undefined,
  sentAt: string | string[] | undefined,
): number | undefined {
  if (typeof header !== "string") return undefined;
  if (/^\d{1,12}(\.\d{1,3})?$/.test(header)) return Number(header) * 1000;
  const date = Date.parse(header);
  const now = Date.parse(String(sentAt));
  return Number.isNaN(date) ? undefined : Math.max(0, date - (Number.isNaN(now) ? steadyClock.now() : now));
}
