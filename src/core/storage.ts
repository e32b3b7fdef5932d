import type { Author, ReplyAddress, IncomingEvent } from "./events.ts";
import type { Usage } from "./gateway.ts";
import type { Receipt } from "./receipt.ts";
import type { LayerChange, LayerValues } from "./layered-settings.ts";

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
  | { readonly kind: "voice"; readonly blob: BlobRef; readonly name: string; readonly text: string }
  | { readonly kind: "file"; readonly name: string; readonly text: string }
  | { readonly kind: "unread"; readonly name: string; readonly reason: string };

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
  readonly createdAt: number;
  /** `ceil(utf8 bytes / 4)` of its text, plus a constant per image; what the context window is measured in. */
  readonly estimatedTokens: number;
  /** Assistant only: how it ended. `failed` messages are shown to people and not sent to the model. */
  readonly outcome?: "complete" | "interrupted" | "failed";
  /** Why it failed or was interrupted, in words for people. */
  readonly failure?: string;
  /** What was left out, cut or replaced, in words for people. */
  readonly notices?: readonly string[];
  readonly model?: string;
  readonly usage?: Usage;
  /** Assistant only: how the answer came about. */
  readonly receipt?: Receipt;
  /** Assistant only: keys of the platform's messages that show it. Until its reply has ended: as far as known. */
  readonly shownAs?: readonly string[];
  /** False when it is shown to people only (a list of models), never sent to the model. Default true. */
  readonly inContext?: boolean;
}

/** One line of a list of conversations. */
export interface ConversationSummary {
  readonly conversationId: string;
  readonly title: string;
  readonly updatedAt: number;
  /** {@link ConversationSettings.within} */
  readonly within?: readonly string[];
}

/** Settings of one conversation. */
export interface ConversationSettings {
  readonly title?: string;
  /** Its `chat-model`; the other settings that people made for it are in `chosen`. */
  readonly model?: string | undefined;
  /** What people set for this conversation with `/settings`. */
  readonly chosen?: LayerValues;
  /** Id of the last message before `/reset`: models are sent only later messages. */
  readonly resetAfter?: string;
  /** {@link IncomingEvent.within} */
  readonly within?: readonly string[];
}

/**
 * The log of every conversation. Every failed operation throws `store-unavailable`; an outage never looks like an
 * empty conversation. An append costs the same at message 10 and at message 10,000.
 */
export interface Conversations {
  /** Adds a message at the end. A known id changes nothing and returns `duplicate`. */
  append(conversationId: string, message: StoredMessage): Promise<"appended" | "duplicate">;
  /** The newest messages, oldest first. */
  recent(
    conversationId: string,
    options: { readonly maxMessages: number },
  ): Promise<readonly StoredMessage[]>;
  /** The message of that id. */
  find(conversationId: string, messageId: string): Promise<StoredMessage | undefined>;
  /** Changes {@link StoredMessage.shownAs} of a message that is still stored. */
  setShownAs(conversationId: string, messageId: string, keys: readonly string[]): Promise<void>;
  /** Whether it has messages or settings. */
  exists(conversationId: string): Promise<boolean>;
  settings(conversationId: string): Promise<ConversationSettings>;
  /** Merges into the saved settings; creates the conversation if it is new, so that `exists` is true from then on. */
  saveSettings(conversationId: string, settings: ConversationSettings): Promise<void>;
  /**
   * Saves in which places a conversation lies where none are saved. Survives the end of the process when it resolves,
   * a power failure 250 ms later: each turn does it anew.
   */
  savePlaces(conversationId: string, within: readonly string[]): Promise<void>;
  /** Conversations whose id starts with `prefix` and not with `without`, the most recently active first. */
  list(
    prefix: string,
    options: { readonly max: number; readonly without?: string | undefined },
  ): Promise<readonly ConversationSummary[]>;
  /** Ids of the conversations within a place, as `settings.within` says; at a cost that depends on those alone. */
  listWithin(place: string): Promise<readonly string[]>;
  putBlob(conversationId: string, bytes: Uint8Array, mediaType: string): Promise<BlobRef>;
  getBlob(conversationId: string, hash: string): Promise<StoredBlob | undefined>;
}

/** What people set for servers, channels and persons; the holder's id is opaque. Failures throw `store-unavailable`. */
export interface SettingsStore {
  /** The values of each holder, in their order; `{}` where nothing is set. One round trip. */
  read(holders: readonly string[]): Promise<readonly LayerValues[]>;
  /** Changes some values of a holder and keeps the others. Durable when it resolves. */
  change(holder: string, change: LayerChange): Promise<void>;
  /** Removes everything that is set for a holder. */
  erase(holder: string): Promise<void>;
}

