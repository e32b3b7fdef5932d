import { makeId } from "./dom.js";

/** @param {string} conversationId */
const storageKey = (conversationId) => `sending ${conversationId}`;

/**
 * The id to send a message with. An attempt whose response was lost may have taken effect: the same content, sent
 * again, gets the same id, also after a reload, and the server ignores it the second time.
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
 * The next message gets a new id: the last one was sent or refused, or the person has changed it.
 * @param {string} conversationId
 */
export function dropSendId(conversationId) {
  sessionStorage.removeItem(storageKey(conversationId));
}
