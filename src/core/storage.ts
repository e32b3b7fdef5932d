import type { Author, Json, PictureRef } from "./events.ts";
import type { AnswerSource, Usage } from "./gateway.ts";
import type { LayerValues } from "./layered-settings.ts";
import type { Receipt } from "./receipt.ts";
import type { RoomState } from "./room.ts";

/** The stored data and the ports of the store. Every failed operation throws `store-unavailable`. */

/** Identifies bytes that are stored with a conversation by their SHA-256 in hex. */
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

/**
 * When the words from one place of a transcript on are spoken, in seconds. The words stand in the transcript
 * alone, so that correcting or erasing it leaves nothing of them here.
 */
export interface WordTime {
  /** The index of their first character. */
  readonly at: number;
  readonly from: number;
  readonly to?: number;
}

/** A part of a stored message. */
export type MessagePart =
  | { readonly kind: "text"; readonly text: string }
  | { readonly kind: "image"; readonly blob: BlobRef; readonly name: string; readonly altText?: string }
  | { readonly kind: "image-link"; readonly url: string }
  | {
      readonly kind: "voice";
      /** It is absent where the recording was too large to be kept. */
      readonly blob?: BlobRef;
      readonly name: string;
      readonly text: string;
      /** When its words are spoken, in order, as far as the gateway has told. */
      readonly times?: readonly WordTime[];
    }
  | { readonly kind: "file"; readonly name: string; readonly text: string }
  | { readonly kind: "unread"; readonly name: string; readonly reason: string };

/** A command call as it is stored, so that it can be made once more. */
export interface StoredCall {
  readonly name: string;
  readonly options: Readonly<Record<string, string | number | boolean>>;
  /** The pictures that it changes. By default these are the pictures of its own message. */
  readonly pictures?: readonly PictureRef[];
}

/** One message of a conversation. */
export interface StoredMessage {
  /** Opaque. It is made from `turnKey`, role and attempt, so that a message is stored once. */
  readonly id: string;
  readonly role: "user" | "assistant";
  /** The key of the event that it comes from, or that an answer's turn answers first. */
  readonly turnKey: string;
  /** Assistant only: the number of the turn's attempt that wrote it, from 1. */
  readonly attempt?: number;
  readonly author?: Author;
  readonly parts: readonly MessagePart[];
  /** Assistant only: the model's thoughts before its answer, if it told them. No model is sent them again. */
  readonly thoughts?: string;
  /** The command call that it is or, for an answer, that a model has requested. It holds no files. */
  readonly call?: StoredCall;
  readonly createdAt: number;
  /** User only: when its author made the stored edit, in Unix milliseconds. */
  readonly editedAt?: number;
  /** The size for the context window: `ceil(utf8 bytes / 4)` of its text plus a constant per image. */
  readonly estimatedTokens: number;
  /** Assistant only: how it ended. People see `failed` messages, but no model is sent them. */
  readonly outcome?: "complete" | "interrupted" | "failed";
  /** Says in words for people why it failed or was interrupted. */
  readonly failure?: string;
  /** Assistant only: the pages that the gateway named as its sources. No model is sent them. */
  readonly sources?: readonly AnswerSource[];
  /** What was left out, cut or replaced, in words for people. */
  readonly notices?: readonly string[];
  readonly model?: string;
  readonly usage?: Usage;
  /** Assistant only: the command that it answers. It is absent in answers to messages. */
  readonly command?: string;
  /** Assistant only: the model ended it at its length limit, or it broke off; it can be continued. */
  readonly isCut?: boolean;
  /** Assistant only: how the answer was made. */
  readonly receipt?: Receipt;
  /** Assistant only: how people rated it. */
  readonly ratings?: Ratings;
  /** Assistant only: keys of the platform's messages that show it, as far as known until its reply ends. */
  readonly shownAs?: readonly string[];
  /** Assistant only: the answers that it replaced, oldest first. No model reads them. */
  readonly versions?: readonly AnswerVersion[];
  /** False if only people see it (a list of models) and no model is sent it. Default true. */
  readonly inContext?: boolean;
  /** User only: a person or an app said it in the thread to others. It is context, never a question. */
  readonly room?: { readonly isApp: boolean };
}

