import type { Language } from "../words/languages.ts";
import type { Actor } from "./access.ts";
import type { SettingFacts } from "./command-services.ts";
import type { ReplyAddress, Attachment, EditedContent, IncomingEvent, Origin } from "./events.ts";
import type { FormOffer } from "./forms.ts";
import type { ModelOperation } from "./gateway.ts";
import type { Press, PressResult, ReplyAction } from "./press.ts";
import type { RoomQuery, RoomReading } from "./room.ts";
import type { BudgetState, UsageRow } from "./spending.ts";
import type {
  ConversationLabels,
  ConversationsQuery,
  Conversations,
  ConversationSummary,
  StoredBlob,
  StoredMessage,
  ConversationExport,
} from "./storage.ts";

/** A file shown in a reply: a generated picture, or an answer too long for messages. */
export interface ReplyFile {
  readonly name: string;
  readonly mediaType: string;
  readonly bytes: Uint8Array;
  /** Describes it for people who cannot see it. */
  readonly altText: string;
}

/** What is shown below a finished answer. */
interface ReplyEnding {
  /** What was left out, cut or replaced. Plain sentences without markup. */
  readonly notices?: readonly string[];
  /** A button for something that cannot be undone: a `confirm` press has `key`. */
  readonly confirm?: ConfirmButton;
  /** Buttons below the answer, in order. */
  readonly actions?: readonly ReplyAction[];
  /** Forms that can be opened from here, by a `settings` press. A platform without forms leaves them out. */
  readonly forms?: readonly FormOffer[];
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
  /** What the model thought before it. A platform that cannot fold it leaves it out. */
  readonly thoughts?: string;
  /** Nothing follows, so that there is nothing to stop. Default false. */
  readonly isWhole?: boolean;
}

/** What is shown at the end of a failed reply. */
export interface ReplyFailure {
  /** One or two plain sentences: what went wrong and what to do. */
  readonly text: string;
  readonly notices?: readonly string[];
  /** Present: the platform shows a Retry button for a `retry` press with this key. */
  readonly retryKey?: string;
  /** The turn runs again by itself, into the same reply: what cannot be changed then is not shown. Default false. */
  readonly isTemporary?: boolean;
}

/**
 * A reply that streams: `show`, any number of `write`/`status`/`attach`, then exactly one of `finish`, `fail` or
 * `abandon`. Text is standard Markdown from an untrusted model: the platform makes it harmless (no pings, no previews),
 * splits it, and limits the rate of its edits.
 */
export interface Reply {
  /** People can look at the answers that stood in its place before. Default: nobody can, and none are kept. */
  readonly showsVersions?: true;
  /** Shows that an answer is coming: typing, a session at work or a placeholder. Resolves when its address is saved. */
  show(): Promise<void>;
  /**
   * A few words on the current step ("Transcribing note.ogg"), while there is no text. `isLong`: it takes minutes, so that
   * people must see the words, not only a sign of work. Contract: must not throw.
   */
  status(text: string, options?: { readonly isLong?: boolean }): void;
  /** Sets the whole content so far, not a delta. The first call is shown at once. Contract: must not throw. */
  write(content: ReplyContent): void;
  /** Shows a file. Resolves when the platform has it. */
  attach(file: ReplyFile): Promise<void>;
  /** Shows the last written content completely, in as many messages as needed. Resolves when it is visible. */
  finish(ending?: ReplyEnding): Promise<void>;
  /** Keeps the text so far and shows the failure. Resolves when visible. */
  fail(failure: ReplyFailure): Promise<void>;
  /**
   * Shows nothing more from now on and waits for nothing: another process, or this one after a restart, resumes the
   * reply from its address. A `show`, `finish` or `fail` in progress may reject. Contract: must not throw.
   */
  abandon(): void;
}

