import { LogLevel, type Logger } from "@slack/bolt";
import { WebClient, type WebClientOptions } from "@slack/web-api";
import { Agent } from "undici";
import type { Log } from "../../../core/telemetry.ts";

/** The client has no timeout by default. It must not retry, since a repeated post would appear twice. */
const requestTimeoutMs = 20_000;

/** All parts of Slack's SDK share these options. */
export interface Bolt {
  readonly logger: Logger;
  /** Returns a copy each time, because the client changes these options. */
  clientOptions(): WebClientOptions;
  /** @param token is the token of all calls; without it, each call brings its own */
  createClient(token?: string): WebClient;
}

export function createBolt(apiUrl: string, log: Log): Bolt {
  const logger = toBoltLogger(log);
  const fetch = createClientFetch();
  const clientOptions = (): WebClientOptions => ({
    slackApiUrl: apiUrl,
    logger,
    retryConfig: { retries: 0 },
    rejectRateLimitedCalls: true,
    timeout: requestTimeoutMs,
    fetch,
  });
  return {
    logger,
    clientOptions,
    createClient: (token) => new WebClient(token, clientOptions()),
  };
}

const secrets = /xox[a-z][\w.-]*|xapp-[\w-]+|\?\S+/g;

/** Forwards Bolt's log lines. The debug and info lines are dropped, because they hold payloads. */
function toBoltLogger(log: Log): Logger {
  const line = (parts: readonly unknown[]) => parts.map(String).join(" ").replaceAll(secrets, "…");
  return {
    debug() {},
    info() {},
    warn: (...parts: unknown[]) => {
      log.debug({}, `bolt: ${line(parts)}`);
    },
    error: (...parts: unknown[]) => {
      log.warn({}, `bolt: ${line(parts)}`);
    },
    setLevel() {},
    setName() {},
    getLevel: () => LogLevel.WARN,
  };
}

/**
 * An answer that has arrived whole. Streams, as of the text of a usual one, take as long as the call itself.
 */
class WholeResponse extends Response {
  override readonly text: () => Promise<string>;

  constructor(text: string, init: ResponseInit) {
    super(null, init);
    this.text = () => Promise.resolve(text);
  }
}

/**
 * Returns a `fetch` for Slack's client with connections of its own. It sends text and reads whole answers. A
 * redirect is an answer with its status, which the client takes for a failure.
 */
export function createClientFetch(): NonNullable<WebClientOptions["fetch"]> {
  // Node's `fetch` does the same: with HTTP/2, one lost connection would interrupt every call.
  const agent = new Agent({ allowH2: false });
  return async (url, { method = "GET", headers = {}, body, signal } = {}) => {
    if (body !== undefined && typeof body !== "string")
      throw new TypeError("Slack's client sends files through url-requests.ts only");
    const { origin, pathname, search } = new URL(String(url));
    const path = pathname + search;
    const request = { origin, path, method, headers, body: body ?? null, signal: signal ?? null };
    const { statusCode: status, statusText, body: read, ...answer } = await agent.request(request);
    return new WholeResponse(await read.text(), {
      status,
      statusText,
      headers: answer.headers as Record<string, string>,
    });
  };
}
