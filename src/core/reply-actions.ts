import type { StoredMessage } from "./storage.ts";

/** The labels of the buttons below an answer, by what they do. */
export const actionLabels = {
  /** Shows how the answer came about, to the person alone who uses it. */
  details: "Details",
} as const;

export type ReplyActionKind = keyof typeof actionLabels;

/** A button below an answer: it calls {@link Receiver.act} with the same kind and key. */
export interface ReplyAction {
  readonly kind: ReplyActionKind;
  /** Opaque to platforms. Usually below 80 characters; a platform leaves out a button whose key is too long for it. */
  readonly key: string;
}

/** The result of {@link Receiver.act}. `told`: Markdown for the person alone. `gone`: the answer is no longer stored. */
export type ActionResult = { readonly kind: "told"; readonly markdown: string } | { readonly kind: "gone" };

/** What a person is shown for `gone`. */
export const goneWords = "This answer is no longer stored.";

/** Whether a word that a platform delivers is an action of this version. */
export function isReplyActionKind(word: string): word is ReplyActionKind {
  return Object.hasOwn(actionLabels, word);
}

/** The buttons of a stored answer. Empty: there are none for it. */
export function actionsOf(
  conversationId: string,
  { id, receipt }: Pick<StoredMessage, "id" | "receipt">,
): readonly ReplyAction[] {
  if (receipt === undefined) return [];
  // The answer to a lone command has its conversation's id in its own: whole, the key is too long for Discord.
  const ending = id.startsWith(`${conversationId}/`) ? id.slice(conversationId.length) : id;
  return [{ kind: "details", key: `${conversationId} ${ending}` }];
}

/** The answer that a key of {@link actionsOf} names. `undefined`: it is no such key. */
export function parseActionKey(
  key: string,
): { readonly conversationId: string; readonly messageId: string } | undefined {
  const [, conversationId, messageId] = /^(\S{1,500}) (\S{1,500})$/.exec(key) ?? [];
  if (conversationId === undefined || messageId === undefined) return undefined;
  return {
    conversationId,
    messageId: messageId.startsWith("/") ? `${conversationId}${messageId}` : messageId,
  };
}
