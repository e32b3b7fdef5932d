import type { CommandCall } from "./events.ts";
import type { AnswerSource, ModelOperation } from "./gateway.ts";
import type { ReplyFile } from "./reply.ts";
import type { StoredMessage } from "./storage.ts";
import type { Choice, Layer, SettingGroup } from "./layered-settings.ts";

/** What is known of a stored answer when its buttons are chosen. */
interface AnswerFacts {
  /** The operation of its last request, whose result it shows. It is `undefined` if there was no request. */
  readonly operation: ModelOperation | undefined;
  readonly hasPictures: boolean;
  readonly hasVoices: boolean;
  /** Whether it reached its length limit or broke off. */
  readonly isCut: boolean;
  /** Whether a person stopped it before its first word. */
  readonly isEmpty: boolean;
}

/** The declaration of a reply's button. */
interface ButtonDeclaration {
  /** The English word on it, on which other programs rely. Other languages have `button.<kind>`. */
  readonly label: string;
  /** Whether the button stands below such an answer. */
  readonly isOffered: (answer: AnswerFacts) => boolean;
  /** A press, or the form that it opens, changes the reply. */
  readonly changesReply?: true;
  /**
   * Its key names the attempt that it stands below, so that it does nothing below an answer that was
   * replaced.
   */
  readonly namesAttempt?: true;
}

const isWords = ({ operation, hasPictures }: AnswerFacts): boolean => operation === "chat" && !hasPictures;
const isSaid = ({ isEmpty }: AnswerFacts): boolean => !isEmpty;
const hasHeard = (answer: AnswerFacts): boolean =>
  answer.hasVoices && (isWords(answer) || answer.operation === "transcription");

/**
 * The buttons of replies, in the order in which they are shown. A button needs this table and the handler of
 * its kind in `assistant/actions/take-press.ts`.
 */
export const replyButtons = {
  /** Ends an answer that is growing and keeps its text. No stored answer has this button. */
  stop: { label: "Stop", isOffered: () => false, changesReply: true },
  /** Asks for another answer in place of this one. Pictures are own messages and have `again` instead. */
  regenerate: { label: "Regenerate", isOffered: isWords, changesReply: true, namesAttempt: true },
  /** Asks which other model is to answer, and then replaces this answer. */
  model: { label: "Other model", isOffered: isWords, changesReply: true, namesAttempt: true },
  /** Asks for the rest of an answer that reached its length limit or broke off. */
  continue: {
    label: "Continue",
    isOffered: ({ isCut }) => isCut,
    changesReply: true,
    namesAttempt: true,
  },
  /** Asks for the same pictures once more as a new answer. */
  again: { label: "Again", isOffered: ({ hasPictures }) => hasPictures },
  /** Asks what should change in a picture, and makes the changed one as a new answer. */
  change: { label: "Change", isOffered: ({ hasPictures }) => hasPictures },
  /** Asks for the right words of recordings, and then replaces the answer or the transcript. */
  transcript: {
    label: "Fix transcript",
    isOffered: hasHeard,
    changesReply: true,
    namesAttempt: true,
  },
  /** Gives the words of recordings as files, only to the person who presses it. */
  files: { label: "Save transcript", isOffered: hasHeard },
  /** Shows how the answer was made, only to the person who presses it. */
  details: { label: "Details", isOffered: () => true },
  /** Rates the answer. One rating of each person and answer counts, the last one. */
  good: { label: "Good answer", isOffered: isSaid, namesAttempt: true },
  bad: { label: "Bad answer", isOffered: isSaid, namesAttempt: true },
} as const satisfies Readonly<Record<string, ButtonDeclaration>>;

export type ReplyActionKind = keyof typeof replyButtons;

/** A button of a reply. A press of it has the same kind and key. */
export interface ReplyAction {
  readonly kind: ReplyActionKind;
  /** Opaque to platforms, usually below 80 characters. A platform leaves out a button with too long a key. */
  readonly key: string;
}

/**
 * What people can press besides {@link replyButtons}:
 * - `retry` runs a failed or sealed turn again into the same reply, for anybody who presses it.
 * - `confirm` runs a command that asked for confirmation as confirmed, into the same reply, for its caller
 *   only.
 * - `settings` opens or submits the form of a {@link FormOffer}.
 */
type OtherPressKind = "retry" | "confirm" | "settings";

export type PressKind = ReplyActionKind | OtherPressKind;

/** A use of a button, a menu or a form. */
export interface Press {
  readonly kind: PressKind;
  /** The key of the button, offer or form. For `stop` it may be a conversation, which is stopped. */
  readonly key: string;
  /** The submitted values of an earlier result's form, by field. It is absent if a button was pressed. */
  readonly values?: Readonly<Record<string, string>>;
  /** Whether only one person sees the answer. Default false. */
  readonly isPrivate?: boolean;
}

/**
 * The result of {@link Receiver.press}.
 * - `told`: Markdown for the person alone, with sources as in {@link ReplyEnding} below it.
 * - `files`: files for the person alone. The Markdown says what they are.
 * - `done`: people see the result in a reply, and the person is told nothing more.
 * - `gone`: what the press refers to is no longer stored ({@link goneNotice}).
 * - `form`: the form opens for the person. Submitting it is a press of the same kind and key with its values.
 * - `problems`: a sentence for each wrong field of the submitted values. Nothing is changed.
 * - `call`: the platform gives the call a new reply and passes it to {@link Receiver.receive}.
 */
