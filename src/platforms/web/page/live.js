/** @typedef {import("../views.ts").Change} Change */
/** @typedef {import("../views.ts").SnapshotView} Snapshot */
/** @typedef {import("../views.ts").ListStateView} ListState */
/** @typedef {"connecting" | "open" | "lost"} Connection */

/** A hidden page disconnects after this time, since browsers allow six connections to one server. */
const hiddenMs = 30_000;
const maxBackoffMs = 10_000;

/**
 * Follows one conversation: a snapshot, then every change. It reconnects with exponential backoff.
 * @param {string} conversationId
 * @param {{ onSnapshot: (snapshot: Snapshot) => void, onChange: (change: Change) => boolean, onList: (state:
 *   ListState) => void, onConnection: (connection: Connection) => void }} listener `onChange` returns false
 *   to request a new snapshot
 * @param {number} maxMessages
 * @returns {{ close(): void }}
 */
export function followConversation(conversationId, listener, maxMessages) {
  /** @type {EventSource | undefined} */
  let source;
  let cursor = "";
  let failures = 0;
  let isClosed = false;
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  let timer;

  function open() {
    clearTimeout(timer);
    source?.close();
    if (isClosed) return;
    const after = cursor === "" ? "" : `&after=${cursor}`;
    source = new EventSource(`/api/conversations/${conversationId}/events?max=${maxMessages}${after}`);
    source.addEventListener("open", () => {
      failures = 0;
      listener.onConnection("open");
    });
    source.addEventListener("snapshot", (event) => {
      cursor = event.lastEventId;
      listener.onSnapshot(/** @type {Snapshot} */ (JSON.parse(/** @type {string} */ (event.data))));
    });
    source.addEventListener("change", (event) => {
      cursor = event.lastEventId;
      if (listener.onChange(/** @type {Change} */ (JSON.parse(/** @type {string} */ (event.data))))) return;
      cursor = "";
      open();
    });
    source.addEventListener("list", (event) => {
      listener.onList(/** @type {ListState} */ (JSON.parse(/** @type {string} */ (event.data))));
    });
    source.addEventListener("error", () => {
      listener.onConnection(failures < 1 ? "connecting" : "lost");
      failures += 1;
      // The browser reconnects by itself only after network errors, not after an error status.
      source?.close();
      clearTimeout(timer);
      timer = setTimeout(open, Math.min(maxBackoffMs, 250 * 2 ** Math.min(failures, 6)));
    });
  }

  function onVisibility() {
    clearTimeout(timer);
    if (document.visibilityState === "visible") {
      if (source === undefined || source.readyState === EventSource.CLOSED) open();
      return;
    }
    timer = setTimeout(() => source?.close(), hiddenMs);
  }

  document.addEventListener("visibilitychange", onVisibility);
  window.addEventListener("online", open);
  open();
  return {
    close() {
      isClosed = true;
      clearTimeout(timer);
      source?.close();
      document.removeEventListener("visibilitychange", onVisibility);
      window.removeEventListener("online", open);
    },
  };
}