/** What the caller gives a reply that it opens. */
export interface ReplyHooks {
  /** An earlier run may have posted messages for it without saving their address. Default false. */
  readonly isResumed?: boolean;
  /** Nothing is shown before the reply ends: no placeholder, no text that grows. Default false. */
  readonly isCalm?: boolean;
  /**
   * It only ends what an earlier run has shown: `show` changes nothing. Otherwise it would put a placeholder back, which
   * stays if this process is killed before the end. Default false.
   */
  readonly isEndOnly?: boolean;
  /** A button that ends the reply early: shown with text that grows, and gone when the reply has ended. Default: none. */
  readonly stop?: ReplyAction;
  /**
   * Called with the extended address after each message the reply posts, so that a restart can resume it. Survives the
   * end of the process when it resolves, a power failure 250 ms later. `isDurable`: at once; what is saved before a
   * message that could not be found again needs it.
   */
  saveAddress(address: ReplyAddress, options?: { readonly isDurable?: boolean }): Promise<void>;
  /**
   * Which of these messages (keys of {@link Platform.shownMessageKeys}) show other turns of the conversation, open or answered,
   * and are not to be taken for a message that was posted without saving its address. Default: none.
   */
  otherTurnsShow?(keys: readonly string[]): Promise<readonly string[]>;
}

/** A thread that was opened for a conversation. */
export interface OpenedThread {
  readonly conversationId: string;
  /** Where replies in the thread go. */
  readonly address: ReplyAddress;
  /** People had the thread before: it was not opened now. */
  readonly isPeoples?: true;
}

/** Limits of a download. */
export interface DownloadOptions {
  /** A larger file is refused with `attachment-too-large`, before it is read where its size is known. */
  readonly maxBytes: number;
  readonly signal: AbortSignal;
}

/** The state of a platform's connection, for `/readyz`. */
export interface PlatformHealth {
  readonly state: "ready" | "connecting" | "failed";
  readonly detail?: string;
  /** Where it has several connections: each of them, for metrics. */
  readonly connections?: readonly { readonly name: string; readonly state: PlatformHealth["state"] }[];
}

/** Calls of the platform's API that wait for room under its limits. */
export interface DeliveryState {
  /** So many wait that new turns should be refused as busy. */
  isFull(): boolean;
  /** How many wait, by method and by what they are for; for metrics. */
  waiting(): readonly { readonly method: string; readonly urgency: string; readonly count: number }[];
}

/** A chat platform: turns its events into {@link IncomingEvent}s and shows {@link Reply}s. */
export interface Platform {
  /** Short, stable name: the first part of its conversation ids. */
  readonly id: string;
  /**
   * Whether each instance receives all messages of a conversation, in the order of their sending. Otherwise several
   * instances share them, and may accept them in another order.
   */
  readonly deliversInOrder: boolean;
  /**
   * Connects and starts to deliver events. Resolves when connected.
   * @throws ParleyError `platform-unauthorized` (bad token), `platform-unreachable`
   */
  start(receiver: Receiver, history: ConversationHistory): Promise<void>;
  /**
   * A conversation has a title now, which a model made of its first exchange. Conversations of platforms without this are
   * given none. Contract: must not throw.
   */
  readonly titled?: (conversationId: string) => void;
  /** Opens a reply at an address that this platform made, for a new event or after a restart. */
  openReply(address: ReplyAddress, hooks: ReplyHooks): Reply;
  /**
   * The keys that {@link Receiver.messagesDeleted} gets when people delete the messages of this reply. Empty where
   * nothing is shown yet, or where people cannot delete them.
   */
  shownMessageKeys(address: ReplyAddress): readonly string[];
  /**
   * The address of a reply that only the author of this address's event sees. `undefined`: the platform has none
   * (in a server Discord answers privately only to interactions).
   */
  toPrivateAddress(address: ReplyAddress): ReplyAddress | undefined;
  /**
   * Opens a thread at `address`. A second call for the same address returns the same thread. Where there are no
   * threads (a direct message) it returns the conversation itself.
   * @throws ParleyError `platform-forbidden` with the missing permission in `detail.permission`
   */
  openThread(address: ReplyAddress, options: { readonly title: string }): Promise<OpenedThread>;
  /**
   * The bytes of a file, from the platform's own hosts only.
   * @throws ParleyError `attachment-too-large`, `attachment-gone`, `attachment-blocked`, `attachment-unreadable`, `platform-unreachable`
   */
  download(attachment: Attachment, options: DownloadOptions): Promise<Uint8Array>;
  /**
   * Reads what people and apps said in the thread or channel of an address. `undefined`: nobody but the bot and the person
   * who talks with it writes there, so that the stored conversation is all there is.
   * Contract: must not throw.
   */
  readRoom(address: ReplyAddress, query: RoomQuery): Promise<RoomReading | undefined>;
  /**
   * The name of a person (`Author.id`) or channel (`Origin.channel`) of this platform. `undefined`: not known.
   * Contract: must not throw, and takes at most a few seconds.
   */
  nameOf(id: string): Promise<string | undefined>;
  /** How people use the bot here, for `/help`. */
  readonly guide: PlatformGuide;
  /** Absent: the platform has no limits. */
  readonly delivery?: DeliveryState;
  health(): PlatformHealth;
  /**
   * The process is about to stop. From now on no event is taken that the service delivers to another instance or later;
   * others are kept for the next start, or people are told. Replies go on. Resolves within three seconds, normally
   * when what was taken before is accepted.
   */
  pause(): Promise<void>;
  /** Stops delivering events at once, then disconnects. Called after open replies have ended. */
  stop(): Promise<void>;
}

