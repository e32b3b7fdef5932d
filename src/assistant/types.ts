/**
 * The vocabulary of the house and its ports. Platforms, the gateway client, the conversations and the commands
 * are written against this page; it names no platform, no SDK and no network.
 *
 * Times are Unix milliseconds. Ids are opaque to everyone but the room that made them.
 */

/** What survives a key-value store unchanged. */
export type Json = string | number | boolean | null | readonly Json[] | { readonly [key: string]: Json };

/** Who wrote a message. `id` is unique across platforms (`discord:<user>`, `slack:<team>:<user>`, `web:local`). */
export interface Author {
  readonly id: string;
  /** Shown to people and, in conversations of several, to the model. */
  readonly name: string;
}

// ---------------------------------------------------------------- what comes in

/** A file a person sent. The bytes come lazily, through {@link Platform.download}. */
export interface Attachment {
  /** The platform's id of the file; stable when the event is delivered again. */
  readonly id: string;
  readonly name: string;
  /** What the platform or the sender claims; never trusted, the bytes are sniffed. */
  readonly mediaType?: string;
  readonly sizeBytes?: number;
  readonly durationMs?: number;
  /** What the platform needs to find the bytes again after a restart (ids rather than expiring URLs). */
  readonly source: Json;
  /** A public https image address typed by the person: handed to the gateway as it is, never fetched here. */
  readonly linkUrl?: string;
}

/** Where a reply stands or will stand: channel, message ids, tokens. JSON, made and read by its platform alone. */
export type ReplyAddress = { readonly [key: string]: Json };

interface IncomingBase {
  /** Dedupe key: the same for every delivery of the same event, unique otherwise, e.g. `slack:T1:C1:1699.01`. */
  readonly key: string;
  /** {@link Platform.id}. */
  readonly platform: string;
  /** The conversation whose queue it joins. */
  readonly conversationId: string;
  readonly author: Author;
  readonly sentAt: number;
  /** Larger places that the conversation lies in (server, channel): where one goes, the conversation goes with it. */
  readonly within?: readonly string[];
  /** Where the answer goes; the platform can open a {@link Reply} from it at any time, also after a restart. */
  readonly address: ReplyAddress;
}

/** One message by a person that the bot must answer. */
export interface IncomingMessage extends IncomingBase {
  readonly kind: "message";
  /** Plain text: mentions of the bot removed, other mentions shown as names, platform escapes undone. */
  readonly text: string;
  readonly attachments: readonly Attachment[];
  /** The model asked for with `/chat model:`; kept for the conversation. */
  readonly model?: string;
}

/** A value of a command option as the platform delivers it; `parseOptions` checks it against the declaration. */
export type RawOption = string | number | boolean | Attachment;

/** One use of a slash or message command. */
export interface CommandCall extends IncomingBase {
  readonly kind: "call";
  /** A command's `name`, without slash or prefix. */
  readonly name: string;
  readonly options: Readonly<Record<string, RawOption>>;
  /** True inside a thread, direct message or page chat: what is said becomes part of it. */
  readonly inConversation: boolean;
  /** True when only the author sees the reply. Decided by the platform with `isPrivate(command, options)`. */
  readonly isPrivate: boolean;
  /** True where people see what was asked beside the reply anyway (the page). Otherwise the reply quotes it. */
  readonly isInputVisible?: boolean;
  /** The message that a message command ("Transcribe", "Ask about this") was used on. */
  readonly subject?: {
    readonly author: Author;
    readonly text: string;
    readonly attachments: readonly Attachment[];
  };
}

export type IncomingEvent = IncomingMessage | CommandCall;

