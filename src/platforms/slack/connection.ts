import type { App, Logger, LogLevel, ReceiverEvent } from "@slack/bolt";
import { isParleyError, ParleyError } from "../../core/errors.ts";
import type { PlatformHealth } from "../../core/platform.ts";
import type { Log } from "../../core/telemetry.ts";
import { backoffMs, retry } from "../../support/retry.ts";
import { sleep, sleepUnlessAborted } from "../../support/sleep.ts";
import { toParleyError } from "./errors.ts";
import { createSlackApi, type Identity, type SlackApi } from "./web-api.ts";

/** What {@link createSocketConnection} needs. */
export interface ConnectionOptions {
  readonly botToken: string;
  readonly appToken: string;
  readonly apiUrl: string;
  readonly log: Log;
  /** Registers the listeners; called once, before any event is delivered. */
  readonly register: (app: App, api: SlackApi, identity: Identity) => void;
}

/** Delivers Slack's events to the bot. */
export interface Connection {
  /** @throws ParleyError `platform-unauthorized`, `platform-unreachable` */
  open(): Promise<void>;
  health(): PlatformHealth;
  /**
   * Takes no new events, waits for what is in flight, at most 2.5 seconds, then closes the socket. Slack delivers
   * unacknowledged events again, to another connection where there is one. Web API calls are still possible.
   */
  close(): Promise<void>;
}

/** The client has no timeout by default. It must not retry either: a repeated post would appear twice. */
const requestTimeoutMs = 20_000;
const helloTimeoutMs = 20_000;
/** Slack's deadline for acknowledgements is three seconds. */
const maxClosingMs = 2500;
const reconnectDelay = { baseMs: 1000, maxMs: 30_000 };

/** Connects over Socket Mode, and reconnects when the connection ends. */
export function createSocketConnection(options: ConnectionOptions): Connection {
  const { botToken, appToken, apiUrl, log, register } = options;
  let state: PlatformHealth = { state: "connecting" };
  const closing = new AbortController();
  let client: SocketClient | undefined;
  let closed: Promise<void> | undefined;
  const inFlight = new Set<Promise<unknown>>();

  /**
   * Bolt acknowledges an event before its listeners run, so a crash in between would lose it. Here the
   * acknowledgement follows them; if one throws, there is none and Slack delivers the event again.
   */
  function acknowledgeLast(app: App): App {
    const process = async (event: ReceiverEvent): Promise<void> => {
      const isEvent = (event.body as { type?: unknown }).type === "event_callback";
      // Slack delivers commands and clicks once: those that arrive before the socket is closed are still handled.
      if (isEvent) closing.signal.throwIfAborted();
      await app.processEvent(isEvent ? { ...event, ack: () => Promise.resolve() } : event);
      if (isEvent) await event.ack();
    };
    const processEvent = (event: ReceiverEvent): Promise<void> => {
      const work = process(event);
      const settled = Promise.allSettled([work]);
      inFlight.add(settled);
      void settled.then(() => inFlight.delete(settled));
      return work;
    };
    return { processEvent } as unknown as App;
  }

  async function whenHandled(): Promise<void> {
    while (inFlight.size > 0) await Promise.all(inFlight);
  }

  async function connect(socket: SocketClient): Promise<void> {
    // The client waits for `hello` without a timeout.
    const timer = setTimeout(() => void socket.disconnect(), helloTimeoutMs);
    try {
      await socket.start();
      state = { state: "ready" };
    } catch (error) {
      // A connection that ends before `hello` rejects with `undefined`.
      throw toParleyError(
        error ?? new Error("closed before hello"),
        "apps.connections.open",
        "SLACK_APP_TOKEN",
      );
    } finally {
      clearTimeout(timer);
    }
  }

  /** Replaces the client's own reconnection, where a failed attempt is an unhandled rejection. Never rejects. */
  async function reconnect(socket: SocketClient): Promise<void> {
    const delayMs = (error: unknown, attempt: number): number => {
      recordFailure(error);
      log.warn({ attempt, err: error }, "Slack reconnection failed");
      return backoffMs(attempt, reconnectDelay);
    };
    try {
      // Not inside the handler of the `disconnected` event.
      await sleep(0, closing.signal);
      await retry(() => connect(socket), { delayMs, signal: closing.signal });
      log.info({}, "reconnected to Slack");
    } catch (error) {
      log.debug({ err: error }, "Slack reconnection aborted");
    }
  }

  function recordFailure(error: unknown): void {
    const code = isParleyError(error) ? error.code : "internal";
    state = { state: code === "platform-unauthorized" ? "failed" : "connecting", detail: code };
  }

  async function open(): Promise<void> {
    // Imported here, so that a start without Slack does not load it.
    const { App, LogLevel, SocketModeReceiver, webApi } = await import("@slack/bolt");
    const logger = toBoltLogger(log, LogLevel.WARN);
    const clientOptions = {
      slackApiUrl: apiUrl,
      logger,
      retryConfig: { retries: 0 },
      rejectRateLimitedCalls: true,
      timeout: requestTimeoutMs,
    };
    const api = createSlackApi(new webApi.WebClient(botToken, clientOptions), log);
    const identity = await api.identify();
    closing.signal.throwIfAborted();
    const receiver = new SocketModeReceiver({
      appToken,
      logger,
      autoReconnectEnabled: false,
      // A copy: the client changes these options.
      installerOptions: { clientOptions: { ...clientOptions } },
      processEventErrorHandler: ({ error }) => {
        log.warn({ err: error }, "event not accepted; Slack will deliver it again");
        return Promise.resolve(false);
      },
    });
    const app = new App({
      receiver,
      authorize: () =>
        Promise.resolve({
          botToken,
          botId: identity.botId,
          botUserId: identity.userId,
          teamId: identity.teamId,
        }),
      // Otherwise a failing start is an unhandled rejection out of the constructor.
      deferInitialization: true,
      convoStore: false,
      clientOptions: { ...clientOptions },
      logger,
    });
    await app.init();
    // Rethrown, so that an event that a listener could not accept is not acknowledged.
    app.error(async (error) => {
      throw error;
    });
    register(app, api, identity);
    receiver.init(acknowledgeLast(app));
    const socket = receiver.client;
    client = socket;
    await connect(socket);
    if (closing.signal.aborted) await socket.disconnect();
    closing.signal.throwIfAborted();
    socket.on("disconnected", () => {
      if (closing.signal.aborted || state.state !== "ready") return;
      state = { state: "connecting" };
      void reconnect(socket);
    });
  }

  async function close(): Promise<void> {
    closing.abort(new ParleyError("stopping", "the connection to Slack is closing"));
    const handled = new AbortController();
    void whenHandled().then(() => handled.abort());
    await sleepUnlessAborted(maxClosingMs, handled.signal);
    await client?.disconnect();
    if (state.state === "ready") state = { state: "connecting", detail: "stopping" };
  }

  return {
    async open() {
      try {
        await open();
      } catch (error) {
        recordFailure(error);
        throw error;
      }
    },
    health: () => state,
    close() {
      // Once: the client does not resolve a second disconnection.
      closed ??= close();
      return closed;
    },
  };
}

/** The part of the Socket Mode client that Parley uses. */
interface SocketClient {
  start(): Promise<unknown>;
  disconnect(): Promise<void>;
  on(event: "disconnected", listener: () => void): unknown;
}

const secrets = /xox[a-z]-[\w-]+|xapp-[\w-]+|\?\S+/g;

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
