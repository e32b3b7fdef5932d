import { translate } from "./words.js";
import { useEffect, useRef, useState } from "preact/hooks";

/** @typedef {import("../views.ts").ItemView} Item */
/** @typedef {import("../views.ts").Change} Change */
/** @typedef {import("../views.ts").SnapshotView} Snapshot */
/** @typedef {Snapshot & { isLoaded: boolean }} Thread */

/** The thread before its snapshot is loaded. @type {Thread} */
const emptyThread = { items: [], mayHaveMore: false, isLoaded: false };

/**
 * Makes a thread from a snapshot.
 * @param {Snapshot} snapshot
 * @returns {Thread}
 */
export function fromSnapshot(snapshot) {
  return { ...snapshot, isLoaded: true };
}

/**
 * Applies a change. Returns `undefined` when an earlier change is missing, so that a new snapshot is needed.
 * @param {Thread} thread
 * @param {Change} change
 * @returns {Thread | undefined}
 */
export function applyChange(thread, change) {
  switch (change.kind) {
    case "put":
      return { ...thread, items: put(thread.items, change) };
    case "drop":
      return { ...thread, items: thread.items.filter((item) => item.id !== change.id) };
    case "text": {
      const item = thread.items.find((other) => other.id === change.id);
      const before = change.isThought === true ? (item?.thoughts ?? "") : item?.text;
      if (item === undefined || before?.length !== change.at) return undefined;
      const text = before + change.text;
      /** @type {Item} */
      const grown = { ...item, ...(change.isThought === true ? { thoughts: text } : { text }) };
      return { ...thread, items: thread.items.map((other) => (other === item ? grown : other)) };
    }
    default:
      return thread;
  }
}

/**
 * @param {readonly Item[]} items
 * @param {Extract<Change, { kind: "put" }>} change
 * @returns {readonly Item[]}
 */
function put(items, { item, replaces, before }) {
  const index = items.findIndex((other) => other.id === item.id);
  if (index !== -1) {
    return items
      .map((other) => (other.id === item.id ? item : other))
      .filter((other) => other.id !== replaces);
  }
  const replaced = items.findIndex((other) => other.id === replaces);
  if (replaced !== -1) return items.with(replaced, item);
  const next = before === undefined ? -1 : items.findIndex((other) => other.id === before);
  return next === -1 ? [...items, item] : items.toSpliced(next, 0, item);
}

/**
 * Whether an answer is still being made.
 * @param {Item} item
 */
export function isRunning(item) {
  return item.state === "waiting" || item.state === "growing";
}

/**
 * Returns the small print below an answer.
 * @param {Item} item
 * @returns {readonly string[]}
 */
export function noticesOf(item) {
  if (item.isPrivate !== true || isRunning(item)) return item.notices;
  return [...item.notices, translate("page.private")];
}

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
function followConversation(conversationId, listener, maxMessages) {
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

/**
 * Follows a conversation, and returns what is known of it. It is empty until its snapshot has come.
 * @param {string} conversationId
 * @param {number} maxMessages
 * @param {object} listener
 * @param {(change: Extract<Change, { kind: "opened" }>) => void} listener.onOpened a call opened another one
 * @param {() => void} listener.onGone it was deleted
 * @param {(change: Change, before: Thread) => boolean} listener.onChanged returns false to request a new
 *   snapshot
 * @param {(state: ListState) => void} listener.onList
 * @param {(connection: Connection) => void} listener.onConnection
 */
export function useThread(conversationId, maxMessages, listener) {
  const [loaded, setLoaded] = useState({ id: conversationId, thread: emptyThread });
  const [connection, setConnection] = useState(/** @type {Connection} */ ("open"));
  const latest = useRef({ conversationId, listener });
  latest.current = { conversationId, listener };
  const newest = useRef(emptyThread);
  useEffect(() => {
    /** @param {Thread} next */
    const show = (next) => {
      newest.current = next;
      setLoaded({ id: conversationId, thread: next });
    };
    const following = followConversation(
      conversationId,
      {
        onSnapshot: (snapshot) => show(fromSnapshot(snapshot)),
        onChange(change) {
          // Until it is closed, the connection of the previous conversation may still deliver changes.
          if (latest.current.conversationId !== conversationId) return true;
          if (change.kind === "opened") latest.current.listener.onOpened(change);
          else if (change.kind === "gone") latest.current.listener.onGone();
          else {
            const before = newest.current;
            const next = applyChange(before, change);
            if (next === undefined) return false;
            show(next);
            return latest.current.listener.onChanged(change, before);
          }
          return true;
        },
        onList: (state) => latest.current.listener.onList(state),
        onConnection(state) {
          setConnection(state);
          latest.current.listener.onConnection(state);
        },
      },
      maxMessages,
    );
    return () => following.close();
  }, [conversationId, maxMessages]);
  return { thread: loaded.id === conversationId ? loaded.thread : emptyThread, connection };
}
