import type { Attachment, ReplyAddress, IncomingEvent } from "./events.ts";
import type { StoredBlob, StoredMessage, ConversationSummary } from "./storage.ts";

/** The ports of a chat platform: {@link Platform}, {@link Reply} and {@link Receiver}. */

/** A file shown in a reply: a generated picture, or an answer too long for messages. */
export interface ReplyFile {
  readonly name: string;
  readonly mediaType: string;
  readonly bytes: Uint8Array;
  /** Says what is in it, for people who do not see it. */
  readonly altText: string;
}

/** What is said below a finished answer. All are plain sentences without markup. */
export interface ReplyEnding {
  /** What was left out, cut or replaced; shown, never only logged. */
  readonly notices?: readonly string[];
  /** Asks before something that cannot be undone: a button that calls {@link Receiver.confirm} with `key`. */
  readonly confirm?: ConfirmButton;
}

/** A button in warning colours. `label`: what it does, at most 80 characters. */
export interface ConfirmButton {
  readonly label: string;
  readonly key: string;
}

/** What a reply says, in Markdown. */
export interface ReplyContent {
  /**
   * Quotes what the answer refers to (the words of a voice note, the prompt of a command). A platform that shows
   * those elsewhere leaves it out.
   */
  readonly lead?: string;
  /** The answer itself. */
  readonly text: string;
}

/** What a person may do about a failed reply. */
export interface ReplyFailure {
  /** One or two plain sentences: what went wrong and what to do. */
  readonly text: string;
  readonly notices?: readonly string[];
  /** Where present the platform offers a Retry button that calls {@link Receiver.retry} with it. */
  readonly retryKey?: string;
}

/**
 * What a person sees grow: `show`, any number of `write`/`status`/`attach`, then exactly one of `finish`,
 * `fail` or `abandon`. Text is standard Markdown from an untrusted model: the platform makes it harmless (no pings, no
 * previews), splits it, and paces its edits.
 */
export interface Reply {
  /** Resolves when a placeholder is visible (or the one in the address was taken up again) and its address saved. */
  show(): Promise<void>;
  /** A few words on what is being done ("Transcribing note.ogg"), while there is no text yet. Contract: must not throw. */
  status(text: string): void;
  /** The whole content so far, not a delta; the latest wins. The first call is shown at once. Contract: must not throw. */
  write(content: ReplyContent): void;
  /** Shows a file. Resolves when the platform has it. */
  attach(file: ReplyFile): Promise<void>;
  /** Shows the last written text whole, in as many messages as it takes. Resolves when it is all visible. */
  finish(ending?: ReplyEnding): Promise<void>;
  /** Keeps the text so far and says why there is no more. Resolves when visible. */
  fail(failure: ReplyFailure): Promise<void>;
  /**
   * Shows nothing more from now on and waits for nothing: another process, or this one later, goes on with it from
   * its address. A `show`, `finish` or `fail` under way may reject. Contract: must not throw.
   */
  abandon(): void;
}

export interface ReplyHooks {
  /** An earlier run, here or in another process, may have posted for it and not have said where. Default false. */
  readonly isResumed?: boolean;
  /** Called with the grown address after each message the reply posts, so that a restart can take it up. */
  saveAddress(address: ReplyAddress): Promise<void>;
}

/** A thread that was opened for a conversation. */
export interface OpenedThread {
  readonly conversationId: string;
  /** Where replies in the thread go. */
  readonly address: ReplyAddress;
}

export interface DownloadOptions {
  /** More is refused with `attachment-too-large`, before it is read where the size is known. */
  readonly maxBytes: number;
  readonly signal: AbortSignal;
}

/** How a platform is doing, for `/readyz` and the start lines. */
export type PlatformHealth = { readonly state: "ready" | "connecting" | "failed"; readonly detail?: string };

