import { mayHaveTakenEffect, postTo, uploadFile } from "./api.js";
import { addFiles, downloadFiles } from "./attachments.js";
import { makeId } from "./dom.js";
import { keepDraft, readDraft } from "./drafts.js";

/** @typedef {import("../views.ts").ItemView} Item */

/**
 * Returns what can be done with the messages of a chat, which the person may leave while it is done.
 * @param {object} of
 * @param {string} of.chat
 * @param {string | undefined} of.account
 * @param {Parameters<typeof addFiles>[2]["limits"]} of.limits
 * @param {() => boolean} of.isShown whether the person is in the chat still
 * @param {(prefill: import("./composer.js").Prefill) => void} of.onPrefill
 * @param {(error: Error) => void} of.onProblem
 * @param {(id: string) => void} of.onCopied gets the id of the new chat
 */
export function messageActions({ chat, account, limits, isShown, onPrefill, onProblem, onCopied }) {
  /** Puts a text and files into the field of the chat. @param {string} text @param {File[]} files */
  const putInto = (text, files) => {
    if (isShown()) {
      onPrefill({ text, files, isAdded: true, nonce: Date.now() });
      return;
    }
    keepDraft(account, chat, [readDraft(account, chat), text].filter((part) => part !== "").join("\n"));
    addFiles(chat, files, { limits, onProblem: (why) => onProblem(new Error(why)) });
  };
  return {
    /** Puts its text and files into the field again. @param {Item} item */
    takeBack: async (item) => {
      const files = await downloadFiles(item.files);
      const putBack = () => putInto(item.text, files);
      try {
        await postTo(chat, "take-back", { itemId: item.id });
      } catch (error) {
        // If only the response was lost, the server has erased the message already.
        if (mayHaveTakenEffect(error)) putBack();
        throw error;
      }
      putBack();
    },
    /**
     * Attaches a picture again, with the command that changes it.
     * @param {import("./message.js").Image} image
     */
    changeOwn: async (image) => {
      const files = await downloadFiles([image]);
      putInto(readDraft(account, chat) === "" ? "/imagine " : "", files);
    },
    /**
     * Copies the chat into a new one: up to this answer, or up to before this question.
     * @param {Item} item
     */
    branch: async (item) => onCopied(await branchFrom(chat, item)),
    /**
     * Asks a question in other words in a new chat, which goes on from before it. Its files come along.
     * @param {Item} item
     * @param {string} text
     */
    askAnew: async (item, text) => {
      // The files are loaded first, so that a failure leaves no new chat.
      const files = await downloadFiles(item.files);
      const options = { onProgress: () => undefined, signal: new AbortController().signal };
      const uploaded = await Promise.all(files.map((file) => uploadFile(file, options)));
      const to = await branchFrom(chat, item);
      await postTo(to, "messages", { id: makeId(), text, uploads: uploaded.map(({ id }) => id) });
      onCopied(to);
    },
  };
}

/** Resolves to the id of the new chat. @param {string} chat @param {Item} item */
async function branchFrom(chat, item) {
  const to = makeId();
  await postTo(chat, "branch", { itemId: item.id, to });
  return to;
}
