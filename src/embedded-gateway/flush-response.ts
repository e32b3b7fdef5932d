import type { ServerResponse } from "node:http";

/**
 * Resolves when the whole answer has reached the socket or the client has disconnected. A client that reads nothing
 * for `stalledMs` is disconnected: it would keep the connection open and block a graceful stop.
 */
export async function flushResponse(response: ServerResponse, stalledMs: number): Promise<void> {
  if (response.writableFinished || response.destroyed) return;
  let unreadBytes = response.socket?.writableLength ?? 0;
  const timer = setInterval(() => {
    const bytes = response.socket?.writableLength ?? 0;
    if (bytes >= unreadBytes) response.destroy();
    unreadBytes = bytes;
  }, stalledMs);
  await new Promise((resolve) => response.once("close", resolve));
  clearInterval(timer);
}