/** An answer that another one has replaced. */
export interface AnswerVersion extends Pick<
  StoredMessage,
  "parts" | "thoughts" | "sources" | "notices" | "model" | "createdAt"
> {}

/** A conversation in a list. */
export interface ConversationSummary {
  readonly conversationId: string;
  readonly title: string;
  readonly updatedAt: number;
  /** The same as {@link ConversationSettings.within}. */
  readonly within?: readonly string[];
  readonly isPinned?: true;
}

/** Settings of one conversation. */
export interface ConversationSettings {
  /** A title made from the conversation's messages, which is erased with them. */
  readonly title?: string | undefined;
  /** A name that people gave. It is shown instead of the title. */
  readonly name?: string | undefined;
  /** Whether it stands above all others in lists. */
  readonly isPinned?: true | undefined;
  /** The value of `chat-model`. `chosen` holds the other settings that people made for it. */
  readonly model?: string | undefined;
  /** What people set for this conversation with `/settings`. */
  readonly chosen?: LayerValues;
  /** The id of the last message before `/reset`. Models are sent only later messages. */
  readonly resetAfter?: string;
  /** The id of the last message with a picture since `/reset`. People may mean it long afterwards. */
  readonly lastPicture?: string | undefined;
  /** The same as {@link IncomingEvent.within}. */
  readonly within?: readonly string[];
  /** `/chat` gave people's thread to the bot (`every-message`), or `/dismiss` sent it away (`mentions`). */
  readonly answerTo?: "mentions" | "every-message";
  /** The state of a thread in which people talk with each other. */
  readonly room?: RoomState;
  /** When people last talked to others in the bot's thread. */
  readonly aside?: AsideTimes | undefined;
}

/** Since the last reading: the first and the last of what was said to others, in Unix milliseconds. */
export interface AsideTimes {
  readonly from: number;
  readonly to: number;
  /** When people said something with words, where the thread's default decided. */
  readonly words?: { readonly from: number; readonly to: number };
  /** More than one person writes there. */
  readonly isShared?: boolean;
}

/** Settings of a conversation that are saved together with a message. */
export interface NotedWithMessage {
  /** The {@link IncomingEvent.within} of the event. It is saved if the conversation has no places yet. */
  readonly within?: readonly string[] | undefined;
  /** Changes to the known state of the room. The rest is kept. */
  readonly room?: RoomState | undefined;
}

/** A model's summary of the beginning of a conversation, in place of messages that no longer fit it. */
export interface RollingSummary {
  readonly text: string;
  /** It covers the positions of the log from `from` up to before `until`. */
  readonly from: number;
  readonly until: number;
  /** The number of messages that it sums up. */
  readonly messages: number;
  /** What its requests have cost so far in USD, if they have known prices. */
  readonly costUsd?: number;
  /** Whether a part of `costUsd` is estimated. */
  readonly isEstimated?: true;
}

/** Which messages {@link Conversations.sumUp} takes. */
interface SummaryBounds {
  /** {@link ConversationSettings.resetAfter} */
  readonly resetAfter: string | undefined;
  /** The id of the first message that need not be covered. */
  readonly before: string;
  /** The id of a later message up to which it may reach, so that the next turns need no further step. */
  readonly ahead: string;
  /** Messages are taken until their sizes exceed `maxSize` together, and at least one. */
  readonly sizeOf: (message: StoredMessage) => number;
  readonly maxSize: number;
}

/** The result of {@link Conversations.sumUp}. */
export interface SummedUp {
  readonly summary: RollingSummary | undefined;
  /** Whether it covers every message before {@link SummaryBounds.before}. */
  readonly isComplete: boolean;
}

/**
 * The log of every conversation. Every failed operation throws `store-unavailable`, so an outage never looks
 * like an empty conversation. An append costs the same at message 10 and at message 10,000.
 */