export type PressResult =
  | { readonly kind: "told"; readonly markdown: string; readonly sources?: readonly AnswerSource[] }
  | { readonly kind: "files"; readonly markdown: string; readonly files: readonly ReplyFile[] }
  | { readonly kind: "done" }
  | { readonly kind: "gone" }
  | { readonly kind: "form"; readonly form: Form }
  | { readonly kind: "problems"; readonly problems: Readonly<Record<string, string>> }
  | { readonly kind: "call"; readonly call: ActionCall };

/** What an action asks for, as parts of a command call. */
export interface ActionCall extends Pick<CommandCall, "name" | "options" | "pictures"> {
  /** The conversation that it joins. Without it the call stands alone, like a command in a channel. */
  readonly conversationId?: string;
  /** The call as a person would write it. */
  readonly written: string;
}

const declarationOf = (kind: ReplyActionKind): ButtonDeclaration => replyButtons[kind];

/** Whether a word from a platform is a button of this version. */
export function isReplyActionKind(word: string): word is ReplyActionKind {
  return Object.hasOwn(replyButtons, word);
}

/** The Stop button of a reply that grows. @param turnKey key of the first event that it answers */
export function toStopAction(turnKey: string): ReplyAction {
  return { kind: "stop", key: turnKey };
}

/** The buttons of a stored answer, which may be none. */
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
  // A lone command's answer has the conversation's id in its own. Only its ending fits Discord's limit.
  const ending = id.startsWith(`${conversationId}/`) ? id.slice(conversationId.length) : id;
  const key = `${conversationId} ${ending}`;
  const answer: AnswerFacts = {
    operation: receipt.calls.at(-1)?.operation,
    hasPictures: parts.some(({ kind }) => kind === "image"),
    hasVoices: (receipt.files?.voices ?? 0) > 0,
    isCut: isCut === true,
    isEmpty: parts.length === 0,
  };
  return (Object.keys(replyButtons) as ReplyActionKind[])
    .map((kind) => ({ kind, ...declarationOf(kind) }))
    .filter(({ isOffered }) => isOffered(answer))
    .map(({ kind, namesAttempt }) => ({ kind, key: namesAttempt === true ? `${key} ${attempt}` : key }));
}

/** The parts of a key of {@link actionsOf}. */
interface ActionTarget {
  readonly conversationId: string;
  readonly messageId: string;
  /** The attempt whose answer has the button. Without it any attempt is meant. */
  readonly attempt?: number;
}

/** The answer that a key of {@link actionsOf} names, or `undefined` for another text. */
export function parseActionKey(key: string): ActionTarget | undefined {
  const [, conversationId, messageId, attempt] = /^(\S{1,500}) (\S{1,500}?)(?: (\d{1,9}))?$/.exec(key) ?? [];
  if (conversationId === undefined || messageId === undefined) return undefined;
  return {
    conversationId,
    messageId: messageId.startsWith("/") ? `${conversationId}${messageId}` : messageId,
    ...(attempt === undefined ? {} : { attempt: Number(attempt) }),
  };
}

/** The key of the turn that a press runs again into the same reply, if it is exactly one. */
export function changedTurnOf({ kind, key }: Press): string | undefined {
  if (kind === "confirm") return key;
  if (!isReplyActionKind(kind) || kind === "stop" || declarationOf(kind).changesReply === undefined)
    return undefined;
  return /^(.+)\/answer$/.exec(parseActionKey(key)?.messageId ?? "")?.[1];
}

/** A form that a person may open. */
export interface FormOffer {
  /** An opaque key of at most 100 characters. */
  readonly key: string;
  /** Says in at most 75 characters what it changes, for example "This channel: models". */
  readonly label: string;
  /** Where its settings apply, for example "This channel". */
  readonly scope: string;
  /** The layer whose settings it changes. */
  readonly layer: Layer;
  readonly group: SettingGroup;
}

/** One input of a form. */
export interface FormField {
  /** The key of its value. It has at most 32 characters. */
  readonly name: string;
  /** It has at most 45 characters. */
  readonly label: string;
  /** It has at most 100 characters. */
  readonly description: string;
  /** What the field shows at first. Empty means that nothing is set. */
  readonly value: string;
  /** Says in a sentence what is wrong with `value`, when the form is shown again. */
  readonly problem?: string;
  /**
   * What can be chosen, besides nothing. The field takes text if it is absent. A platform that cannot show so
   * many options takes text too, and submitted values are always checked.
   */
  readonly options?: readonly Choice[];
  /**
   * Set where the options are the models that support this operation. A platform with search while typing
   * asks {@link Receiver.suggestModels}.
   */
  readonly models?: ModelOperation;
  /** The longest text, at most 3,000 characters. */
  readonly maxChars: number;
  /** Whether a text may have several lines. */
  readonly isLong: boolean;
  /** Says in at most 100 characters what applies while nothing is set. */
  readonly placeholder: string;
  /** Whether it must be filled in. Default false. */
  readonly isRequired?: boolean;
}

/** A form of one to five fields. */
export interface Form {
  readonly key: string;
  /** It has at most 24 characters. */
  readonly title: string;
  /** Says in a sentence whom the changes affect. */
  readonly introduction: string;
  readonly fields: readonly FormField[];
  /** The label of the submit button, at most 24 characters. Default "Save". */
  readonly submitLabel?: string;
}
