import { AsyncLocalStorage } from "node:async_hooks";
import type { Clock } from "../../core/clock.ts";
import { ParleyError, type ErrorCode } from "../../core/errors.ts";
import type { Log } from "../../core/telemetry.ts";
import { systemClock, inTime } from "../../support/clock.ts";
import { translate } from "../../words/translate.ts";

const unauthorized = new Set([
  "account_inactive",
  "invalid_auth",
  "not_allowed_token_type",
  "not_authed",
  "token_expired",
  "token_revoked",
]);
/** Of {@link unauthorized} those that mean every method; the rest may mean this one. */
const tokenRefusals = new Set([
  "account_inactive",
  "invalid_auth",
  "not_authed",
  "token_expired",
  "token_revoked",
]);
const notMember = new Set(["channel_not_found", "not_in_channel"]);
const forbidden = new Set(["access_denied", "ekm_access_denied", "no_permission", "restricted_action"]);
const unavailable = new Set([
  "fatal_error",
  "internal_error",
  "org_login_required",
  "request_timeout",
  "service_unavailable",
  "team_added_to_org",
]);

/** Slack's limits also come with HTTP status 200, and then without Retry-After. */
const limited = new Set(["rate_limited", "ratelimited"]);

/** Slack refuses this content, and would take another one in the same place. */
const contentErrors = new Set([
  "invalid_arguments",
  "invalid_attachments",
  "invalid_blocks",
  "invalid_blocks_format",
  "markdown_text_conflict",
  "msg_blocks_too_long",
  "msg_too_long",
  "no_text",
  "too_many_attachments",
]);

/** Slack has a feature neither for this app nor in this workspace, whatever a call is about. */
const noFeature = new Set([
  "access_denied",
  "channel_type_not_supported",
  "feature_not_enabled",
  "method_deprecated",
  "missing_scope",
  "not_agent_app",
  "not_allowed_token_type",
  "unknown_method",
]);
const featureOffMs = 60 * 60_000;

/** A feature of Slack that an app may lack. */
export interface Feature {
  /** False for an hour after Slack has said that there is none. */
  isOn(): boolean;
  /** Notes why a call failed. True: there is no such feature, and another way must be taken. */
  note(error: unknown): boolean;
}

/** @param name of the feature, for the log */
export function createFeature(name: string, log: Log, clock: Clock): Feature {
  let offUntil = Number.NEGATIVE_INFINITY;
  return {
    isOn: () => clock.monotonic() >= offUntil,
    note(error) {
      if (!noFeature.has(slackErrorCode(error) ?? "")) return false;
      offUntil = clock.monotonic() + featureOffMs;
      log.info({ err: error, feature: name }, "Slack does not have a feature for this app");
      return true;
    },
  };
}

/** Whether Slack refused what a message contains, e.g. its blocks: a plainer form may be accepted. */
export function isContentError(error: unknown): boolean {
  return contentErrors.has(slackErrorCode(error) ?? "");
}

/** Whether Slack no longer accepts the token for anything. */
export function isTokenRefusal(slackError: string): boolean {
  return tokenRefusals.has(slackError);
}

/** Whether the bot cannot post in a channel since it is not in it. Slack says of private ones that there are none. */
export function isNotMember(error: unknown): boolean {
  return notMember.has(slackErrorCode(error) ?? "");
}

/** Slack's error code, e.g. `not_in_channel`; `undefined` if the error did not come from Slack's API. */
export function slackErrorCode(error: unknown): string | undefined {
  if (error instanceof ParleyError) {
    const code = error.detail["slackError"];
    return typeof code === "string" ? code : undefined;
  }
  const code = fieldOf(fieldOf(error, "data"), "error");
  return typeof code === "string" ? code : undefined;
}

/**
 * The {@link ParleyError} of a failed Web API call. `variable` names the setting whose token was used.
 * The message holds the method and Slack's error code, never arguments.
 */