// ---------------------------------------------------------------- what goes out

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
  /** The whole text so far, not a delta; the latest wins. The first call is shown at once. Contract: must not throw. */
  write(text: string): void;
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
  start(receiver: Receiver): Promise<void>;
  /** A reply at an address of its own making, new or taken up again after a restart. */
  openReply(address: ReplyAddress, hooks: ReplyHooks): Reply;
  /**
   * Keys that the messages of a reply have when people remove them, as far as it has been shown; none where people
   * cannot.
   */
  keysShown(address: ReplyAddress): readonly string[];
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
   * People removed these messages on the platform (event keys; answers by the keys of {@link Platform.keysShown}).
   * What is kept of them goes for good, what waits is not answered, what is being answered is stopped. Harmless for
   * messages that nobody knows. May be called again.
   * @throws ParleyError `store-unavailable`
   */
  removed(conversationId: string, keys: readonly string[]): Promise<void>;
  /** The conversation is gone on the platform: everything of it goes for good. @throws ParleyError `store-unavailable` */
  conversationRemoved(conversationId: string): Promise<void>;
  /** A larger place is gone, and with it every conversation `within` it. @throws ParleyError `store-unavailable` */
  placeRemoved(place: string): Promise<void>;
  /** Stops the running turn of a conversation, if there is one; what was said so far is kept. */
  cancel(conversationId: string): boolean;
  /** Up to 25 model ids for an option's autocomplete, best match first. Answers from memory, at once. */
  suggestModels(query: string): readonly string[];
  /** What was said, oldest first, for a platform that shows its own history. */
  history(
    conversationId: string,
    options: { readonly maxMessages: number },
  ): Promise<readonly StoredMessage[]>;
  /** The platform's own conversations, newest first. */
  conversations(prefix: string): Promise<readonly ConversationSummary[]>;
  /** Bytes of a picture or voice note of the history. `undefined`: no such blob. */
  readBlob(conversationId: string, hash: string): Promise<StoredBlob | undefined>;
}

// ---------------------------------------------------------------- what is kept

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

/** One message of a conversation as it is kept and shown again. */
export interface StoredMessage {
  /** Made from the event's key, so that writing it twice is noticed: `<key>/user`, `<key>/assistant/<attempt>`. */
  readonly id: string;
  readonly role: "user" | "assistant";
  readonly author?: Author;
  readonly parts: readonly MessagePart[];
  readonly createdAt: number;
  /** `ceil(utf8 bytes / 4)` of its text, plus a constant an image: the measure of the context window. */
  readonly estimatedTokens: number;
  /** Assistant only: how it ended. `failed` messages are shown to people and not sent to the model. */
  readonly outcome?: "complete" | "interrupted" | "failed";
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
  putBlob(conversationId: string, bytes: Uint8Array, mediaType: string): Promise<BlobRef>;
  getBlob(conversationId: string, hash: string): Promise<StoredBlob | undefined>;
}

/** What was removed, to be said to the person who asked. */
export interface Forgotten {
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
  readonly bytes: Uint8Array;
}

