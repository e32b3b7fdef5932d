import type { Author, Json, PictureRef } from "./events.ts";
import type { AnswerSource, Usage } from "./gateway.ts";
import type { LayerValues } from "./layered-settings.ts";
import type { Receipt } from "./receipt.ts";
import type { RoomState } from "./room.ts";

/** Stored data, and the ports of the store. Every failed operation throws `store-unavailable`. */

/** Names bytes that are stored with a conversation, by their SHA-256 in hex. */
export interface BlobRef {
  readonly hash: string;
  readonly mediaType: string;
  readonly sizeBytes: number;
}

/** Bytes that are stored with a conversation. */
export interface StoredBlob {
  readonly bytes: Uint8Array;
  readonly mediaType: string;
}

/** A piece of a stored message. */
export type MessagePart =
  | { readonly kind: "text"; readonly text: string }
  | { readonly kind: "image"; readonly blob: BlobRef; readonly name: string; readonly altText?: string }
  | { readonly kind: "image-link"; readonly url: string }
  /** Without `blob` the recording was too large to be kept. */
  | { readonly kind: "voice"; readonly blob?: BlobRef; readonly name: string; readonly text: string }
  | { readonly kind: "file"; readonly name: string; readonly text: string }
  | { readonly kind: "unread"; readonly name: string; readonly reason: string };

/** A command call as it is stored, to be made once more. */
export interface StoredCall {
  readonly name: string;
  readonly options: Readonly<Record<string, string | number | boolean>>;
  /** The picture that it changes. Default: those of the message itself. */
  readonly pictures?: readonly PictureRef[];
}

/** One message of a conversation. */
export interface StoredMessage {
  /** Opaque; made from `turnKey`, role and attempt, so that a message is stored once. */
  readonly id: string;
  readonly role: "user" | "assistant";
  /** Key of the event it answers (assistant: the first event of the turn) or comes from (user). */
  readonly turnKey: string;
  /** Assistant only: which run of the turn wrote it, from 1. */
  readonly attempt?: number;
  readonly author?: Author;
  readonly parts: readonly MessagePart[];
  /** Assistant only: what the model thought before it answered, as far as it told. Never sent to a model again. */
  readonly thoughts?: string;
  /** The command call that it is or, of an answer, that a model has asked for; without files. */
  readonly call?: StoredCall;
  readonly createdAt: number;
  /** User only: when its author made the edit that is stored. Unix milliseconds. */
  readonly editedAt?: number;
  /** `ceil(utf8 bytes / 4)` of its text, plus a constant per image; what the context window is measured in. */
  readonly estimatedTokens: number;
  /** Assistant only: how it ended. `failed` messages are shown to people and not sent to the model. */
  readonly outcome?: "complete" | "interrupted" | "failed";
  /** Why it failed or was interrupted, in words for people. */
  readonly failure?: string;
  /** Assistant only: the pages that it rests on, as the gateway has named them. Never sent to a model. */
  readonly sources?: readonly AnswerSource[];
  /** What was left out, cut or replaced, in words for people. */
  readonly notices?: readonly string[];
  readonly model?: string;
  readonly usage?: Usage;
  /** Assistant only: the name of the command that it answers. Absent: it answers messages. */
  readonly command?: string;
  /** Assistant only: the model ended it at its length limit, or it broke off; it can be continued. */
  readonly isCut?: boolean;
  /** Assistant only: how the answer came about. */
  readonly receipt?: Receipt;
  /** Assistant only: what people think of it. */
  readonly ratings?: Ratings;
  /** Assistant only: keys of the platform's messages that show it. Until its reply has ended: as far as known. */
  readonly shownAs?: readonly string[];
  /** Assistant only: the answers that stood in its place before, oldest first. No model reads them. */
  readonly versions?: readonly AnswerVersion[];
  /** False when it is shown to people only (a list of models), never sent to the model. Default true. */
  readonly inContext?: boolean;
  /** User only: said in the thread to others, by a person or an app. Context for the model, never a question. */
  readonly room?: { readonly isApp: boolean };
}

/** An answer in whose place another one stands. */
export interface AnswerVersion extends Pick<
  StoredMessage,
  "parts" | "thoughts" | "sources" | "notices" | "model" | "createdAt"
> {}

/** One line of a list of conversations. */
export interface ConversationSummary {
  readonly conversationId: string;
  readonly title: string;
  readonly updatedAt: number;
  /** {@link ConversationSettings.within} */
  readonly within?: readonly string[];
  readonly isPinned?: true;
}