/** Where and when the bot answers in a channel, as its managers have set it. */
export interface PlaceSettings {
  readonly answerTo: "mentions" | "every-message";
  /** `channel`: answers stand in the channel itself, which is one conversation. */
  readonly answerIn: "thread" | "channel";
}

/** The content of a message. */
export interface MessageContent {
  readonly text: string;
  readonly attachments: readonly Attachment[];
}

/** A message that its author has edited. */
export interface EditedMessage {
  /** `IncomingEvent.key` */
  readonly key: string;
  /** Unix milliseconds by the platform's clock: of two edits the later one counts. */
  readonly editedAt: number;
  /** Conversations that it may be in. */
  readonly conversationIds: readonly string[];
  /**
   * What it says now. Called where something is stored of the message; `before`: what is known of it, without attachments
   * where it was answered more than a day ago, and later ones too. `undefined`: that cannot be known.
   */
  read(before: MessageContent): Promise<EditedContent | undefined>;
  /** An address of the message's event, or of its reply, without words of the earlier form. Default: it has none. */
  toAddress?(address: ReplyAddress, content: EditedContent): ReplyAddress;
}

/** What every platform may ask of the assistant. */
export interface Receiver {
  /**
   * Accepts an event. Resolves once it is durable; only then may the platform acknowledge it. It is answered in the
   * background. `duplicate`: accepted before, nothing more happens.
   * @throws ParleyError `store-unavailable` (do not acknowledge: the platform redelivers), `stopping`; `access-denied`,
   *   `rate-limited` and `busy` (acknowledge, and show the words to the author alone: nothing is kept of the event)
   */
  receive(event: IncomingEvent): Promise<"accepted" | "duplicate">;
  /**
   * Like `receive`, also while this process is stopping: another instance or the next start answers then.
   * @throws ParleyError `store-unavailable`, `busy`
   */
  keep(event: IncomingEvent): Promise<"accepted" | "duplicate">;
  /**
   * Makes words true: the person was told that the event of this key is not taken. `refused`: it is never answered,
   * `receive` returns `duplicate`. `accepted`: it was accepted all the same, here or by another instance, and is
   * answered, so that the words must be taken back. Resolves when the store says which, however long that takes.
   */
  refuse(key: string): Promise<"refused" | "accepted">;
  /** Whether the conversation exists: it was opened, or a message of it was accepted. */
  knows(conversationId: string): Promise<boolean>;
  /**
   * Which messages of a thread the bot answers, as far as anybody has said: `/chat` and `/dismiss` in the thread, then the
   * setting of the channel that contains it. A stored conversation that does not belong to people is answered whole.
   * `undefined`: nothing says so.
   * @throws ParleyError `store-unavailable`
   */
  answersTo(
    conversationId: string,
    place: Pick<Origin, "server" | "channel" | "channelPlace">,
  ): Promise<PlaceSettings["answerTo"] | undefined>;
  /** The conversation of an event by its key. `undefined`: not accepted, or answered long ago. */
  conversationOf(key: string): Promise<string | undefined>;
  /**
   * A person used a button, a menu or a form, whoever asked the question. Show a result in words to this person alone.
   * Where {@link changesReply}, one process alone may call it for a press.
   * @throws ParleyError, whose words are for this person alone: `access-denied`, `not-permitted`, `rate-limited`,
   *   `over-budget`, `store-unavailable`, `stopping`
   */
  press(press: Press, by: Actor): Promise<PressResult>;
  /**
   * People deleted these messages on the platform (event keys; answers by {@link Platform.shownMessageKeys}). Erases
   * what is stored of them, drops pending turns and cancels active ones. Unknown keys are ignored. Idempotent. `others`:
   * further conversations that may contain some of them, with their keys.
   * @throws ParleyError `store-unavailable`
   */
  messagesDeleted(
    conversationId: string,
    keys: readonly string[],
    others?: ReadonlyMap<string, readonly string[]>,
  ): Promise<void>;
  /**
   * People edited a message. A question that waits is replaced; the last one of its conversation is answered anew in the
   * same reply, also while it is being answered; of an older one only the stored text changes. What was there before is
   * erased. Durable when it resolves. `unchanged`: it says the same, or a later edit is known. `unknown`: nothing is
   * stored of the message. Idempotent.
   * @throws ParleyError `store-unavailable`
   */
  messageEdited(edited: EditedMessage): Promise<"edited" | "unchanged" | "unknown">;
  /** The conversation was deleted on the platform: erases all of it. @throws ParleyError `store-unavailable` */
  conversationDeleted(conversationId: string): Promise<void>;
  /** A place was deleted: erases every conversation `within` it. @throws ParleyError `store-unavailable` */
  placeDeleted(place: string): Promise<void>;
  /**
   * People whose ids begin so are gone with their workspace: erases what is set and counted for them. Idempotent.
   * @throws ParleyError `store-unavailable`
   */
  peopleDeleted(idPrefix: string): Promise<void>;
  /** Copies a part of a conversation into a new one. @throws ParleyError `access-denied`, `store-unavailable` */
  branch(request: BranchRequest, by: Actor): Promise<BranchOutcome>;
  /**
   * Names or pins a conversation for lists. False: there is no such conversation.
   * @throws ParleyError `access-denied`, as {@link retry}; `store-unavailable`
   */
  labelConversation(conversationId: string, labels: ConversationLabels, by: Actor): Promise<boolean>;
  /** Whether this process accepts nothing more: another instance or the next start answers what arrives now. */
  isStopping(): boolean;
  /**
   * How the bot answers messages in a channel. Mostly from memory.
   * @throws ParleyError `store-unavailable`, where it was not read before
   */
  placeSettings(place: Pick<Origin, "server" | "channel" | "channelPlace">): Promise<PlaceSettings>;
  /**
   * The forms of settings that a person may open in a conversation, and around it: the key of each is pressed as
   * `settings`. A platform without forms need not offer them, because everything can be typed as well.
   */
  formOffers(by: Actor, conversationId: string | undefined): readonly FormOffer[];
  /**
   * What concerns one person, for a page of their own.
   * @throws ParleyError `access-denied`, as {@link retry}; `store-unavailable`
   */
  overview(by: Actor): Promise<PersonOverview>;
  /**
   * Model ids for an option's autocomplete, best match first, from memory: those that people may use. `max`: how many at
   * most, default 25. `operation`: only models that can do that. Default: all.
   */
  suggestModels(
    query: string,
    options?: { readonly max?: number | undefined; readonly operation?: ModelOperation | undefined },
  ): readonly string[];
}

