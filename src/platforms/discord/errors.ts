import { DiscordAPIError, HTTPError, RateLimitError } from "discord.js";
import { ParleyError } from "../../core/errors.ts";

/** The JSON error codes. @see https://discord.com/developers/docs/topics/opcodes-and-status-codes#json */
export const errorCodes = {
  unknownChannel: 10003,
  unknownGuild: 10004,
  unknownMember: 10007,
  unknownMessage: 10008,
  unknownUser: 10013,
  unknownWebhook: 10015,
  unknownInteraction: 10062,
  openingTooFast: 40003,
  alreadyAcknowledged: 40060,
  missingAccess: 50001,
  notTheAuthor: 50005,
  cannotMessageUser: 50007,
  missingPermissions: 50013,
  wrongChannelType: 50024,
  invalidWebhookToken: 50027,
  threadArchived: 50083,
  noHistoryToReply: 160002,
  threadExists: 160004,
  threadLocked: 160005,
  tooManyThreads: 160006,
} as const;

/** The lane of the limit over all routes. A rate limited request names it in `detail.lane`. */
export const globalLane = "global";

const forbidden: ReadonlySet<number | string> = new Set([
  errorCodes.missingAccess,
  errorCodes.missingPermissions,
  errorCodes.cannotMessageUser,
  errorCodes.threadLocked,
]);

/**
 * Translates an error of a request to Discord. `action` says what failed, for the log. The original error is
 * not kept as `cause`, because it contains the request's body and, in its URL, an interaction's token.
 */
export function toParleyError(error: unknown, action: string): ParleyError {
  if (error instanceof ParleyError) return error;
  if (error instanceof RateLimitError) {
    return new ParleyError("platform-unreachable", `rate limited by Discord: ${action}`, {
      retryAfterMs: error.retryAfter > 0 ? error.retryAfter : Math.max(error.timeToReset, 1),
      ...(error.global ? { detail: { lane: globalLane } } : {}),
    });
  }
  if (error instanceof DiscordAPIError) return toApiError(error, action);
  if (error instanceof HTTPError) {
    return new ParleyError("platform-unreachable", `Discord returned ${error.status}: ${action}`);
  }
  const name = error instanceof Error ? error.name : typeof error;
  const reason = error instanceof Error ? error.message : "";
  if (reason.includes("Expected token to be set")) return unauthorized();
  const { code } = Object(error) as { readonly code?: unknown };
  const why = typeof code === "string" ? code : name;
  return new ParleyError("platform-unreachable", `Discord could not be reached (${why}): ${action}`);
}

function toApiError(error: DiscordAPIError, action: string): ParleyError {
  const message = `Discord returned ${error.status}, code ${error.code}: ${action}`;
  if (error.status === 401 && error.code !== errorCodes.invalidWebhookToken) return unauthorized();
  // The message is another bot's, from before the token was changed. A new message can take its place.
  const isReplaceable = error.code === errorCodes.notTheAuthor;
  if (!isReplaceable && (forbidden.has(error.code) || error.status === 403)) {
    return new ParleyError("platform-forbidden", message, { detail: { discordCode: error.code } });
  }
  if (error.status >= 500) return new ParleyError("platform-unreachable", message);
  const fields = invalidFields(error.rawError);
  return new ParleyError("platform-rejected", message, {
    detail: { discordCode: error.code, ...(fields === "" ? {} : { fields }) },
  });
}

const maxFields = 3;

/** Lists the invalid fields, as in `0.options.1.description: Must be …`. Quoted values are cut. */
function invalidFields(body: unknown): string {
  const found: string[] = [];
  const visit = (node: unknown, path: readonly string[]): void => {
    if (typeof node !== "object" || node === null || path.length > 12) return;
    for (const [key, value] of Object.entries(node)) {
      if (key !== "_errors") visit(value, [...path, key]);
      else if (Array.isArray(value)) {
        const [first] = value as readonly { readonly message?: unknown }[];
        const problem = typeof first?.message === "string" ? first.message : "is invalid";
        found.push(`${path.join(".")}: ${problem.replaceAll(/"[^"]*"/g, '"…"').slice(0, 200)}`);
      }
    }
  };
  visit((body as { readonly errors?: unknown }).errors, []);
  const more = found.length > maxFields ? [`and ${found.length - maxFields} more`] : [];
  return [...found.slice(0, maxFields), ...more].join("; ");
}

/**
 * Names the missing permission in the error of a request. Discord returns the same code for all permissions
 * but View Channel. Other errors are returned as they are.
 */
export function withPermission(error: unknown, permission: string): unknown {
  const code = discordCode(error);
  if (code !== errorCodes.missingPermissions && code !== errorCodes.missingAccess) return error;
  const missing = code === errorCodes.missingAccess ? "View Channel" : permission;
  return new ParleyError("platform-forbidden", `Discord returned code ${code}: ${missing} is missing`, {
    detail: { permission: missing, discordCode: code },
  });
}

/** Makes the error of a token that is wrong or was reset. */
export function unauthorized(): ParleyError {
  return new ParleyError("platform-unauthorized", "Discord does not accept the token in DISCORD_TOKEN", {
    detail: { variable: "DISCORD_TOKEN" },
  });
}

/** Returns Discord's JSON error code of a translated or original error. */
export function discordCode(error: unknown): number | undefined {
  if (error instanceof DiscordAPIError) return Number(error.code);
  if (error instanceof ParleyError && error.detail["discordCode"] !== undefined)
    return Number(error.detail["discordCode"]);
  return undefined;
}

/** Whether an interaction's token is expired or invalid, so that only ordinary messages can be posted. */
export function isTokenGone(error: unknown): boolean {
  const code = discordCode(error);
  return (
    code === errorCodes.invalidWebhookToken ||
    code === errorCodes.unknownWebhook ||
    code === errorCodes.unknownInteraction
  );
}
