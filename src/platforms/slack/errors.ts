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
/** These codes of {@link unauthorized} concern every method; the others may concern one method alone. */
const tokenRefusals = new Set([
  "account_inactive",
  "invalid_auth",
  "not_authed",
  "token_expired",
  "token_revoked",
]);
const notMember = new Set(["channel_not_found", "not_in_channel"]);
/** Members may not post in the channel, or only some of them, or only in its threads. */
const restricted = new Set([
  "restricted_action",
  "restricted_action_non_threadable_channel",
  "restricted_action_read_only_channel",
  "restricted_action_thread_locked",
  "restricted_action_thread_only_channel",
]);
const forbidden = new Set(["access_denied", "ekm_access_denied", "no_permission", ...restricted]);
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

/** With these codes Slack says that a feature is missing, whatever the call is about. */
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

/** An app may lack such a feature of Slack's. */
export interface Feature {
  /** Returns false for an hour after Slack has said that the feature is missing. */
  isOn(): boolean;
  /** Notes why a call failed. It returns true where the feature is missing, and another way must be taken. */
  note(error: unknown): boolean;
}

/**
 * Returns a feature that is on until Slack says otherwise.
 * @param name is the feature's name in the log
 */
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

/** Returns whether Slack refused what a message contains, so that it may accept a plainer form. */
export function isContentError(error: unknown): boolean {
  return contentErrors.has(slackErrorCode(error) ?? "");
}

/** Returns whether Slack no longer accepts the token for anything. */
export function isTokenRefusal(slackError: string): boolean {
  return tokenRefusals.has(slackError);
}

/** Returns whether the bot is not in the channel. Slack says that private channels do not exist. */
export function isNotMember(error: unknown): boolean {
  return notMember.has(slackErrorCode(error) ?? "");
}

/** Returns whether the bot cannot post in the channel, as a member or because it is none. */
export function isBarred(error: unknown): boolean {
  return isNotMember(error) || restricted.has(slackErrorCode(error) ?? "");
}

/** Returns Slack's error code, such as `not_in_channel`, and `undefined` for other errors. */
export function slackErrorCode(error: unknown): string | undefined {
  if (error instanceof ParleyError) {
    const code = error.detail["slackError"];
    return typeof code === "string" ? code : undefined;
  }
  const code = fieldOf(fieldOf(error, "data"), "error");
  return typeof code === "string" ? code : undefined;
}

/**
 * Returns the {@link ParleyError} of a failed call of the Web API. The `variable` names the setting whose
 * token was used. The message holds the method and Slack's error code, and never the arguments.
 */
export function toParleyError(error: unknown, method: string, variable = "SLACK_BOT_TOKEN"): ParleyError {
  if (error instanceof ParleyError) return error;
  const original = fieldOf(error, "original");
  if (original instanceof ParleyError) return original;
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

/** Returns whether something failed inside of Slack, as `update_failed` and `file_update_failed` say too. */
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
 * All lookups for one event together may delay its acknowledgement so long. Slack's deadline is three
 * seconds, and the store needs its part of them.
 */
const lookupMs = 700;

const deadlines = new AsyncLocalStorage<{
  /** This is a time of {@link Clock.monotonic}. */
  readonly at: number;
  readonly clock: Clock;
}>();

/** Runs `work`, in which all lookups together wait 700 milliseconds, counted from now. */
export function withLookupTime<T>(clock: Clock, work: () => T): T {
  return deadlines.run({ at: clock.monotonic() + lookupMs, clock }, work);
}

/** Runs `work`, whose lookups wait for Slack as long as it takes, since no acknowledgement waits for them. */
export function withoutLookupTime<T>(work: () => T): T {
  return deadlines.exit(work);
}

/**
 * Resolves to the result of a lookup, or to `undefined` where there is none within the time that is left for
 * the current event, or within `maxMs`. The lookup goes on. Outside of {@link withLookupTime} only `maxMs`
 * limits it, and by default nothing does.
 * @param clock is used outside of an event, and is the time of this process by default
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

/** What is said of a bot token under which the people of every workspace would count as strangers. */
export const organisationToken = {
  problem: "SLACK_BOT_TOKEN is of a whole organisation, and Parley needs to know the workspace",
  remedy:
    "install the app in one workspace and take its token, or set SLACK_CLIENT_ID in place of the token and let the organisation install it for all (docs/slack.md, Any workspace)",
} as const;
