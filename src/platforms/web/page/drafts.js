/** The draft key of a chat that has no message yet. */
const newChat = "new";
/** Past this number the oldest draft goes. */
const maxDrafts = 50;

/** @param {string | undefined} account @param {string} chat */
const storageKey = (account, chat) => `draft ${account ?? ""}\n${chat}`;

/** Returns the chat part of a draft's key. New chats share one. @param {string} conversationId */
export function draftOf(conversationId) {
  return location.pathname === "/" ? newChat : conversationId;
}

/**
 * Reads what was typed into the field of a chat and not sent. It stays in this browser.
 * @param {string | undefined} account
 * @param {string} chat as `draftOf` returns it
 * @returns {string}
 */
export function readDraft(account, chat) {
  try {
    const stored = localStorage.getItem(storageKey(account, chat)) ?? "";
    return stored.slice(stored.indexOf("\n") + 1);
  } catch {
    // The browser lets no page store anything.
    return "";
  }
}

/**
 * Keeps what was typed. An empty text removes it.
 * @param {string | undefined} account
 * @param {string} chat
 * @param {string} text
 */
export function keepDraft(account, chat, text) {
  const key = storageKey(account, chat);
  try {
    if (text === "") {
      localStorage.removeItem(key);
      return;
    }
    const drafts = draftKeys();
    if (drafts.length >= maxDrafts && !drafts.includes(key)) {
      const ages = drafts.map((one) => ({ one, at: Number.parseInt(localStorage.getItem(one) ?? "", 10) }));
      const oldest = ages.toSorted((a, b) => a.at - b.at)[0];
      if (oldest !== undefined) localStorage.removeItem(oldest.one);
    }
    localStorage.setItem(key, `${Date.now()}\n${text}`);
  } catch {
    // There is no room, or the browser stores nothing. The text is then only in the field.
  }
}

/** Removes all drafts of every account, since somebody else may use this browser next. */
export function forgetDrafts() {
  try {
    for (const key of draftKeys()) localStorage.removeItem(key);
  } catch {
    // The browser lets no page store anything, so there are no drafts.
  }
}

function draftKeys() {
  return Object.keys(localStorage).filter((key) => key.startsWith("draft "));
}
