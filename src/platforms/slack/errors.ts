import { ParleyError, type ErrorCode } from "../../core/errors.ts";

const unauthorized = new Set([
  "account_inactive",
  "invalid_auth",
  "not_allowed_token_type",
  "not_authed",
  "token_expired",
  "token_revoked",
]);
const notHere = new Set(["channel_not_found", "is_archived", "not_in_channel"]);
const forbidden = new Set(["access_denied", "ekm_access_denied", "no_permission", "restricted_action"]);
const unavailable = new Set([
  "fatal_error",
  "internal_error",
  "request_timeout",
  "service_unavailable",
  "team_added_to_org",
]);

/** Slack's own word for what went wrong, e.g. `not_in_channel`; `undefined`: it did not come from Slack's API. */
export function slackErrorOf(error: unknown): string | undefined {
  if (error instanceof ParleyError) {
    const word = error.detail["slackError"];
    return typeof word === "string" ? word : undefined;
  }
  const word = fieldOf(fieldOf(error, "data"), "error");
  return typeof word === "string" ? word : undefined;
}

/**
 * What a failed call of Slack's Web API means. `variable` names the setting whose token was used.
 * The message holds the method and Slack's error word, never arguments.
 */
export function toParleyError(error: unknown, method: string, variable = "SLACK_BOT_TOKEN"): ParleyError {
  if (error instanceof ParleyError) return error;
  const word = slackErrorOf(error);
  const retryAfter = fieldOf(error, "retryAfter");
  if (typeof retryAfter === "number") {
    return new ParleyError("platform-rejected", `Slack limits the rate of ${method}`, {
      retryAfterMs: retryAfter * 1000,
      detail: { slackError: "ratelimited" },
      cause: error,
    });
  }
  if (word === undefined) {
    const status = fieldOf(error, "statusCode");
    const what = typeof status === "number" ? `answered ${status}` : "did not answer";
    return new ParleyError("platform-unreachable", `Slack ${what} to ${method}`, { cause: error });
  }
  const detail = { slackError: word };
  const message = `Slack refused ${method}: ${word}`;
  if (unauthorized.has(word)) {
    return new ParleyError("platform-unauthorized", `${message}. Check ${variable}`, {
      detail: { ...detail, variable },
      cause: error,
    });
  }
  const permission = missingPermission(error, word);
  if (permission !== undefined) {
    return new ParleyError("platform-forbidden", message, {
      detail: { ...detail, permission },
      cause: error,
    });
  }
  const code: ErrorCode = unavailable.has(word) ? "platform-unreachable" : "platform-rejected";
  return new ParleyError(code, message, { detail, cause: error });
}

function missingPermission(error: unknown, word: string): string | undefined {
  if (word === "missing_scope") {
    const needed = fieldOf(fieldOf(error, "data"), "needed");
    return typeof needed === "string" ? `the scope ${needed}` : "a scope";
  }
  if (notHere.has(word)) return "an invitation to this channel";
  return forbidden.has(word) ? word : undefined;
}

function fieldOf(value: unknown, name: string): unknown {
  return typeof value === "object" && value !== null ? (value as Record<string, unknown>)[name] : undefined;
}
