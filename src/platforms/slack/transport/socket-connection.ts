import { subscribe, unsubscribe } from "node:diagnostics_channel";
import type { Receiver, ReceiverEvent } from "@slack/bolt";
import { SocketModeClient } from "@slack/socket-mode";
import { ping, WebSocket } from "undici";
import type { Clock } from "../../../core/clock.ts";
import { ParleyError } from "../../../core/errors.ts";
import type { PlatformHealth } from "../../../core/platform.ts";
import { backoffMs, retry } from "../../../support/retry.ts";
import { toFailedHealth, type Connection, type ConnectionOptions } from "./connection.ts";
import type { DurableApp } from "./durable-app.ts";
import { toParleyError } from "../errors.ts";

interface SocketConnectionOptions extends ConnectionOptions {
  readonly appToken: string;
}

/** Slack closes a connection about ten seconds after its warning. */
const maxEndingMs = 30_000;
const reconnectDelay = { baseMs: 1000, maxMs: 30_000 };

/** Connects over Socket Mode. When Slack announces the end of a connection, another one is open before it. */
export function createSocketConnection(options: SocketConnectionOptions): Connection {
  const { appToken, bolt, clock, log, createApp } = options;
  let state: PlatformHealth = { state: "connecting" };
  const closing = new AbortController();
  const sockets = new Set<Socket>();
  const ending = new WeakSet<Socket>();
  let current: Socket | undefined;
  let replacing: Promise<void> | undefined;
  let closed: Promise<void> | undefined;
  let app: DurableApp | undefined;

  /**
   * Opens a socket beside the current one, which Slack is going to close, or after it. Without a connection
   * Slack tells people at once that commands and buttons do not work. It never rejects.
   */
  async function replace(): Promise<void> {
    const delayMs = (error: unknown, attempt: number): number => {
      if (current === undefined) recordFailure(error);
      log.warn({ attempt, err: error }, "Slack reconnection failed");
      return backoffMs(attempt, reconnectDelay);
    };
    try {
      // A socket must not be opened inside of the handler of the client's event.
      await clock.sleep(0, closing.signal);
      const old = current;
      await retry(() => openSocket(), { delayMs, signal: closing.signal, clock });
      log.info({}, "reconnected to Slack");
      // Slack ends the old socket. Whoever closes it first may lose what the other side is just sending.
      if (old !== undefined) clock.after(maxEndingMs, () => void old.close(), { keepsAlive: false });
    } catch (error) {
      log.debug({ err: error }, "Slack reconnection aborted");
    }
  }

  function startReplacing(): void {
    if (closing.signal.aborted) return;
    replacing ??= replace().finally(() => {
      replacing = undefined;
      // The new socket may be lost already.
      if (current === undefined || ending.has(current)) startReplacing();
    });
  }

  async function openSocket(): Promise<void> {
    const socket: Socket = await connect(
      createClient(),
      {
        ending() {
          ending.add(socket);
          if (socket === current) startReplacing();
        },
        silent: () => log.warn({}, "Slack does not answer pings; the connection is replaced"),
        ended() {
          sockets.delete(socket);
          if (socket !== current) return;
          current = undefined;
          if (!closing.signal.aborted) state = { state: "connecting" };
          startReplacing();
        },
      },
      clock,
    );
    sockets.add(socket);
    if (closing.signal.aborted) await socket.close();
    closing.signal.throwIfAborted();
    current = socket;
    state = { state: "ready" };
  }

  function recordFailure(error: unknown): void {
    state = toFailedHealth(error);
  }

  function createClient(): ReplaceableClient {
    const client = new ReplaceableClient({
      appToken,
      logger: bolt.logger,
      autoReconnectEnabled: false,
      ...withoutPingChecks,
      clientOptions: bolt.clientOptions(),
    });
    client.on("slack_event", (envelope: Envelope) => void deliver(envelope));
    return client;
  }

  async function deliver({
    body,
    ack,
    retry_num: retryNum,
    retry_reason: retryReason,
  }: Envelope): Promise<void> {
    try {
      await app?.processEvent({
        body,
        ack,
        ...(retryNum === undefined ? {} : { retryNum }),
        ...(retryReason === undefined ? {} : { retryReason }),
      });
    } catch (error) {
      log.warn({ err: error }, "event not accepted; Slack will deliver it again");
    }
  }

  async function close(): Promise<void> {
    closing.abort(new ParleyError("stopping", "the connection to Slack is closing"));
    // Only what Slack delivers once needs its acknowledgement. Events that are in flight are known when they
    // come again.
    app?.refuseEvents();
    await app?.whenCallsHandled();
    await Promise.all([...sockets].map((socket) => socket.close()));
    await app?.whenHandled();
    if (state.state === "ready") state = { state: "connecting", detail: "stopping" };
  }

  /** This receiver stands in for Bolt's own, which makes its one client itself. */
  const receiver: Receiver = {
    init() {},
    async start() {
      closing.signal.throwIfAborted();
      await openSocket();
    },
    stop: () => close(),
  };

  return {
    async open() {
      try {
        app = await createApp(receiver);
        await app.start();
      } catch (error) {
        recordFailure(error);
        throw error;
      }
    },
    health: () => state,
    close() {
      // The client does not resolve a second disconnection, so that it is closed once.
      closed ??= close();
      return closed;
    },
  };
}

interface Socket {
  close(): Promise<void>;
}

interface SocketEvents {
  /** Slack will close the socket in some seconds. Until then it delivers, and takes acknowledgements. */
  ending(): void;
  /** The socket's pings are not answered, and it is being closed. */
  silent(): void;
  ended(): void;
}

