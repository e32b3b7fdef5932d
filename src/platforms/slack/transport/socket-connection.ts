import { SocketModeReceiver } from "@slack/bolt";
import { ParleyError } from "../../../core/errors.ts";
import { adoptedProxies, createDispatcher } from "../../../support/proxy.ts";
import { backoffMs, backoffs, retry } from "../../../support/retry.ts";
import { toFailedHealth, type Connection, type ConnectionOptions } from "./connection.ts";
import type { DurableApp } from "./durable-app.ts";
import { toParleyError } from "../errors.ts";

interface SocketConnectionOptions extends ConnectionOptions {
  readonly appToken: string;
}

/**
 * Slack ends a connection some hours after it was opened, and the next one is open seconds later. Two that
 * were opened so far apart do not end at once, and Slack delivers over the other one meanwhile.
 */
const secondAfterMs = 10 * 60_000;
const helloTimeoutMs = 20_000;
/**
 * Slack leaves TCP open for seconds after the close handshake, and the client waits for its end. Nothing is
 * delivered meanwhile if this is the only connection.
 */
const closeHandshakeMs = 100;

/** Connects over Socket Mode, by two of Bolt's receivers on one app. */
export function createSocketConnection(options: SocketConnectionOptions): Connection {
  const { clock, createApp } = options;
  const closing = new AbortController();
  const [first, second] = [createSocket(options, closing.signal), createSocket(options, closing.signal)];
  let cancelSecond: (() => void) | undefined;
  let app: DurableApp | undefined;
  /** This is why the app could not be made. */
  let failure: unknown;
  let closed: Promise<void> | undefined;

  async function close(): Promise<void> {
    closing.abort(new ParleyError("stopping", "the connection to Slack is closing"));
    cancelSecond?.();
    // Only what Slack delivers once needs its acknowledgement. Events that are in flight are known when they
    // come again.
    app?.refuseEvents();
    await app?.whenCallsHandled();
    await Promise.all([first.close(), second.close()]);
    await app?.whenHandled();
  }

  return {
    async open() {
      try {
        app = await createApp(first.receiver);
      } catch (error) {
        failure = error;
        throw error;
      }
      second.receiver.init(app);
      await first.open();
      cancelSecond = clock.after(secondAfterMs, () => void second.reopen(), { keepsAlive: false });
    },
    health() {
      const { aborted: isClosing } = closing.signal;
      if (!isClosing && (first.isOpen() || second.isOpen())) return { state: "ready" };
      const error = failure ?? first.failure() ?? second.failure();
      if (error !== undefined) return toFailedHealth(error);
      return { state: "connecting", ...(isClosing ? { detail: "stopping" } : {}) };
    },
    close: () => (closed ??= close()),
  };
}

/**
 * Makes one connection of Bolt's receiver, which pings it. The client's own reconnection ends with the first
 * call of `apps.connections.open` that fails.
 */
function createSocket({ appToken, bolt, clock, log }: SocketConnectionOptions, closing: AbortSignal) {
  let isOpen = false;
  let failure: unknown;
  const receiver = new SocketModeReceiver({
    appToken,
    logger: bolt.logger,
    autoReconnectEnabled: false,
    // Without one, the client connects directly, also where this process has a proxy.
    dispatcher: adoptedProxies() === undefined ? undefined : createDispatcher({ allowH2: false }),
    installerOptions: { clientOptions: bolt.clientOptions() },
    async processEventErrorHandler({ error }) {
      log.warn({ err: error }, "event not accepted; Slack will deliver it again");
      return false;
    },
  });
  const { client } = receiver;
  let cancelEnd: (() => void) | undefined;
  client.on("ws_message", (data: unknown) => {
    // The client has closed it when this is called.
    if (isFarewell(data)) cancelEnd = clock.after(closeHandshakeMs, () => void client.disconnect());
  });
  client.on("disconnected", () => {
    cancelEnd?.();
    if (isOpen) void reopen();
    isOpen = false;
  });

  /**
   * Resolves when Slack has greeted it. From then on it is opened again whenever it ends.
   * @throws ParleyError `platform-unauthorized`, `platform-unreachable`
   */
  async function open(): Promise<void> {
    // The client waits for `hello` without a timeout.
    const cancelTimer = clock.after(helloTimeoutMs, () => void close());
    try {
      await client.start();
    } catch (error) {
      // A connection that ends before `hello` rejects with `undefined`.
      const reason = error ?? new Error("closed before hello");
      failure = toParleyError(reason, "apps.connections.open", "SLACK_APP_TOKEN");
      throw failure;
    } finally {
      cancelTimer();
    }
    if (closing.aborted) await close();
    closing.throwIfAborted();
    [isOpen, failure] = [true, undefined];
  }

  /** Opens it however often that takes. It never rejects. */
  async function reopen(): Promise<void> {
    const delayMs = (error: unknown, attempt: number): number => {
      log.warn({ attempt, err: error }, "Slack reconnection failed");
      return backoffMs(attempt, backoffs.outage);
    };
    try {
      // A socket must not be opened inside of the handler of the client's event.
      await clock.sleep(0, closing);
      await retry(open, { delayMs, signal: closing, clock });
      log.info({}, "reconnected to Slack");
    } catch (error) {
      log.debug({ err: error }, "Slack reconnection aborted");
    }
  }

  async function close(): Promise<void> {
    const disconnected = client.disconnect();
    // A second call gives up waiting for TCP.
    const cancelTimer = clock.after(closeHandshakeMs, () => void client.disconnect());
    try {
      await disconnected;
    } finally {
      cancelTimer();
    }
  }

  return { receiver, isOpen: () => isOpen, failure: () => failure, open, reopen, close };
}

/** Whether Slack says by this message that it ends the connection. */
function isFarewell(data: unknown): boolean {
  if (typeof data !== "string" || !/"type"\s*:\s*"disconnect"/.test(data)) return false;
  return (JSON.parse(data) as { readonly type?: unknown }).type === "disconnect";
}