export interface Conversations {
  /** Adds a message at the end with the noted settings. It returns `duplicate` for a known id. */
  append(
    conversationId: string,
    message: StoredMessage,
    noted?: NotedWithMessage,
  ): Promise<"appended" | "duplicate">;
  /**
   * The newest messages, oldest first. It stops after the message with which their texts exceed `maxChars`
   * characters together, by default 8 million.
   */
  recent(
    conversationId: string,
    options: { readonly maxMessages: number; readonly maxChars?: number },
  ): Promise<readonly StoredMessage[]>;
  /** The summary of the conversation's beginning, if there is one. */
  summary(conversationId: string): Promise<RollingSummary | undefined>;
  /**
   * Carries the summary on by one step: `make` gets the summary so far and the next messages, and what it
   * returns is stored over that summary. Nothing is made if the summary already reaches to `bounds.before`.
   * It is not stored, and the result is `undefined`, if it or one of the messages was changed or erased
   * meanwhile. Its entry is erased with each message that it covers, and by a reset.
   * @throws what `make` throws, after which the stored summary is the one from before
   */
  sumUp(
    conversationId: string,
    bounds: SummaryBounds,
    make: (
      before: RollingSummary | undefined,
      messages: readonly StoredMessage[],
    ) => Promise<Pick<RollingSummary, "text" | "costUsd" | "isEstimated">>,
  ): Promise<SummedUp>;
  /** The message with that id, or the one with which the conversation began, if it is still stored. */
  find(
    conversationId: string,
    which: string | { readonly isFirst: true },
  ): Promise<StoredMessage | undefined>;
  /**
   * Changes one person's rating of an answer that is still stored; durable when it resolves. `forgetAuthor`
   * erases it with what the person wrote.
   */
  rate(conversationId: string, messageId: string, rated: PersonRating): Promise<RatingOutcome>;
  /** Those of the conversations that have, or had, messages or settings. It takes one read. */
  existing(conversationIds: readonly string[]): Promise<readonly string[]>;
  settings(conversationId: string): Promise<ConversationSettings>;
  /**
   * Merges into the saved settings. What depends on the latest ones is given as a function of them, which
   * runs again if another writer was faster, and returns `undefined` to change nothing. A new conversation is
   * created, so that `exists` returns true. `soon` is for what can be found out again: it survives the end of
   * the process, and a power failure once a later write was waited for.
   */
  saveSettings(
    conversationId: string,
    change: ConversationSettings | ((latest: ConversationSettings) => ConversationSettings | undefined),
    resolves?: "durable" | "soon",
  ): Promise<void>;
  /** Ids of the conversations whose `settings.within` has the place. The cost depends only on them. */
  listWithin(place: string): Promise<readonly string[]>;
  putBlob(conversationId: string, bytes: Uint8Array, mediaType: string): Promise<BlobRef>;
  getBlob(conversationId: string, hash: string): Promise<StoredBlob | undefined>;
}

/** Finds conversations for people. */
export interface ConversationLists {
  /**
   * Conversations whose id starts with `prefix`, which begins with the platform, the most recently active
   * first. Pinned ones are included even if `max` others are more recent.
   */
  list(prefix: string, query: ConversationsQuery): Promise<readonly ConversationSummary[]>;
  /** Searches messages and titles of a platform's conversations. `prefix` begins with the platform. */
  search(prefix: string, search: ConversationSearch): Promise<SearchPage>;
}

/** What was erased, for the person who asked. */
export interface ErasureReport {
  readonly messages: number;
  readonly blobs: number;
  /** The number of conversations that were erased as a whole. */
  readonly conversations: number;
  /** The number of settings that the person made for themselves. */
  readonly settings: number;
  /** The person's ratings of answers that stay. */
  readonly ratings: number;
}