/** Settings of one conversation. */
export interface ConversationSettings {
  /** Made from its messages: erased with them. */
  readonly title?: string | undefined;
  /** Given by people: shown in the place of the title. */
  readonly name?: string | undefined;
  /** It stands above all others in lists. */
  readonly isPinned?: true | undefined;
  /** Its `chat-model`; the other settings that people made for it are in `chosen`. */
  readonly model?: string | undefined;
  /** What people set for this conversation with `/settings`. */
  readonly chosen?: LayerValues;
  /** Id of the last message before `/reset`: models are sent only later messages. */
  readonly resetAfter?: string;
  /** Id of the last message with a picture since `/reset`: it can be meant long after it has left the context. */
  readonly lastPicture?: string | undefined;
  /** {@link IncomingEvent.within} */
  readonly within?: readonly string[];
  /** Which messages of the thread are answered, as `/chat` and `/dismiss` have set it. */
  readonly answerTo?: "mentions" | "every-message";
  /** Of a thread in which people talk with each other. */
  readonly room?: RoomState;
}

/** What is saved in the settings of a conversation together with a message. */
export interface NotedWithMessage {
  /** {@link IncomingEvent.within}: saved with the first message of a conversation, where no places are saved. */
  readonly within?: readonly string[] | undefined;
  /** Changes what is known of the room, and keeps the rest. */
  readonly room?: RoomState | undefined;
}

/**
 * The log of every conversation. Every failed operation throws `store-unavailable`; an outage never looks like an
 * empty conversation. An append costs the same at message 10 and at message 10,000.
 */
export interface Conversations {
  /** Adds a message at the end, and notes what goes with it. A known id changes nothing and returns `duplicate`. */
  append(
    conversationId: string,
    message: StoredMessage,
    noted?: NotedWithMessage,
  ): Promise<"appended" | "duplicate">;
  /**
   * Stores a message in the place of an earlier one of the same id, at the end where there is none. `refused`: a later
   * attempt has stored its own, or the message was erased. `earlier`, by default `erased`, says what becomes of the one
   * that was there:
   * - `erased`: it and its versions are gone from the service's files too.
   * - `version`: it is a version of `message` from now on.
   * - `continued`: its versions are those of `message`, which goes on in its words.
   */
  replace(
    conversationId: string,
    message: StoredMessage,
    earlier?: "erased" | "version" | "continued",
  ): Promise<"replaced" | "appended" | "refused">;
  /**
   * The newest messages, oldest first, until their texts have more than `maxChars` characters together, by default 8
   * million: with the oldest one they do.
   */
  recent(
    conversationId: string,
    options: { readonly maxMessages: number; readonly maxChars?: number },
  ): Promise<readonly StoredMessage[]>;
  /** The message of that id. */
  find(conversationId: string, messageId: string): Promise<StoredMessage | undefined>;
  /** Changes {@link StoredMessage.shownAs} of a message that is still stored. */
  setShownAs(conversationId: string, messageId: string, keys: readonly string[]): Promise<void>;
  /**
   * Changes one person's rating of an answer that is still stored; durable when it resolves. `forgetAuthor` erases it
   * with what the person wrote.
   */
  rate(conversationId: string, messageId: string, rated: PersonRating): Promise<RatingOutcome>;
  /** Whether it has messages or settings. */
  exists(conversationId: string): Promise<boolean>;
  /** Those of the conversations that exist. Two reads, however many they are. */
  existing(conversationIds: readonly string[]): Promise<readonly string[]>;
  settings(conversationId: string): Promise<ConversationSettings>;
  /** Merges into the saved settings; creates the conversation if it is new, so that `exists` is true from then on. */
  saveSettings(conversationId: string, settings: ConversationSettings): Promise<void>;
  /** The same for what can be found out anew: survives the end of the process, a power failure 250 ms later. */
  noteSettings(conversationId: string, settings: ConversationSettings): Promise<void>;
  /**
   * Saves in which places a conversation lies where none are saved. Survives the end of the process when it resolves,
   * a power failure 250 ms later: each turn does it anew.
   */
  savePlaces(conversationId: string, within: readonly string[]): Promise<void>;
  /**
   * Conversations whose id starts with `prefix`, the most recently active first. Pinned ones are among them even where
   * `max` others are more recent.
   */
  list(prefix: string, query: ConversationsQuery): Promise<readonly ConversationSummary[]>;
  /** Searches the messages and titles of a platform's conversations; `prefix` begins with the platform. */
  search(prefix: string, search: ConversationSearch): Promise<SearchPage>;
  /** Ids of the conversations within a place, as `settings.within` says; at a cost that depends on those alone. */
  listWithin(place: string): Promise<readonly string[]>;
  putBlob(conversationId: string, bytes: Uint8Array, mediaType: string): Promise<BlobRef>;
  getBlob(conversationId: string, hash: string): Promise<StoredBlob | undefined>;
}

