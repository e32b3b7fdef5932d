import type { App, Logger, LogLevel, ReceiverEvent } from "@slack/bolt";
import { isParleyError, ParleyError } from "../../core/errors.ts";
import type { Log } from "../../core/telemetry.ts";
import type { PlatformHealth } from "../../core/platform.ts";
import { toParleyError } from "./errors.ts";
import { createSlackApi, type Identity, type SlackApi } from "./web-api.ts";

export interface ConnectionOptions {
  readonly botToken: string;
  readonly appToken: string;
  readonly apiUrl: string;
  readonly log: Log;
  /** Registers the listeners; called once, before anything is delivered. */
  readonly register: (app: App, api: SlackApi, identity: Identity) => void;
}

/** How events reach the bot. Socket Mode is one way; an HTTP endpoint will be another. */
export interface Connection {
  /** @throws ParleyError `platform-unauthorized`, `platform-unreachable` */
  open(): Promise<void>;
  health(): PlatformHealth;
  /** Takes nothing more, then closes; resolves when the socket is closed. */
  close(): Promise<void>;
}

/** A call that hangs must not hold up a reply for ever, and none is repeated by the client: posts would double. */
const requestTimeoutMs = 20_000;
const helloTimeoutMs = 20_000;
const maxReconnectDelayMs = 30_000;

/** Connects over Socket Mode, and again whenever the connection ends. */
export function createSocketConnection(options: ConnectionOptions): Connection {
  const { botToken, appToken, apiUrl, log, register } = options;
  let state: PlatformHealth = { state: "connecting" };
  let isClosing = false;
  let client: SocketClient | undefined;
  let wakeUp: (() => void) | undefined;
  const inHand = new Set<Promise<void>>();

  /**
   * Bolt acknowledges an event before its listeners run, and a crash in between would lose it. Here the
   * acknowledgement waits for them; where one throws there is none, and Slack delivers the event again.
   */
  function acknowledgeLast(app: App): App {
    const process = async (event: ReceiverEvent): Promise<void> => {
      if (isClosing) throw stopping();
      const isEvent = (event.body as { type?: unknown }).type === "event_callback";
      await app.processEvent(isEvent ? { ...event, ack: () => Promise.resolve() } : event);
      if (isEvent) await event.ack();
    };
    const processEvent = (event: ReceiverEvent): Promise<void> => {
      const work = process(event);
      const settled = work.then(
        () => undefined,
        () => undefined,
      );
      inHand.add(settled);
      void settled.then(() => inHand.delete(settled));
      return work;
    };
    return { processEvent } as unknown as App;
  }

  async function connect(socket: SocketClient): Promise<void> {
    // A socket that is accepted and then says nothing would be waited for without end.
    const timer = setTimeout(() => void socket.disconnect(), helloTimeoutMs);
    try {
      await socket.start();
      state = { state: "ready" };
    } catch (error) {
      // A connection that ends before Slack has said hello rejects with nothing at all.
      throw toParleyError(
        error ?? new Error("closed before hello"),
        "apps.connections.open",
        "SLACK_APP_TOKEN",
      );
    } finally {
      clearTimeout(timer);
    }
  }

  /** The client's own reconnection lets a failed attempt become an unhandled rejection; this one goes on. */
  async function reconnect(socket: SocketClient): Promise<void> {
    for (let attempt = 0; ; attempt += 1) {
      await pause(attempt === 0 ? 0 : Math.min(maxReconnectDelayMs, 500 * 2 ** attempt));
      if (isClosing) return;
      try {
        await connect(socket);
        log.info({ attempt }, "connected to Slack again");
        return;
      } catch (error) {
        noteFailure(error);
        log.warn({ attempt, err: error }, "Slack could not be reached");
      }
    }
  }

  function noteFailure(error: unknown): void {
    const code = isParleyError(error) ? error.code : "internal";
    state = { state: code === "platform-unauthorized" ? "failed" : "connecting", detail: code };
  }

  async function pause(ms: number): Promise<void> {
    await new Promise<void>((resolve) => {
      const timer = setTimeout(resolve, ms);
      wakeUp = () => {
        clearTimeout(timer);
        resolve();
      };
    });
  }

  async function open(): Promise<void> {
    // Loaded here: a start without Slack does not pay for it.
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
    if (isClosing) throw stopping();
    const receiver = new SocketModeReceiver({
      appToken,
      logger,
      autoReconnectEnabled: false,
      // The client writes into the options it is given.
      installerOptions: { clientOptions: { ...clientOptions } },
      processEventErrorHandler: ({ error }) => {
        log.warn({ err: error }, "an event was not accepted; Slack delivers it again");
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
      // A failing start is to reject here, not in a constructor's promise that nobody holds.
      deferInitialization: true,
      convoStore: false,
      clientOptions: { ...clientOptions },
      logger,
    });
    await app.init();
    // Rethrown, so that what a listener could not accept is not acknowledged.
    app.error(async (error) => {
      throw error;
    });
    register(app, api, identity);
    receiver.init(acknowledgeLast(app));
    const socket = receiver.client;
    client = socket;
    await connect(socket);
    if (isClosing) {
      await socket.disconnect();
      throw stopping();
    }
    socket.on("disconnected", () => {
      if (isClosing || state.state !== "ready") return;
      state = { state: "connecting" };
      void reconnect(socket);
    });
  }

  return {
    async open() {
      try {
        await open();
      } catch (error) {
        noteFailure(error);
        throw error;
      }
    },
    health: () => state,
    async close() {
      isClosing = true;
      wakeUp?.();
      await Promise.all(inHand);
      await client?.disconnect();
    },
  };
}

const stopping = () => new ParleyError("stopping", "the connection to Slack is closing");

/** The part of the Socket Mode client that is used. */
interface SocketClient {
  start(): Promise<unknown>;
  disconnect(): Promise<void>;
  on(event: "disconnected", listener: () => void): unknown;
}

const secrets = /xox[a-z]-[\w-]+|xapp-[\w-]+|\?\S+/g;

/** Bolt's log lines in ours. Its debug lines hold payloads and are dropped. */
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
