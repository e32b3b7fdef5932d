import { subscribe, unsubscribe } from "node:diagnostics_channel";
import { ping, type WebSocket } from "undici";
import type { Clock } from "../../core/clock.ts";

/** Time between two pings, in milliseconds. */
const intervalMs = 1667;
/** Unanswered pings after which nothing is expected any more: 5 to 7 seconds. */
const maxUnanswered = 3;
/** What undici publishes of each pong. @see https://undici.nodejs.org/#/docs/api/DiagnosticsChannel */
const pongChannel = "undici:websocket:pong";

/**
 * Pings a WebSocket, and calls `onSilent` once when its pings are not answered. Unanswered pings are counted, and no clock
 * is read: neither a step of the wall clock nor a pause of this process ends a socket, as the check of Slack's client would.
 * @returns ends the watch
 */
export function watchPings(webSocket: WebSocket, onSilent: () => void, clock: Clock): () => void {
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
