import { call, sendMessage, uploadFile } from "./api.js";
import { downloadFiles } from "./attachments.js";
import { makeId } from "./dom.js";

/** @typedef {import("../views.ts").ItemView} Item */

/**
 * Copies a chat into a new one: up to this answer, or up to before this question.
 * @param {string} conversationId
 * @param {Item} item
 * @returns {Promise<string>} the id of the new chat
 */
export async function branchFrom(conversationId, item) {
  const to = makeId();
  await call("POST", `/api/conversations/${conversationId}/branch`, { itemId: item.id, to });
  return to;
}

/**
 * Asks a question in other words in a new chat, which goes on from before it. Its files come along.
 * @param {string} conversationId
 * @param {Item} item
 * @param {string} text
 * @returns {Promise<string>} the id of the new chat
 */
export async function askInBranch(conversationId, item, text) {
  // The files are loaded first, so that a failure leaves no new chat.
  const files = await downloadFiles(item.files);
  const options = { onProgress: () => undefined, signal: new AbortController().signal };
  const uploaded = await Promise.all(files.map((file) => uploadFile(file, options)));
  const to = await branchFrom(conversationId, item);
  await sendMessage(to, { id: makeId(), text, uploads: uploaded.map(({ id }) => id) });
  return to;
}
