/** @typedef {import("../views.ts").Change} Change */
/** @typedef {import("../views.ts").SnapshotView} Snapshot */
/** @typedef {"connecting" | "open" | "lost"} Connection */

/** A page out of sight gives its connection back: a browser has only six for one server. */
const hiddenMs = 30_000;
const longestWaitMs = 10_000;

/**
 * Follows one conversation: a snapshot, then every change, across reconnects and sleep.
 * @param {string} conversationId
 * @param {{ onSnapshot: (snapshot: Snapshot) => void, onChange: (change: Change) => boolean, onConnection: (connection: Connection) => void }} listener
 *   `onChange` answers false when the change does not fit: a new snapshot is fetched.
 * @param {number} maxMessages
 * @returns {{ close(): void }}
 */
export function followConversation(conversationId, listener, maxMessages) {
  /** @type {EventSource | undefined} */
  let source;
  let cursor = "";
  let tries = 0;
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
      tries = 0;
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
    source.addEventListener("error", () => {
      listener.onConnection(tries < 1 ? "connecting" : "lost");
      tries += 1;
      // The browser tries again by itself only while the server's answer was no refusal.
      source?.close();
      clearTimeout(timer);
      timer = setTimeout(open, Math.min(longestWaitMs, 250 * 2 ** Math.min(tries, 6)));
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