/** A place where people talk: turns its events into {@link IncomingEvent}s and shows {@link Reply}s. */
export interface Platform {
  /** Short, stable name: the first part of its conversation ids. */
  readonly id: string;
  /**
   * Connects and begins to deliver. Resolves when connected.
   * @throws ParleyError `platform-unauthorized` (bad token), `platform-unreachable`
   */
  start(receiver: Receiver, history: ConversationHistory): Promise<void>;
  /** A reply at an address of its own making, new or taken up again after a restart. */
  openReply(address: ReplyAddress, hooks: ReplyHooks): Reply;
  /**
   * Keys that the messages of a reply have when people remove them, as far as it has been shown; none where people
   * cannot.
   */
  shownMessageKeys(address: ReplyAddress): readonly string[];
  /**
   * Where only the author of the event with this address sees the reply; `undefined` where the platform has no such
   * place for it (Discord answers privately only to slash commands).
   */
  toPrivateAddress(address: ReplyAddress): ReplyAddress | undefined;
  /**
   * Opens a thread below the place `address` names; called a second time for the same address it answers the
   * same thread. Where threads make no sense (a direct message) it answers the place itself.
   * @throws ParleyError `platform-forbidden` with the missing permission in `detail.permission`
   */
  openThread(address: ReplyAddress, options: { readonly title: string }): Promise<OpenedThread>;
  /**
   * The bytes of a file, from the platform's own hosts only.
   * @throws ParleyError `attachment-too-large`, `attachment-gone`, `attachment-blocked`, `attachment-unreadable`
   */
  download(attachment: Attachment, options: DownloadOptions): Promise<Uint8Array>;
  health(): PlatformHealth;
  /** Stops taking events at once, then disconnects. Replies already open have ended before it is called. */
  stop(): Promise<void>;
}

/** What a platform may ask of the assistant. */
export interface Receiver {
  /**
   * Resolves once the event is durable; only then may the platform acknowledge it. Work goes on in the
   * background. `duplicate`: seen before, nothing more will happen.
   * @throws ParleyError `store-unavailable` (do not acknowledge: the platform delivers again), `stopping`
   */
  receive(event: IncomingEvent): Promise<"accepted" | "duplicate">;
  /** Whether the conversation has been opened or spoken in, so that its every message is a turn. */
  knows(conversationId: string): Promise<boolean>;
  /** Runs a failed or sealed turn again into the same reply. `gone`: there is nothing to retry. */
  retry(retryKey: string): Promise<"accepted" | "gone">;
  /**
   * Runs the call of a reply that asked first again, as confirmed, into the same reply. `refused`: only the one who
   * asked may confirm. `gone`: there is nothing to confirm any more.
   */
  confirm(key: string, authorId: string): Promise<"accepted" | "refused" | "gone">;
  /**
   * People removed these messages on the platform (event keys; answers by the keys of {@link Platform.shownMessageKeys}).
   * What is kept of them goes for good, what waits is not answered, what is being answered is stopped. Harmless for
   * messages that nobody knows. May be called again.
   * @throws ParleyError `store-unavailable`
   */
  messagesDeleted(conversationId: string, keys: readonly string[]): Promise<void>;
  /** The conversation is gone on the platform: everything of it goes for good. @throws ParleyError `store-unavailable` */
  conversationDeleted(conversationId: string): Promise<void>;
  /** A larger place is gone, and with it every conversation `within` it. @throws ParleyError `store-unavailable` */
  placeDeleted(place: string): Promise<void>;
  /** Stops the running turn of a conversation, if there is one; what was said so far is kept. */
  cancel(conversationId: string): boolean;
  /** Up to 25 model ids for an option's autocomplete, best match first. Answers from memory, at once. */
  suggestModels(query: string): readonly string[];
}

/** What was said, for a platform that shows its own history (the page). Failures throw `store-unavailable`. */
export interface ConversationHistory {
  /** The last messages, oldest first. */
  history(
    conversationId: string,
    options: { readonly maxMessages: number },
  ): Promise<readonly StoredMessage[]>;
  /** The platform's own conversations, newest first. */
  conversations(prefix: string): Promise<readonly ConversationSummary[]>;
  /** Bytes of a picture or voice note of the history. `undefined`: no such blob. */
  readBlob(conversationId: string, hash: string): Promise<StoredBlob | undefined>;
}
