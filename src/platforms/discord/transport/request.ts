import { DefaultRestOptions, REST, RESTEvents, type RESTOptions } from "discord.js";
import type { Log } from "../../../core/telemetry.ts";

/** The default of `DISCORD_API_URL`. */
export const publicApiUrl = "https://discord.com/api";

/** A response that stops arriving is waited for twice as long as the library waits for its headers. */
const responseTimeoutMs = 2 * DefaultRestOptions.timeout;
/** The wait after a 429 that names no time. */
const bareLimitSeconds = 1;
/** So many refused requests are one line in the log. Discord bans an address for 10,000 in ten minutes. */
const refusalsPerWarning = 500;

/**
 * Sends a request with Node's `fetch`, whose forms the library fills. It gives every 429 a Retry-After: the
 * library reads nothing else and would send the request again at once.
 */
const makeRequest: RESTOptions["makeRequest"] = async (url, init) => {
  const signal = AbortSignal.any([init.signal as AbortSignal, AbortSignal.timeout(responseTimeoutMs)]);
  // `fetch` hides what went wrong behind an error of its own.
  const response = await fetch(url, { ...(init as object), signal }).catch((error: unknown) => {
    throw (error as Error).cause ?? error;
  });
  if (response.status !== 429 || isTime(response.headers.get("retry-after"))) return response;
  // Cloudflare's pages are not JSON.
  const body = (await response.json().catch(() => undefined)) as
    | { readonly retry_after?: unknown }
    | undefined;
  const headers = new Headers(response.headers);
  headers.set("retry-after", String(isTime(body?.retry_after) ? body?.retry_after : bareLimitSeconds));
  return new Response(undefined, { status: response.status, headers });
};

const isTime = (seconds: unknown): boolean => Number(seconds) > 0 && Number.isFinite(Number(seconds));

/** Returns what each `REST` of discord.js has: the API's address, and how requests are sent. */
export function toRestOptions(apiUrl: string) {
  return {
    version: "10",
    api: apiUrl,
    // The library waits so much longer than Discord says, for clocks that differ.
    offset: apiUrl === publicApiUrl ? 50 : 0,
    invalidRequestWarningInterval: refusalsPerWarning,
    makeRequest,
  } satisfies Partial<RESTOptions>;
}

/**
 * Creates the one client of the process. It is independent of the gateway's client, which drops its token on
 * `destroy`. It neither waits nor repeats, since what is sent waits by urgency in its lanes before.
 */
export function createRest(token: string, apiUrl: string, log: Log): REST {
  const rest = new REST({
    ...toRestOptions(apiUrl),
    rejectOnRateLimit: () => true,
    // The library's own limit over all routes counts messages of interactions, which Discord exempts.
    globalRequestsPerSecond: 10_000,
    // The library would also repeat posts that may have happened.
    retries: 0,
  });
  warnOfRefusals(rest, log);
  return rest.setToken(token);
}

/** Says in the log when Discord refuses many requests. */
export function warnOfRefusals(rest: REST, log: Log): void {
  rest.on(RESTEvents.InvalidRequestWarning, ({ count, remainingTime }) =>
    log.warn(
      { invalidRequests: count, remainingMs: remainingTime },
      "Discord refuses many requests, and bans an address for 10,000 in ten minutes",
    ),
  );
}