/** Which messages of a conversation are to be erased. */
export interface RemovedMessages {
  readonly ids: readonly string[];
  /** Also erases answers that one of these platform messages shows. */
  readonly shownAs?: readonly string[];
  /** Also erases files that no message shows. It is allowed only while no turn runs in the conversation. */
  readonly withLooseFiles?: boolean;
}

/** Export and erasure of data about people. It throws `store-unavailable`, and each call can be repeated. */
export interface Archive {
  /** Exports `conversation.md`, `conversation.json`, pictures and voice notes of a conversation. */
  exportConversation(conversationId: string): Promise<ConversationExport>;
  /**
   * Erases what one author wrote, in one conversation or (`undefined`) in all, with the files that no other
   * message shows, and the author's ratings of answers. Answers to others stay; a conversation in which
   * nobody else wrote is erased as a whole. From all: also what the author set for themselves.
   */
  forgetAuthor(conversationId: string | undefined, authorId: string): Promise<ErasureReport>;
  /** Counts what `forgetAuthor` would erase. */
  countAuthor(conversationId: string | undefined, authorId: string): Promise<ErasureReport>;
  /**
   * Erases single messages with the files that no other message shows. Answers to them stay. `append` then
   * returns `duplicate` for these ids, even if they were never stored.
   */
  removeMessages(conversationId: string, removed: RemovedMessages): Promise<ErasureReport>;
  /**
   * Replaces a stored message by one with the same id at its position. It erases what only the earlier one
   * had: its words, its files, and the title made from it. It returns false and replaces nothing if the
   * message is not stored, or if its `editedAt` is later than that of `message`.
   */
  replaceMessage(conversationId: string, message: StoredMessage): Promise<boolean>;
  /** Erases a conversation's messages, settings, files and answered events. */
  deleteConversation(conversationId: string): Promise<ErasureReport>;
}

/**
 * Work of whoever holds a conversation. The signal aborts when the lease of the conversation is lost.
 * `isFresh` says whether the lease is still valid, also in a process that was paused and has not noticed its
 * loss.
 */
type HeldWork<T> = (lost: AbortSignal, isFresh: () => boolean) => Promise<T>;

/** Runs the turns of a conversation one at a time and in order, over all processes. */
export interface ConversationQueue {
  /** Whether other processes may run turns of the same conversations. */
  readonly isShared: boolean;
  /**
   * Runs `work` after all earlier work of the conversation has ended.
   */
  run<T>(conversationId: string, work: HeldWork<T>): Promise<T>;
  /**
   * Like `run`, but it waits only for this process's own work. It returns false, without running `work`, if
   * another process has the conversation.
   */
  runUnlessTaken(conversationId: string, work: HeldWork<void>): Promise<boolean>;
  /** Rejects work that has not started, now and later, with `stopping`. Running work continues. */
  close(): void;
  /** Resolves when no work runs or waits. */
  idle(): Promise<void>;
}

/** Names that only one of all processes can hold for some time. */
export interface Claims {
  /** Whether other processes share the claims. Otherwise every claim succeeds. */
  readonly isShared: boolean;
  /** False while any process holds the name, this one included. @throws ParleyError `store-unavailable` */
  claim(name: string, ttlMs: number): Promise<boolean>;
}

/** Small values by keys, encrypted where the store is encrypted. Failures throw `store-unavailable`. */
export interface Records {
  get(key: string): Promise<Json | undefined>;
  /** Stores a value for `ttlMs`, or for ever without it. The value is durable when this resolves. */
  set(key: string, value: Json, ttlMs?: number): Promise<void>;
  /**
   * Stores what `change` makes of a value, for `ttlMs` or for ever, or nothing where it returns `undefined`.
   * It is called again where somebody else has changed the value meanwhile, so that no change is lost.
   * @throws what `change` throws
   */
  update(key: string, change: (value: Json | undefined) => Json | undefined, ttlMs?: number): Promise<void>;
  /** Removes a value, also from the store's files, like `/forget`. */
  delete(key: string): Promise<void>;
}

/** What people change about a conversation in their list. An absent field stays as it is. */
export interface ConversationLabels {
  /** It has at most 100 characters. An empty name restores the title. */
  readonly name?: string;
  readonly isPinned?: boolean;
}