/** What people may ask of what is kept of them. Failures throw `store-unavailable`; each can be run again. */
export interface Archive {
  /** A conversation as files: `conversation.md`, `conversation.json`, pictures and voice notes. */
  exportConversation(conversationId: string): Promise<readonly ExportedFile[]>;
  /** What one author said, in one conversation or (`undefined`) in all; where nobody else spoke, the whole of it. */
  forgetAuthor(conversationId: string | undefined, authorId: string): Promise<Forgotten>;
  /** What `forgetAuthor` would remove. */
  countAuthor(conversationId: string | undefined, authorId: string): Promise<Forgotten>;
  /** Single messages, with the files that no other message shows. Ids that come later are refused as `duplicate`. */
  removeMessages(conversationId: string, removed: RemovedMessages): Promise<Forgotten>;
  /** Everything of a conversation, gone for good. */
  deleteConversation(conversationId: string): Promise<Forgotten>;
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

// ---------------------------------------------------------------- the gateway

/** A piece of a message to a model. An image's `url` is an https address or a `data:<type>;base64,` URI. */
export type ContentPart =
  | { readonly kind: "text"; readonly text: string }
  | { readonly kind: "image"; readonly url: string };

export interface ChatMessage {
  readonly role: "system" | "user" | "assistant";
  readonly content: string | readonly ContentPart[];
}

export interface ChatRequest {
  readonly model: string;
  readonly messages: readonly ChatMessage[];
  /** Longest answer, in tokens. Default 1024. */
  readonly maxTokens?: number;
  /** 0 to 2. Default 1. */
  readonly temperature?: number;
  /** Default true. */
  readonly stream?: boolean;
}

/** Tokens and money of one call. `isEstimated`: the gateway did not say, so it was computed here. */
export interface Usage {
  readonly promptTokens?: number;
  readonly completionTokens?: number;
  readonly audioSeconds?: number;
  readonly images?: number;
  readonly costUsd?: number;
  readonly isEstimated: boolean;
}

export interface GeneratedImage {
  readonly bytes: Uint8Array;
  /** Sniffed from the bytes. */
  readonly mediaType: string;
  /** What the model says it drew, where it says so. */
  readonly revisedPrompt?: string;
}

/** Why an answer ended: said all, ran into `maxTokens`, or was withheld by the provider. */
export type FinishReason = "stop" | "length" | "filtered" | "other";

/** What an answer is made of, as it arrives. `finish` is always the last; an answer without it throws. */
export type ChatEvent =
  | { readonly kind: "text"; readonly text: string }
  | { readonly kind: "reasoning"; readonly text: string }
  | { readonly kind: "image"; readonly image: GeneratedImage }
  | { readonly kind: "notice"; readonly text: string }
  | { readonly kind: "finish"; readonly reason: FinishReason; readonly model: string; readonly usage: Usage };

export interface ImageRequest {
  readonly model: string;
  readonly prompt: string;
  /** Number of images. */
  readonly count?: number;
  /** `<width>x<height>` in pixels. */
  readonly size?: string;
}

export interface ImageAnswer {
  readonly images: readonly GeneratedImage[];
  readonly model: string;
  readonly usage: Usage;
  readonly notices: readonly string[];
}

export interface TranscriptionRequest {
  readonly model: string;
  readonly bytes: Uint8Array;
  /** With the extension that the sniffed container has: services choose their decoder by it. */
  readonly fileName: string;
  readonly mediaType: string;
  /** ISO 639-1 code of the spoken language. */
  readonly language?: string;
  /** Names and terms that guide the recognition. */
  readonly hint?: string;
  readonly durationMs?: number;
}

export interface TranscriptionAnswer {
  readonly text: string;
  readonly model: string;
  readonly language?: string;
  readonly usage: Usage;
  readonly notices: readonly string[];
}

/** What a model can do; `undefined` where nobody has said so and no call has shown it. */
export interface ModelCapabilities {
  readonly chats?: boolean;
  readonly seesImages?: boolean;
  readonly drawsInChat?: boolean;
  readonly generatesImages?: boolean;
  readonly transcribes?: boolean;
}

export interface Model {
  readonly id: string;
  readonly ownedBy?: string;
  readonly createdAt?: number;
  /** In tokens. */
  readonly contextLength?: number;
  readonly capabilities: ModelCapabilities;
  /** One line for people, where known: "$0.10 in, $0.40 out per million tokens". */
  readonly price?: string;
}

/**
 * The model gateway's four operations. Every failure is a ParleyError with a `gateway-…` code; an abort of
 * `signal` ends the request at the server at once and throws the signal's reason.
 */
export interface Gateway {
  chat(request: ChatRequest, signal: AbortSignal): AsyncIterable<ChatEvent>;
  generateImages(request: ImageRequest, signal: AbortSignal): Promise<ImageAnswer>;
  transcribe(request: TranscriptionRequest, signal: AbortSignal): Promise<TranscriptionAnswer>;
  /** From the cache where it is fresh. */
  listModels(signal: AbortSignal): Promise<readonly Model[]>;
  /** The cached list, maybe empty; never waits. */
  knownModels(): readonly Model[];
}

// ---------------------------------------------------------------- the rest

/** Structured log. Fields hold ids, codes, counts and durations; never a secret and never what people wrote. */
export interface Log {
  debug(fields: Readonly<Record<string, unknown>>, message: string): void;
  info(fields: Readonly<Record<string, unknown>>, message: string): void;
  warn(fields: Readonly<Record<string, unknown>>, message: string): void;
  error(fields: Readonly<Record<string, unknown>>, message: string): void;
  child(fields: Readonly<Record<string, unknown>>): Log;
}

/** Figures for operators. Labels come from small fixed sets, never from people. */
export interface Meter {
  turn(
    labels: { readonly platform: string; readonly kind: string; readonly outcome: string },
    seconds: number,
  ): void;
  /** From the start of a turn to its first words on the way to the platform. */
  firstText(labels: { readonly platform: string }, seconds: number): void;
  call(
    labels: { readonly operation: string; readonly outcome: string; readonly model: string },
    usage: Usage,
  ): void;
}