/** What was erased, for the person who asked. */
export interface ErasureReport {
  readonly messages: number;
  readonly blobs: number;
  /** Conversations that were erased as a whole. */
  readonly conversations: number;
  /** Settings that the person made for themselves. Default 0. */
  readonly settings?: number;
  /** The person's ratings of answers that stay. Default 0. */
  readonly ratings?: number;
}

/** Which messages of a conversation to erase. */
export interface RemovedMessages {
  readonly ids: readonly string[];
  /** Also answers that one of these platform messages shows. */
  readonly shownAs?: readonly string[];
  /** Also files that no message shows; only while no turn runs in the conversation. */
  readonly withLooseFiles?: boolean;
}

/** Export and erasure of what is stored about people. Failures throw `store-unavailable`; each can be run again. */
export interface Archive {
  /** A conversation as files: `conversation.md`, `conversation.json`, pictures and voice notes. */
  exportConversation(conversationId: string): Promise<ConversationExport>;
  /**
   * Erases what one author wrote, in one conversation or (`undefined`) in all, with the files that no other message
   * shows, and the author's ratings of answers. Answers to others stay; a conversation in which nobody else wrote is erased as a whole. From all: also
   * what the author set for themselves.
   */
  forgetAuthor(conversationId: string | undefined, authorId: string): Promise<ErasureReport>;
  /** What `forgetAuthor` would erase. */
  countAuthor(conversationId: string | undefined, authorId: string): Promise<ErasureReport>;
  /**
   * Erases single messages, with the files that no other message shows; answers to them stay. `append` refuses the
   * ids as `duplicate` from then on, also those that were not stored yet.
   */
  removeMessages(conversationId: string, removed: RemovedMessages): Promise<ErasureReport>;
  /**
   * Replaces a stored message by one with the same id, at its position. What only the earlier one held is erased: its
   * words, its files, and the title made of it. False, and nothing is replaced: it is not stored, or its `editedAt` is
   * later than that of `message`.
   */
  replaceMessage(conversationId: string, message: StoredMessage): Promise<boolean>;
  /** Erases a conversation: messages, settings, files, answered events. */
  deleteConversation(conversationId: string): Promise<ErasureReport>;
}

/** One turn at a time in a conversation, in order, whichever process it runs in. */
export interface ConversationQueue {
  /** Whether other processes may run turns of the same conversations. */
  readonly isShared: boolean;
  /**
   * Runs `work` when all earlier work of the conversation has ended. The signal aborts when the conversation's lease
   * is lost.
   */
  run<T>(conversationId: string, work: (signal: AbortSignal) => Promise<T>): Promise<T>;
  /**
   * Like `run`, but waits for this process's own work only: false, and `work` is not run, when another process has
   * the conversation.
   */
  runUnlessTaken(conversationId: string, work: (signal: AbortSignal) => Promise<void>): Promise<boolean>;
  /** From now on work that has not started is rejected with `stopping`; running work continues. */
  close(): void;
  /** Resolves when nothing runs or waits. */
  idle(): Promise<void>;
}

/** Names that one process of all holds for some time. */
export interface Claims {
  /** Whether other processes share them. Otherwise every claim succeeds. */
  readonly isShared: boolean;
  /** False: another process holds it, or this one since an earlier claim. @throws ParleyError `store-unavailable` */
  claim(name: string, ttlMs: number): Promise<boolean>;
}

/** Small values by keys that their owner chooses, encrypted where the store is. Failures throw `store-unavailable`. */
export interface Records {
  get(key: string): Promise<Json | undefined>;
  /** `ttlMs`: how long it is kept; without it, for ever. Durable when it resolves. */
  set(key: string, value: Json, ttlMs?: number): Promise<void>;
  /** What is removed is gone from the store's files as well, as after `/forget`. */
  delete(key: string): Promise<void>;
}

/** What people give a conversation for their list of them. Absent: stays as it is. */
export interface ConversationLabels {
  /** At most 100 characters. Empty: its title again. */
  readonly name?: string;
  readonly isPinned?: boolean;
}

/** Which conversations are listed. */
export interface ConversationsQuery {
  readonly max: number;
  /** None whose id starts with that. */
  readonly without?: string | undefined;
  /** Only those. Default: all. */
  readonly isWanted?: ((conversationId: string) => boolean) | undefined;
}

