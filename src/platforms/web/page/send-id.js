import { makeId } from "./dom.js";

/** @param {string} conversationId */
const storageKey = (conversationId) => `sending ${conversationId}`;

/**
 * Returns the id to send a message with. An attempt whose response was lost may have taken effect. The same
 * content, sent again, gets the same id, even after a reload, and the server ignores it the second time.
 * @param {string} conversationId
 * @param {{ text: string, uploads: readonly string[] }} content
 */
export function takeSendId(conversationId, { text, uploads }) {
  const content = JSON.stringify([text, uploads]);
  const [id, known] = (sessionStorage.getItem(storageKey(conversationId)) ?? "").split("\n");
  if (id !== undefined && id !== "" && known === content) return id;
  const made = makeId();
  sessionStorage.setItem(storageKey(conversationId), `${made}\n${content}`);
  return made;
}

/**
 * Makes the next message get a new id, because the last one was sent, refused or changed.
 * @param {string} conversationId
 */
export function dropSendId(conversationId) {
  sessionStorage.removeItem(storageKey(conversationId));
}