/**
 * These options keep the client's own checks of pings from ending a socket. The check of its own pings
 * compares wall-clock times, and the check of Slack's pings fires when a paused process wakes, before it has
 * read anything. Both are timers, whose longest time is 2^31 - 1 milliseconds.
 */
const withoutPingChecks = { clientPingTimeout: 2 ** 31 - 1, serverPingTimeout: 2 ** 31 - 1 };

/** Slack's client emits this for everything that Slack delivers. */
interface Envelope {
  readonly body: ReceiverEvent["body"];
  readonly ack: ReceiverEvent["ack"];
  readonly retry_num?: number;
  readonly retry_reason?: string;
}

/**
 * This client emits `ending` when Slack announces the end of the connection. Slack's own client would close
 * the socket then, with acknowledgements in flight.
 */
class ReplaceableClient extends SocketModeClient {
  protected override async onWebSocketMessage(data: string | ArrayBuffer, isBinary: boolean): Promise<void> {
    if (isDisconnect(data)) this.emit("ending");
    else await super.onWebSocketMessage(data, isBinary);
  }
}

const helloTimeoutMs = 20_000;
/** Slack leaves TCP open for seconds after the close handshake, and the client waits for its end. */
const closeHandshakeMs = 100;

/**
 * Opens a socket that is used once, since a new one replaces it. It resolves when Slack has greeted it.
 * @throws ParleyError `platform-unauthorized`, `platform-unreachable`
 */
async function connect(client: ReplaceableClient, events: SocketEvents, clock: Clock): Promise<Socket> {
  let isOpen = false;
  let closed: Promise<void> | undefined;
  let endWatch: (() => void) | undefined;

  async function disconnect(): Promise<void> {
    endWatch?.();
    const disconnected = client.disconnect();
    // A second call gives up waiting for TCP.
    const cancelTimer = clock.after(closeHandshakeMs, () => void client.disconnect());
    try {
      await disconnected;
    } finally {
      cancelTimer();
    }
  }

  client.on("ending", () => {
    if (isOpen) events.ending();
    else void disconnect();
  });
  const findWebSocket = watchForWebSocket(client);
  // The client waits for `hello` without a timeout.
  const cancelTimer = clock.after(helloTimeoutMs, () => void disconnect());
  let webSocket: WebSocket | undefined;
  try {
    await client.start();
    isOpen = true;
  } catch (error) {
    // A connection that ends before `hello` rejects with `undefined`.
    const reason = error ?? new Error("closed before hello");
    throw toParleyError(reason, "apps.connections.open", "SLACK_APP_TOKEN");
  } finally {
    cancelTimer();
    webSocket = findWebSocket();
  }
  if (webSocket !== undefined)
    endWatch = watchPings(
      webSocket,
      () => {
        events.silent();
        void disconnect();
      },
      clock,
    );
  client.once("disconnected", () => {
    endWatch?.();
    events.ended();
  });
  return { close: () => (closed ??= disconnect()) };
}

/** Returns whether this is a message in which Slack announces the end of the connection. */
function isDisconnect(data: unknown): boolean {
  if (typeof data !== "string" || data.length > 2000 || !data.includes("disconnect")) return false;
  try {
    return (JSON.parse(data) as { readonly type?: unknown }).type === "disconnect";
  } catch {
    // Slack's client reports what is not one of Slack's messages.
    return false;
  }
}

/**
 * The package undici publishes each WebSocket that opens here.
 * @see https://undici.nodejs.org/#/docs/api/DiagnosticsChannel lists the channels.
 */
const openChannel = "undici:websocket:open";

/**
 * Finds the WebSocket that a client opens next, without which its pings cannot be told from others.
 * @returns a function that ends the search and returns that WebSocket
 */
function watchForWebSocket(client: SocketModeClient): () => WebSocket | undefined {
  let url: string | undefined;
  let found: WebSocket | undefined;

  function onOpen(message: unknown): void {
    const { websocket } = message as { readonly websocket?: unknown };
    if (websocket instanceof WebSocket && websocket.url === url) found = websocket;
  }

  subscribe(openChannel, onOpen);
  // Each connection has a URL of its own, with a ticket.
  client.once("authenticated", (opened: { readonly url?: string }) => {
    url = opened.url === undefined ? undefined : new URL(opened.url).href;
  });
  return () => {
    unsubscribe(openChannel, onOpen);
    return found;
  };
}

const intervalMs = 1667;
/** After so many unanswered pings, which is 5 to 7 seconds, nothing is expected any more. */
const maxUnanswered = 3;
const pongChannel = "undici:websocket:pong";

/**
 * Pings a WebSocket, and calls `onSilent` once when its pings are not answered. Unanswered pings are counted,
 * and no clock is read: neither a step of the wall clock nor a pause of this process ends a socket, as the
 * check of Slack's client would.
 * @returns a function that ends the watch
 */
function watchPings(webSocket: WebSocket, onSilent: () => void, clock: Clock): () => void {
  let unanswered = 0;

  function onPong(message: unknown): void {
    if ((message as { readonly websocket?: unknown }).websocket === webSocket) unanswered = 0;
  }

  function end(): void {
    cancelTimer();
    unsubscribe(pongChannel, onPong);
  }

  const cancelTimer = clock.every(intervalMs, () => {
    if (unanswered < maxUnanswered) {
      unanswered += 1;
      ping(webSocket);
      return;
    }
    end();
    onSilent();
  });
  subscribe(pongChannel, onPong);
  return end;
}
