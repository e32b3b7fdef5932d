import type { CommandCall } from "./events.ts";
import type { Form } from "./forms.ts";
import type { AnswerSource, ModelOperation } from "./gateway.ts";
import type { StoredMessage } from "./storage.ts";

/** What is known of a stored answer when its buttons are chosen. */
interface AnswerFacts {
  /** The operation whose result it shows: its last request. `undefined`: it made none. */
  readonly operation: ModelOperation | undefined;
  readonly hasPictures: boolean;
  readonly hasVoices: boolean;
  /** It reached its length limit or broke off. */
  readonly isCut: boolean;
}

/** One button of a reply. */
interface ButtonDeclaration {
  /** The English word on it. Other programs rely on it; the other languages have `button.<kind>`. */
  readonly label: string;
  /** Whether it stands below such an answer. */
  readonly isOffered: (answer: AnswerFacts) => boolean;
  /**
   * When a press changes the reply, so that one process alone must do it: at once, or when the form that it opened is
   * submitted. Default: never, because it only tells, or opens a form or a call.
   */
  readonly changesReply?: "at-once" | "by-form";
  /** A press is written to the store: one process alone does it, and takes the time that it needs. */
  readonly isStored?: true;
  /** Its key names the attempt that it stands below, so that it does nothing below an answer that was replaced. */
  readonly namesAttempt?: true;
}

const isWords = ({ operation, hasPictures }: AnswerFacts): boolean => operation === "chat" && !hasPictures;
const hasHeard = (answer: AnswerFacts): boolean =>
  answer.hasVoices && (isWords(answer) || answer.operation === "transcription");

/**
 * The buttons of replies, in the order in which they are shown. This table and the handler of a kind in
 * `assistant/actions/press.ts` are all that a button needs.
 */
export const replyButtons = {
  /** Ends the answer that is growing; the text so far stays. It stands below no stored answer. */
  stop: { label: "Stop", isOffered: () => false, changesReply: "at-once" },
  /** Asks for another answer in the place of this one. Pictures are messages of their own and have `again` instead. */
  regenerate: { label: "Regenerate", isOffered: isWords, changesReply: "at-once", namesAttempt: true },
  /** Asks which other model is to answer; then it does, in the place of this answer. */
  model: { label: "Other model", isOffered: isWords, changesReply: "by-form", namesAttempt: true },
  /** Asks for the rest of an answer that reached its length limit or broke off. */
  continue: {
    label: "Continue",
    isOffered: ({ isCut }) => isCut,
    changesReply: "at-once",
    namesAttempt: true,
  },
  /** Asks for the same pictures once more, as a new answer. */
  again: { label: "Again", isOffered: ({ hasPictures }) => hasPictures },
  /** Asks what should change in a picture; the changed one is a new answer. */
  change: { label: "Change", isOffered: ({ hasPictures }) => hasPictures },
  /** Asks for the right words of the question's recordings; then the question is answered anew, or the transcript replaced. */
  transcript: {
    label: "Fix transcript",
    isOffered: hasHeard,
    changesReply: "by-form",
    namesAttempt: true,
  },
  /** Shows how the answer came about, to the person alone who uses it. */
  details: { label: "Details", isOffered: () => true },
  /** Rates the answer. One rating of each person and answer counts, the last one. */
  good: { label: "Good answer", isOffered: () => true, isStored: true, namesAttempt: true },
  bad: { label: "Bad answer", isOffered: () => true, isStored: true, namesAttempt: true },
} as const satisfies Readonly<Record<string, ButtonDeclaration>>;

export type ReplyActionKind = keyof typeof replyButtons;

/** A button of a reply: a press of it has the same kind and key. */
export interface ReplyAction {
  readonly kind: ReplyActionKind;
  /** Opaque to platforms. Usually below 80 characters; a platform leaves out a button whose key is too long for it. */
  readonly key: string;
}

/**
 * What a person can use besides {@link replyButtons}:
 * - `retry`: a failed or sealed turn runs again into the same reply, also for another person than its author.
 * - `confirm`: a command that asked for confirmation runs as confirmed, into the same reply, for its caller alone.
 * - `settings`: the form of a {@link FormOffer}, opened or submitted.
 */
type OtherPressKind = "retry" | "confirm" | "settings";

export type PressKind = ReplyActionKind | OtherPressKind;

/** A use of a button, a menu or a form. */
export interface Press {
  readonly kind: PressKind;
  /** As the button, the offer or the form said it. For `stop` also a conversation: what runs there is stopped. */
  readonly key: string;
  /** What was submitted with the form of an earlier result, by field. Absent: the button was pressed. */
  readonly values?: Readonly<Record<string, string>>;
  /** Whether only one person sees the answer. Default false. */
  readonly isPrivate?: boolean;
}

/**
 * The result of {@link Receiver.press}.
 * - `told`: Markdown for the person alone, with sources as in {@link ReplyEnding} below it.
 * - `done`: people see it in the reply, or in another one; the person is told nothing more.
 * - `gone`: what it is for is no longer stored ({@link goneNotice}).
 * - `form`: it is opened for the person; what is submitted is a press of the same kind and key with its values.
 * - `problems`: what is wrong with submitted values, a sentence for each field. Nothing is changed.
 * - `call`: the platform makes it a call of its own, with a new reply, and passes it to {@link Receiver.receive}.
 */
export type PressResult =
  | { readonly kind: "told"; readonly markdown: string; readonly sources?: readonly AnswerSource[] }
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

const declarationOf = (kind: ReplyActionKind): ButtonDeclaration => replyButtons[kind];

/** Whether a word that a platform delivers is a button of this version. */
export function isReplyActionKind(word: string): word is ReplyActionKind {
  return Object.hasOwn(replyButtons, word);
}

/**
 * Whether one process alone must do a press: it changes the reply, or is written to the store. Others only tell, or open
 * a form or a call, and every process may do them.
 */
export function isForOneProcess({ kind, values }: Press): boolean {
  if (kind === "retry" || kind === "confirm") return true;
  if (!isReplyActionKind(kind)) return false;
  const { changesReply, isStored } = declarationOf(kind);
  return isStored === true || changesReply === (values === undefined ? "at-once" : "by-form");
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
  // The answer to a lone command has its conversation's id in its own: whole, the key is too long for Discord.
  const ending = id.startsWith(`${conversationId}/`) ? id.slice(conversationId.length) : id;
  const key = `${conversationId} ${ending}`;
  const answer: AnswerFacts = {
    operation: receipt.calls.at(-1)?.operation,
    hasPictures: parts.some(({ kind }) => kind === "image"),
    hasVoices: (receipt.files?.voices ?? 0) > 0,
    isCut: isCut === true,
  };
  return (Object.keys(replyButtons) as ReplyActionKind[])
    .map((kind) => ({ kind, ...declarationOf(kind) }))
    .filter(({ isOffered }) => isOffered(answer))
    .map(({ kind, namesAttempt }) => ({ kind, key: namesAttempt === true ? `${key} ${attempt}` : key }));
}

/** What a key of {@link actionsOf} names. */
interface ActionTarget {
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

/** Key of the turn that a press runs again into the same reply. `undefined`: it runs none, or one of several. */
export function changedTurnOf({ kind, key }: Press): string | undefined {
  if (kind === "confirm") return key;
  if (!isReplyActionKind(kind) || kind === "stop" || declarationOf(kind).changesReply === undefined)
    return undefined;
  return /^(.+)\/answer$/.exec(parseActionKey(key)?.messageId ?? "")?.[1];
}