/** An accepted event that is not answered yet. */
export interface OpenQuestion {
  readonly event: IncomingEvent;
  /** Its turn has been started, in this process or in another one, or before a restart. */
  readonly hasBegun: boolean;
}

/** Stored conversations, for platforms that show or search them. Failures throw `store-unavailable`. */
export interface ConversationHistory {
  /**
   * Present for some days after a backup was put in place: what people sent between these times (Unix ms) may have been
   * answered although the store does not know it.
   */
  readonly restored: { readonly backedUpAt: number; readonly restoredAt: number } | undefined;
  /** The last messages, oldest first; fewer where their texts have more than 8 million characters. */
  history(
    conversationId: string,
    options: { readonly maxMessages: number },
  ): Promise<readonly StoredMessage[]>;
  /** What is still to be answered in a conversation, oldest first. A question is stored when its turn begins. */
  openQuestions(conversationId: string): Promise<readonly OpenQuestion[]>;
  /**
   * Conversations whose id starts with `prefix`, most recently used first, by default at most 200; pinned ones come
   * besides.
   */
  conversations(prefix: string, query?: Partial<ConversationsQuery>): Promise<readonly ConversationSummary[]>;
  /** A conversation as files. */
  export(conversationId: string): Promise<ConversationExport>;
  /** Searches all that was said in conversations whose id starts with `prefix`. */
  readonly search: Conversations["search"];
  /** The bytes of a picture or voice note. `undefined`: no such blob. */
  readBlob(conversationId: string, hash: string): Promise<StoredBlob | undefined>;
}

