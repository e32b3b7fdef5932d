import { moveFiles } from "./attachments.js";
import { makeId } from "./dom.js";

/**
 * What a person types belongs to its chat and its window: it is kept by both, and no window erases what
 * another one shows.
 */

/** The draft key of a chat that has no message yet. */
const newChat = "new";
/** Past this number the oldest draft goes. */
const maxDrafts = 50;
/** A draft that has not changed for this long is one of a window that is gone. */
const abandonedMs = 24 * 60 * 60 * 1000;

/** How long another window may take to say that it has a name, in milliseconds. */
const answerMs = 80;
const windows = new BroadcastChannel("windows");
/** This window's name in the keys of its drafts. A reload keeps it. */
const windowId = await nameWindow();
windows.addEventListener("message", ({ data }) => {
  if (data === `whose ${windowId}`) tell(`mine ${windowId}`);
});

/** Tells the other windows something. @param {string} words */
function tell(words) {
  // oxlint-disable-next-line unicorn/require-post-message-target-origin -- a channel is of one origin
  windows.postMessage(words);
}

async function nameWindow() {
  const known = stored(() => sessionStorage.getItem("window"), null);
  const id = known === null || (await isTaken(known)) ? makeId() : known;
  return stored(() => {
    sessionStorage.setItem("window", id);
    return id;
  }, "");
}

/**
 * Uses what this browser has stored. It may let no page store anything, or have no room.
 * @template Value
 * @param {() => Value} use
 * @param {Value} otherwise
 */
function stored(use, otherwise) {
  try {
    return use();
  } catch {
    return otherwise;
  }
}

/** Whether another window has this name. A duplicated one begins with a copy of it. @param {string} id */
function isTaken(id) {
  const [navigation] = performance.getEntriesByType("navigation");
  if (navigation instanceof PerformanceNavigationTiming && navigation.type === "reload") return false;
  return new Promise((resolve) => {
    windows.addEventListener("message", ({ data }) => data === `mine ${id}` && resolve(true));
    tell(`whose ${id}`);
    setTimeout(() => resolve(false), answerMs);
  });
}

/** @param {string | undefined} account @param {string} chat */
const chatKey = (account, chat) => `draft ${account ?? ""}\n${chat}\n`;

/** Returns the chat part of a draft's key. New chats share one. @param {string} conversationId */
export function draftOf(conversationId) {
  return location.pathname === "/" ? newChat : conversationId;
}

/**
 * Gives a new chat its address, and what was typed into it and attached to it with it.
 * @param {string | undefined} account
 * @param {string} conversationId
 */
export function takeAddress(account, conversationId) {
  if (location.pathname !== "/") return;
  const text = readDraft(account, newChat);
  keepDraft(account, newChat, "");
  keepDraft(account, conversationId, text);
  moveFiles(newChat, conversationId);
  history.replaceState(null, "", `/c/${conversationId}`);
}

/**
 * Reads what was typed into the field of a chat in this window and not sent. It stays in this browser. What a
 * closed window has left in the chat becomes this window's.
 * @param {string | undefined} account
 * @param {string} chat as `draftOf` returns it
 * @returns {string}
 */
export function readDraft(account, chat) {
  return stored(() => {
    const own = localStorage.getItem(chatKey(account, chat) + windowId);
    return own === null ? takeLeftDraft(account, chat) : parseDraft(own).text;
  }, "");
}

/** @param {string | undefined} account @param {string} chat */
function takeLeftDraft(account, chat) {
  const before = Date.now() - abandonedMs;
  const left = draftKeys(chatKey(account, chat))
    .map((key) => ({ key, ...parseDraft(localStorage.getItem(key)) }))
    .filter(({ at }) => at <= before)
    .toSorted((a, b) => b.at - a.at)[0];
  if (left === undefined) return "";
  keepDraft(account, chat, left.text);
  localStorage.removeItem(left.key);
  return left.text;
}

/** @param {string | null} stored */
function parseDraft(stored) {
  const value = stored ?? "";
  return { at: Number.parseInt(value, 10), text: value.slice(value.indexOf("\n") + 1) };
}

/**
 * Keeps what was typed in this window, where it can be stored. An empty text removes it.
 * @param {string | undefined} account
 * @param {string} chat
 * @param {string} text
 */
export function keepDraft(account, chat, text) {
  const key = chatKey(account, chat) + windowId;
  stored(() => {
    if (text === "") return localStorage.removeItem(key);
    const drafts = draftKeys();
    if (drafts.length >= maxDrafts && !drafts.includes(key)) {
      const ages = drafts.map((one) => ({ one, at: parseDraft(localStorage.getItem(one)).at }));
      const oldest = ages.toSorted((a, b) => a.at - b.at)[0];
      if (oldest !== undefined) localStorage.removeItem(oldest.one);
    }
    return localStorage.setItem(key, `${Date.now()}\n${text}`);
  }, undefined);
}

/**
 * Removes the drafts of all windows: of one chat, or without one, of every account, since somebody else may
 * use this browser next.
 * @param {{ account: string | undefined, chat: string }} [of]
 */
export function forgetDrafts(of) {
  for (const key of draftKeys(of && chatKey(of.account, of.chat))) localStorage.removeItem(key);
}

function draftKeys(prefix = "draft ") {
  return stored(() => Object.keys(localStorage).filter((key) => key.startsWith(prefix)), []);
}

/** Moves the time of this window's drafts, so that others see whether it is open. @param {number} ms */
function moveOwn(ms) {
  for (const key of draftKeys().filter((one) => one.endsWith(`\n${windowId}`))) {
    const { at, text } = parseDraft(localStorage.getItem(key));
    stored(() => localStorage.setItem(key, `${Math.min(Date.now(), at + ms)}\n${text}`), undefined);
  }
}

// The next window takes what a closed one leaves. A reload, or a way back, makes it this window's again.
window.addEventListener("pagehide", () => moveOwn(-abandonedMs));
window.addEventListener("pageshow", (event) => {
  if (event.persisted) moveOwn(abandonedMs);
});
moveOwn(abandonedMs);
