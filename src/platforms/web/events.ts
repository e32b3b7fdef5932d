import type { ServerResponse } from "node:http";
import type { Feed } from "./feed.ts";
import { commonHeaders, inertPolicy } from "./http.ts";
import type { SnapshotView } from "./views.ts";

/** Proxies and browsers give up on silence; a comment keeps the line open. */
const heartbeatMs = 15_000;
/** A page that does not read is hung up on rather than kept in memory; it comes back with what it has seen. */
const maxBufferedBytes = 4 * 1024 * 1024;

/**
 * Server-sent events of one conversation: what came after `cursor`, else a snapshot, then every change.
 * Resolves once the page is connected; the stream ends when the page goes away or `signal` aborts.
 */
export async function sendEvents(
  response: ServerResponse,
  options: {
    readonly feed: Feed;
    readonly cursor: string | undefined;
    readonly signal: AbortSignal;
    /** Reads the history. The answer joins it with what is live, at once, so that no change falls between. */
    readHistory(): Promise<() => SnapshotView>;
  },
): Promise<void> {
  const { feed, signal } = options;
  const missed = options.cursor === undefined ? undefined : feed.since(options.cursor);
  const snapshot = missed === undefined ? await options.readHistory() : undefined;

  response.writeHead(200, {
    ...commonHeaders,
    "Content-Security-Policy": inertPolicy,
    "Content-Type": "text/event-stream; charset=utf-8",
    "Cache-Control": "no-store",
    "X-Accel-Buffering": "no",
  });
  response.write("retry: 1000\n\n");
  if (snapshot !== undefined) write(response, feed.cursor, "snapshot", snapshot());
  for (const { id, change } of missed ?? []) write(response, id, "change", change);

  const stop = feed.listen(({ id, change }) => {
    write(response, id, "change", change);
    if (response.writableLength > maxBufferedBytes) response.destroy();
  });
  const heartbeat = setInterval(() => response.write(": still here\n\n"), heartbeatMs);
  const end = () => response.end();
  signal.addEventListener("abort", end, { once: true });
  response.once("close", () => {
    stop();
    clearInterval(heartbeat);
    signal.removeEventListener("abort", end);
  });
  if (signal.aborted) response.end();
}

function write(response: ServerResponse, id: string, event: string, data: unknown): void {
  response.write(`id: ${id}\nevent: ${event}\ndata: ${JSON.stringify(data)}\n\n`);
}