/** What is looked for in conversations. */
export interface ConversationSearch {
  /** Words, all of which occur in one message or in the title. Upper and lower case and accents do not count. */
  readonly text: string;
  /** Most conversations of a page. */
  readonly max: number;
  /** The page ends after about this time, whatever was found by then. */
  readonly maxMs: number;
  /** {@link SearchPage.next} of the page before. Default: begins with the most recently active conversation. */
  readonly after?: string | undefined;
  /** Only in those. Default: in all. */
  readonly isWanted?: ((conversationId: string) => boolean) | undefined;
  readonly signal: AbortSignal;
}

/** A part of an excerpt. `isMatch`: a word that was looked for. */
export interface ExcerptPart {
  readonly text: string;
  readonly isMatch: boolean;
}

/** A conversation that was found. */
export interface FoundConversation {
  readonly conversationId: string;
  readonly title: string;
  /** Unix milliseconds. */
  readonly updatedAt: number;
  /** The latest message with the words. Absent: only the title has them. */
  readonly message?: {
    readonly turnKey: string;
    readonly role: "user" | "assistant";
    /** About 200 characters around the first of the words, on one line. */
    readonly excerpt: readonly ExcerptPart[];
  };
}

/** A part of what a search finds, the most recently active conversations first. `next` absent: all were searched. */
export interface SearchPage {
  readonly found: readonly FoundConversation[];
  readonly next?: string;
}

/** A file of an export. */
export interface ExportedFile {
  /** A plain file name, safe on every system. */
  readonly name: string;
  readonly mediaType: string;
  /** The bytes, read in pieces as they are consumed. None: the file is no longer stored. */
  read(): AsyncIterable<Uint8Array>;
}

/** A conversation as files. */
export interface ConversationExport {
  /** The one that was set, else the beginning of the first message. */
  readonly title: string;
  /** `conversation.md`, `conversation.json`, then pictures and voice notes. */
  readonly files: readonly ExportedFile[];
}

/** What a person thinks of an answer. */
export type Rating = "good" | "bad";

/** Each person's rating of an answer, by an opaque name of theirs that is different for each answer. */
type Ratings = Readonly<Record<string, Rating>>;

/** What one person thinks of an answer. */
interface PersonRating {
  /** `Author.id` */
  readonly personId: string;
  readonly rating: Rating;
}

/**
 * - `rated`: it is stored; an earlier one of the same person is replaced.
 * - `unchanged`: the person had said the same.
 * - `gone`: the answer is no longer stored.
 */
export type RatingOutcome = "rated" | "unchanged" | "gone";

/** Most people whose ratings of one answer are kept. Those of others change nothing. */
export const maxRatings = 100;

/** Whether a word that a platform delivers is a rating. */
export function isRating(word: string): word is Rating {
  return word === "good" || word === "bad";
}

/** Characters of the messages of one read, where nobody asks for others. No model's context holds more. */
export const maxRecentChars = 8_000_000;

/** Characters of all texts of messages: what people wrote, recordings, files and earlier versions included. */
export function charsOf(messages: readonly Pick<StoredMessage, "parts" | "versions">[]): number {
  let chars = 0;
  for (const { parts, versions } of messages) {
    for (const part of parts) if ("text" in part) chars += part.text.length;
    if (versions !== undefined) chars += charsOf(versions);
  }
  return chars;
}

/** Most versions of one answer that are kept besides the newest. */
const maxVersions = 10;
/** Characters of the texts of these versions together. */
const maxVersionChars = 200_000;

/** The newest versions within the bounds. */
export function boundVersions(versions: readonly AnswerVersion[]): readonly AnswerVersion[] {
  const kept = versions.slice(-maxVersions);
  while (charsOf(kept) > maxVersionChars) kept.shift();
  return kept;
}

/** What is kept of an answer as a version: none where it shows nothing. */
export function toVersions(answer: StoredMessage): readonly AnswerVersion[] {
  const { parts, thoughts, sources, model, createdAt, failure } = answer;
  if (!parts.some((part) => part.kind === "image" || ("text" in part && part.text.trim() !== ""))) return [];
  const notices = [...(answer.notices ?? []), ...(failure === undefined ? [] : [failure])];
  return [
    {
      parts,
      createdAt,
      ...(thoughts === undefined ? {} : { thoughts }),
      ...(sources === undefined ? {} : { sources }),
      ...(notices.length === 0 ? {} : { notices }),
      ...(model === undefined ? {} : { model }),
    },
  ];
}
