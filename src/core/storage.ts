import type { Author, ReplyAddress, IncomingEvent } from "./events.ts";
import type { Usage } from "./gateway.ts";

/** What is kept, and the ports of the store. Every failed operation throws `store-unavailable`. */

/** Bytes kept beside a conversation, named by their SHA-256 in hex. */
export interface BlobRef {
  readonly hash: string;
  readonly mediaType: string;
  readonly sizeBytes: number;
}

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
  /** `ceil(utf8 bytes / 4)` of its text, plus a constant an image: the measure of the context window. */
  readonly estimatedTokens: number;
  /** Assistant only: how it ended. `failed` messages are shown to people and not sent to the model. */
  readonly outcome?: "complete" | "interrupted" | "failed";
  /** Why it failed or was interrupted, in words for people. */
  readonly failure?: string;
  /** What was left out, cut or replaced, in words for people. */
  readonly notices?: readonly string[];
  readonly model?: string;
  readonly usage?: Usage;
  /** Assistant only: keys of the platform's messages that show it, as far as they were known when it was kept. */
  readonly shownAs?: readonly string[];
  /** False where it is shown to people only (a list of models), never sent to the model. Default true. */
  readonly inContext?: boolean;
}

export interface ConversationSummary {
  readonly conversationId: string;
  readonly title: string;
  readonly updatedAt: number;
}

/** What holds for one conversation. */
export interface ConversationSettings {
  readonly title?: string;
  readonly model?: string;
  /** Id of the last message before `/reset`: models are sent only what comes after it. */
  readonly resetAfter?: string;
  /** {@link IncomingEvent.within} */
  readonly within?: readonly string[];
}

/**
 * The log of every conversation. Every failed operation throws `store-unavailable`; an outage is never an empty
 * answer. An append costs the same at message 10 and at message 10,000.
 */
export interface Conversations {
  /** Adds a message at the end. The same id again changes nothing and answers `duplicate`. */
  append(conversationId: string, message: StoredMessage): Promise<"appended" | "duplicate">;
  /** The last messages, oldest first. */
  recent(
    conversationId: string,
    options: { readonly maxMessages: number },
  ): Promise<readonly StoredMessage[]>;
  /** The message of that id among the newest 200, for recovery. */
  find(conversationId: string, messageId: string): Promise<StoredMessage | undefined>;
  exists(conversationId: string): Promise<boolean>;
  settings(conversationId: string): Promise<ConversationSettings>;
  /** Merges into what is there; creates the conversation where it is new, so that `exists` is true from then on. */
  saveSettings(conversationId: string, settings: ConversationSettings): Promise<void>;
  /** Conversations whose id starts with `prefix`, last spoken in first. */
  list(prefix: string, options: { readonly max: number }): Promise<readonly ConversationSummary[]>;
  /** Ids of the conversations within a place, as `settings.within` says; at a cost that depends on those alone. */
  listWithin(place: string): Promise<readonly string[]>;
  putBlob(conversationId: string, bytes: Uint8Array, mediaType: string): Promise<BlobRef>;
  getBlob(conversationId: string, hash: string): Promise<StoredBlob | undefined>;
}

/** What was removed, to be said to the person who asked. */
export interface ErasureReport {
  readonly messages: number;
  readonly blobs: number;
  /** Conversations that are gone as a whole. */
  readonly conversations: number;
}

/** Which messages of a conversation are to go. */
export interface RemovedMessages {
  readonly ids: readonly string[];
  /** Answers that one of these platform messages shows. */
  readonly shownAs?: readonly string[];
  /** Files that no message shows as well: only while no turn runs there. */
  readonly withLooseFiles?: boolean;
}

/** A file to take along. */
export interface ExportedFile {
  /** A plain file name, safe on every system. */
  readonly name: string;
  readonly mediaType: string;
  readonly bytes: Uint8Array;
}

/** What people may ask of what is kept of them. Failures throw `store-unavailable`; each can be run again. */
export interface Archive {
  /** A conversation as files: `conversation.md`, `conversation.json`, pictures and voice notes. */
  exportConversation(conversationId: string): Promise<readonly ExportedFile[]>;
  /** What one author said, in one conversation or (`undefined`) in all; where nobody else spoke, the whole of it. */
  forgetAuthor(conversationId: string | undefined, authorId: string): Promise<ErasureReport>;
  /** What `forgetAuthor` would remove. */
  countAuthor(conversationId: string | undefined, authorId: string): Promise<ErasureReport>;
  /** Single messages, with the files that no other message shows. Ids that come later are refused as `duplicate`. */
  removeMessages(conversationId: string, removed: RemovedMessages): Promise<ErasureReport>;
  /** Everything of a conversation, gone for good. */
  deleteConversation(conversationId: string): Promise<ErasureReport>;
}

/** How far the turn of an accepted event has come; written before each step that a crash must not repeat. */
export interface TurnProgress {
  /** Keys of all events answered by this turn's one reply, in order; the first is the turn's own. */
  readonly keys: readonly string[];
  readonly address: ReplyAddress;
  /** Starts of the turn so far, the running one included. */
  readonly attempts: number;
}

/** An event that was accepted. */
export interface InboxEntry {
  readonly event: IncomingEvent;
  readonly acceptedAt: number;
  /** On the first event of a turn only. */
  readonly turn?: TurnProgress;
}

/** The durable record of what was accepted and not yet answered. Failures throw `store-unavailable`. */
export interface Inbox {
  /** Set-if-absent under `event.key`, durable before it resolves. */
  accept(event: IncomingEvent): Promise<"accepted" | "duplicate">;
  saveTurn(turn: TurnProgress): Promise<void>;
  /** Marks all as answered; their keys still answer `duplicate` for a day. */
  close(keys: readonly string[]): Promise<void>;
  /** Opens a closed entry again (Retry). `undefined`: it is not known any more. */
  reopen(key: string): Promise<InboxEntry | undefined>;
  /** The entries of these keys that are known, answered or not. */
  lookUp(keys: readonly string[]): Promise<readonly InboxEntry[]>;
  /** Takes back: closed, nothing left but the keys, which answer `duplicate` for a day. Keys may be unknown as yet. */
  withdraw(keys: readonly string[]): Promise<void>;
  /** Whether the entry is still unanswered: another process may have answered it meanwhile. */
  isOpen(key: string): Promise<boolean>;
  /** Everything accepted and not closed, oldest first. */
  listOpen(): Promise<readonly InboxEntry[]>;
  /** Those of one conversation (`event.conversationId`), oldest first; at a cost that depends on those alone. */
  listOpenIn(conversationId: string): Promise<readonly InboxEntry[]>;
}

/** One turn at a time in a conversation, in order, whichever process it runs in. */
export interface ConversationQueue {
  /** Whether other processes may be at the same conversations. */
  readonly isShared: boolean;
  /**
   * Runs `work` when all earlier work of the conversation has ended. The signal aborts when the right to the
   * conversation is lost (a lease that could not be renewed).
   */
  run<T>(conversationId: string, work: (signal: AbortSignal) => Promise<T>): Promise<T>;
  /**
   * Like `run`, but waits for this process's own work only: false, and `work` is not run, where another process
   * is at the conversation.
   */
  runUnlessTaken(conversationId: string, work: (signal: AbortSignal) => Promise<void>): Promise<boolean>;
  /** What has not begun is refused with `stopping` from now on; what runs goes on. */
  close(): void;
  /** Resolves when nothing runs or waits. */
  idle(): Promise<void>;
}
