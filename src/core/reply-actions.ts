import type { CommandCall } from "./events.ts";
import type { Form } from "./forms.ts";
import type { StoredMessage } from "./storage.ts";

/** The labels of the buttons of a reply, by what they do. */
export const actionLabels = {
  /** Ends the answer that is growing; the text so far stays. */
  stop: "Stop",
  /** Asks for another answer in the place of this one. */
  regenerate: "Regenerate",
  /** Asks which other model is to answer; then it does, in the place of this answer. */
  model: "Other model",
  /** Asks for the rest of an answer that reached its length limit or broke off. */
  continue: "Continue",
  /** Asks for the same pictures once more, as a new answer. */
  again: "Again",
  /** Asks what should change in a picture; the changed one is a new answer. */
  change: "Change",
  /** Asks for the right words of the question's recordings; then the question is answered anew, or the transcript replaced. */
  transcript: "Fix transcript",
  /** Shows how the answer came about, to the person alone who uses it. */
  details: "Details",
} as const;

export type ReplyActionKind = keyof typeof actionLabels;

/** A button of a reply: it calls {@link Receiver.act} with the same kind and key. */
export interface ReplyAction {
  readonly kind: ReplyActionKind;
  /** Opaque to platforms. Usually below 80 characters; a platform leaves out a button whose key is too long for it. */
  readonly key: string;
}

/** How an action was used, besides the button itself. */
export interface ActionUse {
  /** What was submitted with the form of an earlier result, by field. Absent: the button was pressed. */
  readonly values?: Readonly<Record<string, string>>;
  /** Whether only one person sees the answer. Default false. */
  readonly isPrivate?: boolean;
}

/**
 * The result of {@link Receiver.act}.
 * - `told`: Markdown for the person alone.
 * - `done`: people see it in the reply, or in another one; the person is told nothing more.
 * - `gone`: the answer is no longer stored ({@link goneNotice}).
 * - `form`: it is opened for the person; what is submitted goes to `act` with the same kind and key.
 * - `problems`: what is wrong with submitted values, a sentence for each field.
 * - `call`: the platform makes it a call of its own, with a new reply, and passes it to {@link Receiver.receive}.
 */
export type ActionResult =
  | { readonly kind: "told"; readonly markdown: string }
  | { readonly kind: "done" }
  | { readonly kind: "gone" }
  | { readonly kind: "form"; readonly form: Form }
  | { readonly kind: "problems"; readonly problems: Readonly<Record<string, string>> }
  | { readonly kind: "call"; readonly call: ActionCall };

/** What an action asks for, as parts of a command call. */
export interface ActionCall extends Pick<CommandCall, "name" | "options" | "pictures"> {
  /** The conversation that it becomes part of. Absent: it stands alone, like a command in a channel. */
  readonly conversationId?: string;
  /** As a person would write it. */
  readonly written: string;
}

/** Whether a word that a platform delivers is an action of this version. */
export function isReplyActionKind(word: string): word is ReplyActionKind {
  return Object.hasOwn(actionLabels, word);
}

/** Whether a press changes the reply, so that one process alone must do it. Others only tell, or open a form or a call. */
export function changesReply(kind: ReplyActionKind): boolean {
  return kind === "stop" || kind === "regenerate" || kind === "continue";
}

/** The same of what is submitted with the form of an action. */
export function formChangesReply(kind: ReplyActionKind): boolean {
  return kind === "model" || kind === "transcript";
}

/** The button of a reply that grows. @param turnKey key of the first event that it answers */
export function toStopAction(turnKey: string): ReplyAction {
  return { kind: "stop", key: turnKey };
}

/** The buttons of a stored answer. Empty: there are none for it. */
export function actionsOf(
  conversationId: string,
  {
    id,
    receipt,
    parts,
    attempt = 1,
    isCut,
  }: Pick<StoredMessage, "id" | "receipt" | "parts" | "attempt" | "isCut">,
): readonly ReplyAction[] {
  if (receipt === undefined) return [];
  const hasPictures = parts.some(({ kind }) => kind === "image");
  // The answer to a lone command has its conversation's id in its own: whole, the key is too long for Discord.
  const ending = id.startsWith(`${conversationId}/`) ? id.slice(conversationId.length) : id;
  const key = `${conversationId} ${ending}`;
  const operation = receipt.calls.at(-1)?.operation;
  const isChat = operation === "chat";
  // An answer to what was heard, or the transcript itself.
  const isOfVoices = (isChat && !hasPictures) || operation === "transcription";
  return [
    // Another attempt at pictures is a new answer: they are messages of their own.
    ...(isChat && !hasPictures
      ? (["regenerate", "model"] as const).map((kind) => ({ kind, key: `${key} ${attempt}` }))
      : []),
    ...(isCut === true ? [{ kind: "continue", key: `${key} ${attempt}` } as const] : []),
    ...(hasPictures ? (["again", "change"] as const).map((kind) => ({ kind, key })) : []),
    ...(isOfVoices && (receipt.files?.voices ?? 0) > 0
      ? [{ kind: "transcript", key: `${key} ${attempt}` } as const]
      : []),
    { kind: "details", key },
  ];
}

/** What a key of {@link actionsOf} names. */
export interface ActionTarget {
  readonly conversationId: string;
  readonly messageId: string;
  /** The attempt whose answer has the button. Absent: whichever there is. */
  readonly attempt?: number;
}

/** The answer that a key of {@link actionsOf} names. `undefined`: it is no such key. */
export function parseActionKey(key: string): ActionTarget | undefined {
  const [, conversationId, messageId, attempt] = /^(\S{1,500}) (\S{1,500}?)(?: (\d{1,9}))?$/.exec(key) ?? [];
  if (conversationId === undefined || messageId === undefined) return undefined;
  return {
    conversationId,
    messageId: messageId.startsWith("/") ? `${conversationId}${messageId}` : messageId,
    ...(attempt === undefined ? {} : { attempt: Number(attempt) }),
  };
}

/** Key of the turn whose answer an action replaces. `undefined`: it replaces none. */
export function changedTurnOf({ kind, key }: ReplyAction): string | undefined {
  if (kind === "stop" || !(changesReply(kind) || formChangesReply(kind))) return undefined;
  return /^(.+)\/answer$/.exec(parseActionKey(key)?.messageId ?? "")?.[1];
}
