import { translate } from "./words.js";

/** @typedef {import("./message.js").Image} Image */
/**
 * What is shown over the page.
 * @typedef {{ name: "settings" | "search" | "keys" } | { name: "picture", image: Image }} Dialog
 */
/**
 * What went wrong. `chat` is the title of the chat whose message was not sent, which the person had left.
 * @typedef {{ message: string, isOffline: boolean, chat?: string | undefined }} Problem
 */

/**
 * What the page shows beside what is said.
 * @typedef {object} PageState
 * @property {string} chat the id of the chat that is shown
 * @property {string} addressed the chat in the address when the page was opened, until it has a message.
 *   Without messages it does not exist
 * @property {number} maxMessages how many of its messages are loaded
 * @property {string} wantedItem the message that a search found, until it is shown
 * @property {"closed" | "open" | "left"} drawer the list in narrow windows. `left`: its own button closed it
 * @property {Dialog | undefined} dialog
 * @property {Problem | undefined} problem
 * @property {import("./composer.js").Prefill | undefined} prefill
 */
/**
 * @typedef {{ kind: "opened", chat: string, item?: string } | { kind: "sent" | "reconnected" | "found" }
 *   | { kind: "loaded", maxMessages: number } | { kind: "drawer", drawer: PageState["drawer"] }
 *   | { kind: "dialog", dialog: Dialog | undefined } | { kind: "failed", problem: Problem }
 *   | { kind: "prefilled", prefill: import("./composer.js").Prefill }} PageAction
 */

const firstMessages = 100;

/**
 * Returns the state of a page that was opened at a chat.
 * @param {{ chat: string, isAddressed: boolean }} at
 * @returns {PageState}
 */
export function newPage({ chat, isAddressed }) {
  return {
    chat,
    addressed: isAddressed ? chat : "",
    maxMessages: firstMessages,
    wantedItem: "",
    drawer: "closed",
    dialog: undefined,
    problem: undefined,
    prefill: undefined,
  };
}

/**
 * Returns the state of the page after something was done on it, or was heard.
 * @param {PageState} page
 * @param {PageAction} action
 * @returns {PageState}
 */
export function pageAfter(page, action) {
  switch (action.kind) {
    case "opened": {
      const shown =
        action.chat === page.chat
          ? page
          : { ...newPage({ ...action, isAddressed: false }), dialog: page.dialog };
      return { ...shown, drawer: "closed", addressed: page.addressed, wantedItem: action.item ?? "" };
    }
    case "sent":
      return { ...page, addressed: "" };
    case "loaded":
      return { ...page, maxMessages: action.maxMessages };
    case "found":
      return { ...page, wantedItem: "" };
    case "drawer":
      return { ...page, drawer: action.drawer };
    case "dialog":
      return { ...page, drawer: "closed", dialog: action.dialog };
    case "prefilled":
      return { ...page, prefill: action.prefill };
    case "failed":
      return { ...page, problem: action.problem };
    case "reconnected":
      return { ...page, problem: whenBack(page.problem) };
  }
}

/** Returns what is left of a problem when the connection is back. @param {Problem | undefined} problem */
function whenBack(problem) {
  if (problem?.isOffline !== true) return problem;
  return problem.chat === undefined
    ? undefined
    : { ...problem, message: translate("page.unsent"), isOffline: false };
}
