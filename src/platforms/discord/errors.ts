import { DiscordAPIError, HTTPError, RateLimitError } from "discord.js";
import { ParleyError } from "../../core/errors.ts";

/** Discord's JSON error codes that Parley acts on. @see https://discord.com/developers/docs/topics/opcodes-and-status-codes#json */
export const codes = {
  unknownChannel: 10003,
  unknownMessage: 10008,
  unknownWebhook: 10015,
  unknownInteraction: 10062,
  alreadyAcknowledged: 40060,
  tooManyFollowUps: 40094,
  missingAccess: 50001,
  cannotMessageUser: 50007,
  missingPermissions: 50013,
  wrongChannelType: 50024,
  invalidWebhookToken: 50027,
  threadExists: 160004,
  threadLocked: 160005,
  tooManyThreads: 160006,
} as const;

const forbidden: ReadonlySet<number | string> = new Set([
  codes.missingAccess,
  codes.missingPermissions,
  codes.cannotMessageUser,
  codes.threadLocked,
]);

/**
 * Translates whatever a request to Discord threw. `doing` says what was tried, for the log.
 * The original is not kept as `cause`: it holds the request's body and, in its URL, an interaction's token.
 */
export function toParleyError(error: unknown, doing: string): ParleyError {
  if (error instanceof ParleyError) return error;
  if (error instanceof RateLimitError) {
    return new ParleyError("platform-unreachable", `Discord limits the rate: ${doing}`, {
      retryAfterMs: error.retryAfter > 0 ? error.retryAfter : Math.max(error.timeToReset, 1),
    });
  }
  if (error instanceof DiscordAPIError) return toApiError(error, doing);
  if (error instanceof HTTPError) {
    return new ParleyError("platform-unreachable", `Discord answered ${error.status}: ${doing}`);
  }
  const name = error instanceof Error ? error.name : typeof error;
  const reason = error instanceof Error ? error.message : "";
  if (reason.includes("Expected token to be set")) return unauthorized();
  return new ParleyError("platform-unreachable", `Discord could not be reached (${name}): ${doing}`);
}

function toApiError(error: DiscordAPIError, doing: string): ParleyError {
  const message = `Discord refused with ${error.status}, code ${error.code}: ${doing}`;
  if (error.status === 401 && error.code !== codes.invalidWebhookToken) return unauthorized();
  if (forbidden.has(error.code) || error.status === 403) {
    return new ParleyError("platform-forbidden", message, { detail: { discordCode: error.code } });
  }
  if (error.status >= 500) return new ParleyError("platform-unreachable", message);
  return new ParleyError("platform-rejected", message, { detail: { discordCode: error.code } });
}

/** The token is wrong or was reset. */
export function unauthorized(): ParleyError {
  return new ParleyError("platform-unauthorized", "Discord does not accept the token in DISCORD_TOKEN", {
    detail: { variable: "DISCORD_TOKEN" },
  });
}

/** Discord's JSON code of a translated or original error. */
export function discordCode(error: unknown): number | undefined {
  if (error instanceof DiscordAPIError) return Number(error.code);
  if (error instanceof ParleyError && error.detail["discordCode"] !== undefined)
    return Number(error.detail["discordCode"]);
  return undefined;
}

/** Whether an interaction's token cannot be used (any more), so that only ordinary messages are left. */
export function isTokenGone(error: unknown): boolean {
  const code = discordCode(error);
  return (
    code === codes.invalidWebhookToken || code === codes.unknownWebhook || code === codes.unknownInteraction
  );
}
