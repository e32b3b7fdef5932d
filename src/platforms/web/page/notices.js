import { isRunning } from "./thread-state.js";
import { translate } from "./words.js";

/** @typedef {import("../views.ts").ItemView} Item */

/**
 * Returns the small print below an answer.
 * @param {Item} item
 * @returns {readonly string[]}
 */
export function noticesOf(item) {
  if (item.isPrivate !== true || isRunning(item)) return item.notices;
  return [...item.notices, translate("page.private")];
}
