import type { HttpAgent, MakeRequest } from "./http-agent.ts";
import type { RequestGuard } from "./invalid-requests.ts";
import { toResponse } from "./to-response.ts";

/** What is waited after the first 429 that says nothing; doubled with each that follows. */
const firstWaitMs = 1000;
const maxWaitMs = 60_000;

/**
 * The library's way to send a request, with a Retry-After on every 429: where it is absent or empty (as from Cloudflare)
 * the library would send the request again at once, for ever. It is taken from the body where that has one; otherwise it
 * is one second, doubled with each such response until another one comes, up to a minute.
 */
export function createRequestWithRetryAfter(
  agent: HttpAgent,
  guard: RequestGuard = (makeRequest) => makeRequest,
): MakeRequest {
  const makeRequest = guard(agent.makeRequest);
  let bareLimits = 0;
  return async (url, init) => {
    const response = await makeRequest(url, init);
    if (response.status !== 429) {
      bareLimits = 0;
      return response;
    }
    if (toSeconds(response.headers.get("retry-after")) !== undefined) return response;
    // The library does not read the body of a 429.
    const body = await response.text();
    const fromBody = readRetryAfter(body);
    const seconds = fromBody ?? Math.min(firstWaitMs * 2 ** bareLimits, maxWaitMs) / 1000;
    if (fromBody === undefined) bareLimits += 1;
    const limited = toResponse(response.status, body, response.headers);
    limited.headers.set("retry-after", String(seconds));
    return limited;
  };
}

function readRetryAfter(body: string): number | undefined {
  try {
    const { retry_after: seconds } = JSON.parse(body) as { readonly retry_after?: unknown };
    return toSeconds(seconds);
  } catch {
    // Cloudflare's pages are not JSON.
    return undefined;
  }
}

/** `undefined`: it is no time to wait. */
function toSeconds(given: unknown): number | undefined {
  const seconds = given === "" || given === null || given === undefined ? Number.NaN : Number(given);
  return seconds > 0 && Number.isFinite(seconds) ? seconds : undefined;
}