/** What `/help` says of a platform. */
interface PlatformGuide {
  /** Put before each command's name. Usually empty. */
  readonly commandPrefix: string;
  /** Whether it shows commands and options by their names in the person's language. Otherwise in English. */
  readonly hasLocalNames: boolean;
  /** How people talk to the bot, in the language of the person who asks: one Markdown sentence or two each. */
  readonly speaking: readonly string[];
  /** Whether a message has a menu with the message commands. */
  readonly hasMessageMenus: boolean;
  /** How `/export` shows pictures and recordings: each as a file, or all in one archive. People can also download that. */
  readonly exportsAs: "files" | "archive";
}

/** Which part of a conversation is copied into a new one. */
export interface BranchRequest {
  readonly from: string;
  /** A new conversation, or the same as before: then only what is missing is copied. */
  readonly to: string;
  /** Up to this turn's answer, or up to the message before its question (key of the question's event). */
  readonly until: { readonly turnKey: string } | { readonly beforeKey: string };
  /** The key of a message in the new conversation, always the same for a message. */
  readonly toKey: (key: string) => string;
  /** The address of an event with such a key. */
  readonly toAddress: (key: string) => ReplyAddress;
}

/**
 * - `branched`: it is stored; the answers can be asked for anew there as far as they could be before.
 * - `gone`: the message is not stored, or `to` is another conversation.
 * - `too-long`: there are more messages than are copied at once.
 */
export type BranchOutcome = "branched" | "gone" | "too-long";

/** What concerns one person, outside of channels. */
export interface PersonOverview {
  /** What Parley speaks with them: as they have set it, else that of their client. */
  readonly language: Language;
  /** The settings in force for them, in that language. */
  readonly settings: readonly SettingFacts[];
  /** `YYYY-MM-DD`, UTC. */
  readonly today: string;
  /** What they have used in this month. */
  readonly usage: readonly UsageRow[];
  /** The budgets that apply to them. */
  readonly budgets: readonly BudgetState[];
}
