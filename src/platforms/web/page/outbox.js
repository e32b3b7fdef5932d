import { mayHaveTakenEffect } from "./api.js";
import { clearFiles, retryFiles } from "./attachments.js";
import { makeId } from "./dom.js";
import { keepDraft, readDraft } from "./drafts.js";
import { translate } from "./words.js";
import { useLayoutEffect, useRef } from "preact/hooks";

/**
 * A message that was entered. Its text stays in the field of its chat until it is taken in.
 * @typedef {object} Message
 * @property {string | undefined} account
 * @property {string} text
 * @property {readonly import("./attachments.js").Pending[]} files
 * @property {(message: { id: string, text: string, uploads: string[] }) => Promise<void>} post
 * @property {(error: Error) => void} onProblem told why it was not sent, where its chat was left
 */
/** @typedef {{ kind: "sent", text: string } | { kind: "failed", error: Error }} Outcome */

/**
 * The messages of each chat that are on their way, in their order. They outlast the field of their chat.
 * @type {Map<string, readonly Message[]>}
 */
const queues = new Map();
/**
 * The fields that are shown, which are told what came of their messages.
 * @type {Map<string, (outcome: Outcome) => void>}
 */
const fields = new Map();

/**
 * Returns a text without what is on its way.
 * @param {string} text
 * @param {readonly { text: string }[]} messages
 */
export function withoutSent(text, messages) {
  return messages.reduce(
    (rest, sent) => (rest.startsWith(sent.text) ? rest.slice(sent.text.length) : rest),
    text,
  );
}

/**
 * Sends a message after those that were entered before it. Where one of them fails, it stays in the field.
 * @param {string} chat
 * @param {Message} message
 */
export async function enter(chat, message) {
  const before = queues.get(chat) ?? [];
  queues.set(chat, [...before, message]);
  if (before.length > 0) return;
  /** @type {Message | undefined} */
  let next = message;
  while (next !== undefined) {
    const { account, text, onProblem } = next;
    try {
      await post(chat, next);
      queues.set(chat, queues.get(chat)?.slice(1) ?? []);
      dropSendId(chat);
      keepDraft(account, chat, withoutSent(readDraft(account, chat), [next]));
      fields.get(chat)?.({ kind: "sent", text });
    } catch (caught) {
      const error = /** @type {Error} */ (caught);
      queues.set(chat, []);
      if (!mayHaveTakenEffect(error)) dropSendId(chat);
      const tell = fields.get(chat);
      if (tell === undefined) onProblem(error);
      else tell({ kind: "failed", error });
    }
    next = queues.get(chat)?.[0];
  }
}

/**
 * Sends a message when its files are uploaded.
 * @param {string} chat
 * @param {Message} message
 */
async function post(chat, message) {
  const files = (message.files = retryFiles(message.files));
  const uploads = await Promise.all(files.map((one) => one.done));
  const ready = uploads.filter((id) => id !== undefined);
  if (ready.length < uploads.length) throw new Error(translate("page.not-uploaded"));
  const content = { text: message.text, uploads: ready };
  await message.post({ id: takeSendId(chat, content), ...content });
  clearFiles(files);
}

/**
 * Returns the messages of a chat that are on their way. Its field is told what comes of them.
 * @param {string} chat
 * @param {(outcome: Outcome) => void} onOutcome
 */
export function useOutbox(chat, onOutcome) {
  const latest = useRef(onOutcome);
  latest.current = onOutcome;
  useLayoutEffect(() => {
    fields.set(chat, (outcome) => latest.current(outcome));
    return () => void fields.delete(chat);
  }, [chat]);
  return queues.get(chat) ?? [];
}

/** @param {string} chat */
const storageKey = (chat) => `sending ${chat}`;

/**
 * Returns the id to send a message with. An attempt whose response was lost may have taken effect. The same
 * content, sent again, gets the same id, even after a reload, and the server ignores it the second time.
 * @param {string} chat
 * @param {{ text: string, uploads: readonly string[] }} content
 */
function takeSendId(chat, { text, uploads }) {
  const content = JSON.stringify([text, uploads]);
  const [id, known] = (sessionStorage.getItem(storageKey(chat)) ?? "").split("\n");
  if (id !== undefined && id !== "" && known === content) return id;
  const made = makeId();
  sessionStorage.setItem(storageKey(chat), `${made}\n${content}`);
  return made;
}

/**
 * Makes the next message get a new id, because the last one was sent, refused or changed.
 * @param {string} chat
 */
export function dropSendId(chat) {
  sessionStorage.removeItem(storageKey(chat));
}
