import type { ServerResponse } from "node:http";
import { createSseWriter } from "../../support/sse-writer.ts";
import type { Feed } from "./feed.ts";
import { commonHeaders, inertPolicy } from "./http.ts";
import type { ListStateView, SnapshotView } from "./views.ts";

/** What one person's list of conversations shows besides what is stored, and of the gateway. */
export interface ListFeed {
  state(): Omit<ListStateView, "isChanged">;
  /** `isStored`: what is stored has changed. Returns what ends it. */
  listen(listener: (isStored: boolean) => void): () => void;
}

/** Delay before the browser reconnects. */
const retryMs = 1000;

/**
 * Server-sent events of one conversation: the changes after `cursor` or else a snapshot, then every new change. Beside
 * them what the list of all conversations shows: browsers allow six connections to one server, so that a page has one.
 * Resolves when the page is connected; the stream ends when the page disconnects or `signal` aborts.
 * @throws ParleyError `store-unavailable`, before anything is sent
 */
export async function sendEvents(
  response: ServerResponse,
  options: {
    readonly feed: Feed;
    readonly list: ListFeed;
    /** Id of the last change the page has. `undefined`, or one that is too old: a snapshot is sent. */
    readonly cursor: string | undefined;
    readonly signal: AbortSignal;
    /** Reads the history. The returned function merges it with live items synchronously, so that no change is lost. */
    readHistory(): Promise<() => SnapshotView>;
  },
): Promise<void> {
  const { feed, signal } = options;
  const missed = options.cursor === undefined ? undefined : feed.since(options.cursor);
  const snapshot = missed === undefined ? await options.readHistory() : undefined;

  // The page reconnects with its cursor after it is disconnected for reading too slowly.
  const writer = createSseWriter(response, {
    headers: { ...commonHeaders, "content-security-policy": inertPolicy, "cache-control": "no-store" },
    retryMs,
  });
  const send = (id: string, event: "snapshot" | "change", data: unknown): void =>
    writer.push(JSON.stringify(data), { id, event });
  if (snapshot !== undefined) send(feed.cursor, "snapshot", snapshot());
  for (const { id, change } of missed ?? []) send(id, "change", change);

  // Without an id, so that it does not move the cursor of the conversation.
  const sendList = (isChanged: boolean): void =>
    writer.push(JSON.stringify({ ...options.list.state(), isChanged } satisfies ListStateView), {
      event: "list",
    });
  sendList(false);
  const listening = [
    feed.listen(({ id, change }) => send(id, "change", change)),
    options.list.listen(sendList),
  ];
  const stopListening = (): void => {
    for (const stop of listening) stop();
  };
  const end = (): void => {
    stopListening();
    writer.end();
  };
  signal.addEventListener("abort", end, { once: true });
  response.once("close", () => {
    stopListening();
    signal.removeEventListener("abort", end);
  });
  if (signal.aborted) end();
}