export function toParleyError(error: unknown, method: string, variable = "SLACK_BOT_TOKEN"): ParleyError {
  if (error instanceof ParleyError) return error;
  const slackError = slackErrorCode(error);
  const retryAfter = fieldOf(error, "retryAfter") ?? (limited.has(slackError ?? "") ? 1 : undefined);
  if (typeof retryAfter === "number") {
    return new ParleyError("platform-rejected", `Slack rate limits ${method}`, {
      retryAfterMs: retryAfter * 1000,
      detail: { slackError: "ratelimited" },
      cause: error,
    });
  }
  if (slackError === undefined) {
    const status = fieldOf(error, "statusCode");
    const problem = typeof status === "number" ? `HTTP status ${status}` : "no response";
    return new ParleyError("platform-unreachable", `Slack ${method}: ${problem}`, { cause: error });
  }
  const detail = { slackError };
  const message = `Slack refused ${method}: ${slackError}`;
  if (unauthorized.has(slackError)) {
    return new ParleyError("platform-unauthorized", `${message}. Check ${variable}`, {
      detail: { ...detail, variable },
      cause: error,
    });
  }
  const permission = missingPermission(error, slackError);
  if (permission !== undefined) {
    return new ParleyError("platform-forbidden", message, {
      detail: { ...detail, permission },
      cause: error,
    });
  }
  const code: ErrorCode = isTemporary(slackError) ? "platform-unreachable" : "platform-rejected";
  return new ParleyError(code, message, { detail, cause: error });
}

/** Also `update_failed`, `file_update_failed` and the like: something failed inside of Slack. */
function isTemporary(slackError: string): boolean {
  return unavailable.has(slackError) || slackError.endsWith("_failed");
}

function missingPermission(error: unknown, slackError: string): string | undefined {
  if (slackError === "missing_scope") {
    const needed = fieldOf(fieldOf(error, "data"), "needed");
    return typeof needed === "string"
      ? translate("slack.lacks-scope.named", { scope: needed })
      : translate("slack.lacks-scope");
  }
  if (notMember.has(slackError)) return translate("slack.lacks-invitation");
  if (slackError === "is_archived") return translate("slack.lacks-open-channel");
  return forbidden.has(slackError) ? slackError : undefined;
}

function fieldOf(value: unknown, name: string): unknown {
  return typeof value === "object" && value !== null ? (value as Record<string, unknown>)[name] : undefined;
}

/**
 * All lookups for one event together may delay its acknowledgement so long: Slack's deadline is three seconds, and the
 * store needs its part.
 */
const lookupMs = 700;

const deadlines = new AsyncLocalStorage<{
  /** By {@link Clock.monotonic}. */
  readonly at: number;
  readonly clock: Clock;
}>();

/** Runs `work`, in which all lookups together wait 700 milliseconds, counted from now. */
export function withLookupTime<T>(clock: Clock, work: () => T): T {
  return deadlines.run({ at: clock.monotonic() + lookupMs, clock }, work);
}

/** Runs `work`, whose lookups wait for Slack: nothing waits for an acknowledgement there. */
export function withoutLookupTime<T>(work: () => T): T {
  return deadlines.exit(work);
}

/**
 * The result of a lookup. `undefined`: there is none within the time that is left for the current event, or within
 * `maxMs`. The lookup goes on. Outside of {@link withLookupTime} only `maxMs` limits it; default no limit.
 * @param clock where no time is left for an event; default: the time of this process
 * @throws what the lookup throws in time
 */
export async function inLookupTime<T>(
  lookup: Promise<T>,
  maxMs = Infinity,
  clock: Clock = systemClock,
): Promise<T | undefined> {
  const deadline = deadlines.getStore();
  const time = deadline?.clock ?? clock;
  const leftMs = Math.min(maxMs, deadline === undefined ? Infinity : deadline.at - time.monotonic());
  if (leftMs === Infinity) return await lookup;
  return await inTime(lookup, Math.max(0, leftMs), { clock: time });
}
