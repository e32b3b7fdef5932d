import { translate } from "./words.js";

/** @typedef {import("../views.ts").ItemView} Item */
/** @typedef {import("../views.ts").Change} Change */
/** @typedef {import("../views.ts").SnapshotView} Snapshot */
/** @typedef {{ items: readonly Item[], mayHaveMore: boolean, isLoaded: boolean }} Thread */

/** The thread before its snapshot is loaded. @type {Thread} */
export const emptyThread = { items: [], mayHaveMore: false, isLoaded: false };

/**
 * Makes a thread from a snapshot.
 * @param {Snapshot} snapshot
 * @returns {Thread}
 */
export function fromSnapshot(snapshot) {
  return { items: snapshot.items, mayHaveMore: snapshot.mayHaveMore, isLoaded: true };
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
      if (item === undefined || item.text.length !== change.at) return undefined;
      /** @type {Item} */
      const grown = { ...item, text: item.text + change.text };
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
