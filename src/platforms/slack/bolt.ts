import type {
  App,
  HTTPReceiver,
  isValidSlackRequest,
  Logger,
  LogLevel,
  SocketModeReceiver,
} from "@slack/bolt";
import type { WebClient, WebClientOptions } from "@slack/web-api";
import type { Log } from "../../core/telemetry.ts";
import { createClientFetch } from "./client-fetch.ts";

/** The client has no timeout by default. It must not retry either: a repeated post would appear twice. */
const requestTimeoutMs = 20_000;

/** Slack's SDK, imported when it is needed, with Parley's options. */
export interface Bolt {
  readonly sdk: {
    readonly HTTPReceiver: typeof HTTPReceiver;
    readonly SocketModeReceiver: typeof SocketModeReceiver;
    readonly isValidSlackRequest: typeof isValidSlackRequest;
  };
  readonly logger: Logger;
  /** A copy each time: the client changes these options. */
  clientOptions(): WebClientOptions;
  /** @param token without one, each call brings its own */
  createClient(token?: string): WebClient;
  /** An app without a receiver: its listeners get what is passed to `processEvent`. Errors of listeners are rethrown. */
  createApp(bot: AppIdentity): Promise<App>;
}

/** Whose events an app handles. */
export interface AppIdentity {
  readonly teamId: string;
  readonly userId: string;
  readonly botId: string;
}

/** Imports Slack's SDK. A start without Slack does not load it. */
export async function loadBolt(apiUrl: string, log: Log): Promise<Bolt> {
  const sdk = await import("@slack/bolt");
  const logger = toBoltLogger(log, sdk.LogLevel.WARN);
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
    sdk,
    logger,
    clientOptions,
    createClient: (token) => new sdk.webApi.WebClient(token, clientOptions()),
    async createApp({ teamId, userId, botId }) {
      const app = new sdk.App({
        receiver: { init() {}, start: () => Promise.resolve(), stop: () => Promise.resolve() },
        // Bolt wants a token; no listener uses Bolt's client.
        authorize: () => Promise.resolve({ botId, botUserId: userId, teamId }),
        // Otherwise a failing start is an unhandled rejection out of the constructor.
        deferInitialization: true,
        convoStore: false,
        clientOptions: clientOptions(),
        logger,
      });
      await app.init();
      // Rethrown, so that an event that a listener could not accept is not acknowledged.
      app.error(async (error) => {
        throw error;
      });
      return app;
    },
  };
}

const secrets = /xox[a-z][\w.-]*|xapp-[\w-]+|\?\S+/g;

/** Forwards Bolt's log lines. Its debug and info lines hold payloads and are dropped. */
function toBoltLogger(log: Log, level: LogLevel): Logger {
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
    getLevel: () => level,
  };
}