/** What was erased, for the person who asked. */
export interface ErasureReport {
  readonly messages: number;
  readonly blobs: number;
  /** Conversations that were erased as a whole. */
  readonly conversations: number;
  /** Settings that the person made for themselves. Default 0. */
  readonly settings?: number;
}

/** Which messages of a conversation to erase. */
export interface RemovedMessages {
  readonly ids: readonly string[];
  /** Also answers that one of these platform messages shows. */
  readonly shownAs?: readonly string[];
  /** Also files that no message shows; only while no turn runs in the conversation. */
  readonly withLooseFiles?: boolean;
}

/** A file of an export. */
export interface ExportedFile {
  /** A plain file name, safe on every system. */
  readonly name: string;
  readonly mediaType: string;
  readonly bytes: Uint8Array;
}

/** Export and erasure of what is stored about people. Failures throw `store-unavailable`; each can be run again. */
export interface Archive {
  /** A conversation as files: `conversation.md`, `conversation.json`, pictures and voice notes. */
  exportConversation(conversationId: string): Promise<readonly ExportedFile[]>;
  /**
   * Erases what one author wrote, in one conversation or (`undefined`) in all, with the files that no other message
   * shows. Answers to others stay; a conversation in which nobody else wrote is erased as a whole. From all: also
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
  /** Erases a conversation: messages, settings, files, answered events. */
  deleteConversation(conversationId: string): Promise<ErasureReport>;
}

/** Progress of an accepted event's turn; saved before each step that a crash must not repeat. */
export interface TurnProgress {
  /** Keys of all events answered by this turn's one reply, in order; the first is the turn's own. */
  readonly keys: readonly string[];
  readonly address: ReplyAddress;
  /** How often the turn was started, the current run included. */
  readonly attempts: number;
}

/** An accepted event. */
export interface InboxEntry {
  readonly event: IncomingEvent;
  readonly acceptedAt: number;
  /** On the first event of a turn only. */
  readonly turn?: TurnProgress;
  /** Its content is erased: only the reply of its turn is still to be ended. */
  readonly isWithdrawn?: true;
}

/** Durable record of accepted events. Failures throw `store-unavailable`. */
export interface Inbox {
  /** Set-if-absent under `event.key`, durable before it resolves. */
  accept(event: IncomingEvent): Promise<"accepted" | "duplicate">;
  /**
   * Saves the progress of a run for the first time, which claims this attempt at each of its events. False, and
   * nothing is saved: another process has claimed it. A store for one process grants every claim.
   */
  claimTurn(turn: TurnProgress): Promise<boolean>;
  /**
   * Saves later progress of the run. False, and nothing is saved: another process has claimed a later attempt. Survives
   * the end of the process when it resolves; a power failure 250 ms later, or with `isDurable` too.
   */
  saveTurn(turn: TurnProgress, options?: { readonly isDurable?: boolean }): Promise<boolean>;
  /** Set-if-absent, like `accept`: from then on the key is a `duplicate` that nobody answers. `accepted`: it was known. */
  refuse(key: string): Promise<"refused" | "accepted">;
  /**
   * Marks events as answered; `accept` returns `duplicate` for their keys for a day. Survives the end of the process
   * when it resolves, a power failure 250 ms later: by then the answer is stored, and would only be shown again.
   * False, and nothing is closed: another process has claimed an attempt after `attempts`.
   */
  close(keys: readonly string[], options?: { readonly attempts?: number }): Promise<boolean>;
  /** Reopens a closed entry (Retry). `undefined`: it has expired. */
  reopen(key: string): Promise<InboxEntry | undefined>;
  /** The known entries of these keys, answered or not. */
  lookUp(keys: readonly string[]): Promise<readonly InboxEntry[]>;
  /**
   * Erases the content of events and closes them; `accept` returns `duplicate` for a day. Keys may be unknown so far. A
   * turn that answers other open events too is theirs from then on. `keepsReplies`: of any other turn that has begun the
   * event stays open, as withdrawn, until it is closed.
   */
  withdraw(keys: readonly string[], options?: { readonly keepsReplies?: boolean }): Promise<void>;
  /** Whether the event is unanswered: another process may have answered it meanwhile. */
  isOpen(key: string): Promise<boolean>;
  /** All open entries, oldest first. */
  listOpen(): Promise<readonly InboxEntry[]>;
  /** Those of one conversation (`event.conversationId`), oldest first; at a cost that depends on those alone. */
  listOpenIn(conversationId: string): Promise<readonly InboxEntry[]>;
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
