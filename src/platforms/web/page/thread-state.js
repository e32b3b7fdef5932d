import { translate } from "./words.js";
import { useEffect, useRef, useState } from "preact/hooks";

/** @typedef {import("../views.ts").ItemView} Item */
/** @typedef {import("../views.ts").Change} Change */
/** @typedef {import("../views.ts").SnapshotView} Snapshot */
/** @typedef {ReadonlyMap<string, Item>} ById */
/** @typedef {Snapshot & { byId: ById, isLoaded: boolean }} Thread */

/** The thread before its snapshot is loaded. @type {Thread} */
const emptyThread = { byId: new Map(), items: [], mayHaveMore: false, isLoaded: false };

/** Makes a thread from a snapshot. @param {Snapshot} snapshot */
export function fromSnapshot(snapshot) {
  /** @type {Map<string, Item>} */
  const byId = new Map();
  for (const item of snapshot.items) put(byId, item);
  return withItems({ ...emptyThread, ...snapshot, isLoaded: true }, byId);
}

/**
 * Applies a change. Returns `undefined` when a new snapshot is needed, as after a missed change.
 * @param {Thread} thread
 * @param {Change} change
 */
export function applyChange(thread, change) {
  const byId = new Map(thread.byId);
  if (change.kind === "again") return undefined;
  if (change.kind === "put") put(byId, change.item);
  if (change.kind === "drop") byId.delete(change.id);
  if (change.kind === "text") {
    const item = byId.get(change.id);
    if (item?.isStored) return thread;
    const field = change.isThought ? "thoughts" : "text";
    const before = item?.[field] ?? "";
    if (item === undefined || before.length !== change.at) return undefined;
    byId.set(item.id, { ...item, [field]: before + change.text });
  }
  return withItems(thread, byId);
}

/** The form with the highest rank counts: the latest attempt, then the record. @param {Item} item */
const rankOf = ({ attempt = 0, isStored }) => 2 * attempt + (isStored ? 1 : 0);

/** @param {Map<string, Item>} byId @param {Item} item */
function put(byId, item) {
  const before = byId.get(item.id);
  if (before === undefined || rankOf(before) <= rankOf(item)) byId.set(item.id, item);
}

/** @param {Thread} thread @param {ById} byId @returns {Thread} */
function withItems(thread, byId) {
  return { ...thread, byId, items: [...byId.values()].sort((one, other) => one.order - other.order) };
}

/** Whether an answer is still being made. @param {Item} item */
export function isRunning(item) {
  return item.state === "waiting" || item.state === "growing";
}

/** Returns the small print below an answer. @param {Item} item @returns {readonly string[]} */
export function noticesOf(item) {
  return item.isPrivate && !isRunning(item) ? [...item.notices, translate("page.private")] : item.notices;
}

/** @typedef {import("../views.ts").ListStateView} ListState */
/** @typedef {"connecting" | "open" | "lost"} Connection */

/** A hidden page disconnects after this time, since browsers allow six connections to one server. */
const hiddenMs = 30_000;
const maxBackoffMs = 10_000;

/**
 * Follows one conversation: a snapshot, then every change. It reconnects with exponential backoff.
 * @param {string} address
 * @param {object} listener
 * @param {(snapshot: Snapshot) => void} listener.snapshot
 * @param {(change: Change) => boolean} listener.change returns false to request a new snapshot
 * @param {(state: ListState) => void} listener.list
 * @param {(connection: Connection) => void} onConnection
 * @returns {() => void} ends it
 */
function follow(address, listener, onConnection) {
  /** @type {EventSource | undefined} */
  let source;
  let cursor = "";
  let failures = 0;
  const ended = new AbortController();
  const { signal } = ended;
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  let timer;

  function open() {
    clearTimeout(timer);
    source?.close();
    if (signal.aborted) return;
    source = new EventSource(cursor === "" ? address : `${address}&after=${cursor}`);
    source.addEventListener("open", () => {
      failures = 0;
      onConnection("open");
    });
    for (const [name, take] of Object.entries(listener))
      source.addEventListener(name, ({ data, lastEventId }) => {
        // A list has no id, and may come first.
        cursor = lastEventId || cursor;
        if (take(/** @type {never} */ (JSON.parse(/** @type {string} */ (data)))) !== false) return;
        cursor = "";
        open();
      });
    source.addEventListener("error", () => {
      onConnection(failures < 1 ? "connecting" : "lost");
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
      if (source?.readyState === EventSource.CLOSED) open();
    } else timer = setTimeout(() => source?.close(), hiddenMs);
  }

  document.addEventListener("visibilitychange", onVisibility, { signal });
  window.addEventListener("online", open, { signal });
  open();
  return () => {
    ended.abort();
    open();
  };
}

/**
 * Follows a conversation, and returns what is known of it. It is empty until its snapshot has come.
 * @param {string} conversationId
 * @param {number} maxMessages
 * @param {object} listener
 * @param {(change: Extract<Change, { kind: "opened" }>) => void} listener.onOpened a call opened another one
 * @param {() => void} listener.onGone it was deleted
 * @param {(change: Change, before: ById, after: ById) => void} listener.onChanged
 * @param {(state: ListState) => void} listener.onList
 * @param {(connection: Connection) => void} listener.onConnection
 */
export function useThread(conversationId, maxMessages, listener) {
  const [loaded, setLoaded] = useState({ id: conversationId, thread: emptyThread });
  const [connection, setConnection] = useState(/** @type {Connection} */ ("open"));
  const latest = useRef({ conversationId, listener });
  latest.current = { conversationId, listener };
  useEffect(() => {
    let newest = emptyThread;
    /** @param {Thread} next */
    const show = (next) => {
      newest = next;
      setLoaded({ id: conversationId, thread: next });
    };
    return follow(
      `/api/conversations/${conversationId}/events?max=${maxMessages}`,
      {
        snapshot: (snapshot) => show(fromSnapshot(snapshot)),
        change(change) {
          const { current } = latest;
          // Until it is closed, the connection of the previous conversation may still deliver changes.
          if (current.conversationId !== conversationId) return true;
          if (change.kind === "opened") current.listener.onOpened(change);
          else if (change.kind === "gone") current.listener.onGone();
          else {
            const before = newest;
            const next = applyChange(before, change);
            if (next === undefined) return false;
            show(next);
            current.listener.onChanged(change, before.byId, next.byId);
          }
          return true;
        },
        list: (state) => latest.current.listener.onList(state),
      },
      (state) => {
        setConnection(state);
        latest.current.listener.onConnection(state);
      },
    );
  }, [conversationId, maxMessages]);
  return { thread: loaded.id === conversationId ? loaded.thread : emptyThread, connection };
}