/** Which conversations are listed. */
export interface ConversationsQuery {
  readonly max: number;
  /** Leaves out conversations whose id starts with this. */
  readonly without?: string | undefined;
  /** Selects the conversations to list. Default: all. */
  readonly isWanted?: ((conversationId: string) => boolean) | undefined;
}

/** What is searched in conversations. */
export interface ConversationSearch {
  /** Words that must all be in one message or in the title. Case and accents do not matter. */
  readonly text: string;
  /** The highest number of conversations on a page. */
  readonly max: number;
  /** The page ends after about this time, whatever was found by then. */
  readonly maxMs: number;
  /** The {@link SearchPage.next} of the page before. By default the most recently active one comes first. */
  readonly after?: string | undefined;
  /** Selects the conversations to search. Default: all. */
  readonly isWanted?: ((conversationId: string) => boolean) | undefined;
  readonly signal: AbortSignal;
}

/** A part of an excerpt. `isMatch` marks a word that was searched for. */
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
  /** The latest message with the words. It is absent if only the title has them. */
  readonly message?: {
    readonly turnKey: string;
    readonly role: "user" | "assistant";
    /** About 200 characters around the first of the words, on one line. */
    readonly excerpt: readonly ExcerptPart[];
  };
}

/** A page of results, the most recently active first. Without `next` everything was searched. */
export interface SearchPage {
  readonly found: readonly FoundConversation[];
  readonly next?: string;
}

/** A file of an export. */
export interface ExportedFile {
  /** A plain file name, safe on every system. */
  readonly name: string;
  readonly mediaType: string;
  /** Reads the bytes in pieces as they are consumed. There are none if the file is no longer stored. */
  read(): AsyncIterable<Uint8Array>;
}

/** A conversation as files. */
export interface ConversationExport {
  /** The title that was set, or else the beginning of the first message. */
  readonly title: string;
  /** `conversation.md` and `conversation.json`, followed by pictures and voice notes. */
  readonly files: readonly ExportedFile[];
}

/** A person's opinion of an answer. */
export type Rating = "good" | "bad";

/** Each person's rating of an answer, by an opaque name that differs for each answer. */
type Ratings = Readonly<Record<string, Rating>>;

/** One person's rating of an answer. */
interface PersonRating {
  /** `Author.id` */
  readonly personId: string;
  readonly rating: Rating;
}

/**
 * - `rated`: it is stored and replaces an earlier rating by the same person.
 * - `unchanged`: the person had given the same rating before.
 * - `gone`: the answer is no longer stored.
 */
export type RatingOutcome = "rated" | "unchanged" | "gone";

/** How many people's ratings of one answer are kept. Ratings of further people change nothing. */
export const maxRatings = 100;

/** Whether a word that a platform delivers is a rating. */
export function isRating(word: string): word is Rating {
  return word === "good" || word === "bad";
}

/** The default limit for the characters of the messages of one read. No model's context holds more. */
export const maxRecentChars = 8_000_000;

/** Counts the characters of people's texts, recordings, files and earlier versions in messages. */
export function charsOf(messages: readonly Pick<StoredMessage, "parts" | "versions">[]): number {
  let chars = 0;
  for (const { parts, versions } of messages) {
    for (const part of parts) if ("text" in part) chars += part.text.length;
    if (versions !== undefined) chars += charsOf(versions);
  }
  return chars;
}

/** How many versions of an answer are kept besides the newest. */
const maxVersions = 10;
/** The highest number of characters in the texts of these versions together. */
const maxVersionChars = 200_000;

/** Keeps the newest versions within these limits. */
export function boundVersions(versions: readonly AnswerVersion[]): readonly AnswerVersion[] {
  const kept = versions.slice(-maxVersions);
  while (charsOf(kept) > maxVersionChars) kept.shift();
  return kept;
}

/** Makes a version of an answer, or none if the answer shows nothing. */
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
