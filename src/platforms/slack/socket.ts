import type { SocketModeReceiver } from "@slack/bolt";
import { WebSocket } from "undici";
import type { Clock } from "../../core/clock.ts";
import { toParleyError } from "./errors.ts";
import { watchPings } from "./ping-watch.ts";

/** One connection of Socket Mode. */
export interface Socket {
  /** Resolves when Slack has greeted it. @throws ParleyError `platform-unauthorized`, `platform-unreachable` */
  open(): Promise<void>;
  /** Resolves when it is closed. */
  close(): Promise<void>;
}

/** What happens to an open socket. */
export interface SocketEvents {
  /** Slack will close it in some seconds. Until then it delivers, and takes acknowledgements. */
  ending(): void;
  /** Its pings are not answered; it is being closed. */
  silent(): void;
  /** It was closed, whoever closed it. */
  ended(): void;
}

/**
 * Options for the client of a socket: its own checks of pings never end one. That of its own pings compares wall-clock
 * times, that of Slack's pings fires when a paused process wakes, before it has read anything.
 * They are timers: 2^31 - 1 milliseconds is the longest.
 */
export const withoutPingChecks = { clientPingTimeout: 2 ** 31 - 1, serverPingTimeout: 2 ** 31 - 1 };

const helloTimeoutMs = 20_000;
/** Slack leaves TCP open for seconds after the close handshake, and the client waits for its end. */
const closeHandshakeMs = 100;

/** A socket that is used once: a new one replaces it. */
export function createSocket(
  client: SocketModeReceiver["client"],
  events: SocketEvents,
  clock: Clock,
): Socket {
  let isOpen = false;
  let closed: Promise<void> | undefined;
  let endWatch: (() => void) | undefined;

  /** The client would close the socket as soon as Slack says that it will, with acknowledgements in flight. */
  function keepUntilReplaced(): void {
    const handlers = client.listeners("ws_message");
    client.removeAllListeners("ws_message");
    client.on("ws_message", (data: unknown, isBinary: boolean) => {
      if (!isDisconnect(data)) for (const handle of handlers) handle(data, isBinary);
      else if (isOpen) events.ending();
      else void disconnect();
    });
  }

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

  return {
    async open() {
      keepUntilReplaced();
      // The client waits for `hello` without a timeout.
      const cancelTimer = clock.after(helloTimeoutMs, () => void disconnect());
      try {
        await client.start();
        isOpen = true;
      } catch (error) {
        // A connection that ends before `hello` rejects with `undefined`.
        const reason = error ?? new Error("closed before hello");
        throw toParleyError(reason, "apps.connections.open", "SLACK_APP_TOKEN");
      } finally {
        cancelTimer();
      }
      // Private, but nothing else says which pongs are its own.
      const webSocket: unknown = client.websocket?.["websocket"];
      if (webSocket instanceof WebSocket)
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
    },
    close() {
      closed ??= disconnect();
      return closed;
    },
  };
}

/** A message of Slack's in which it announces the end of the connection. */
function isDisconnect(data: unknown): boolean {
  if (typeof data !== "string" || data.length > 2000 || !data.includes("disconnect")) return false;
  try {
    return (JSON.parse(data) as { readonly type?: unknown }).type === "disconnect";
  } catch {
    return false;
  }
}
