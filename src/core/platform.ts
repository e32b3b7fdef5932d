import type { AnswerTo } from "./addressee.ts";
import type { Language } from "../words/languages.ts";
import type { Actor } from "./access.ts";
import type { SettingFacts } from "./command-services.ts";
import type { ReplyAddress, Attachment, EditedContent, IncomingEvent, Origin } from "./events.ts";
import type { Aside, MessageFacts, Placement } from "./placement.ts";
import type { Attempt, TurnEnd } from "./inbox.ts";
import type { FormOffer, Press, PressResult, ReplyAction } from "./press.ts";
import type { AnswerSource, ModelOperation } from "./gateway.ts";
import type { RoomQuery, RoomResult } from "./room.ts";
import type { BudgetState, UsageRow } from "./spending.ts";
import type {
  ConversationLabels,
  ConversationsQuery,
  ConversationLists,
  ConversationSummary,
  StoredBlob,
  StoredMessage,
  ConversationExport,
} from "./storage.ts";

/** A file in a reply, such as a generated picture or an answer that is too long for messages. */
export interface ReplyFile {
  readonly name: string;
  readonly mediaType: string;
  readonly bytes: Uint8Array;
  /** Describes it for people who cannot see it. */
  readonly altText: string;
}

/** What is shown below a finished answer. */
export interface ReplyEnding {
  /** What was left out, cut or replaced. Plain sentences without markup. */
  readonly notices?: readonly string[];
  /**
   * The pages that the answer rests on: shown numbered, without previews, each as its platform escapes it.
   */
  readonly sources?: readonly AnswerSource[];
  /** A button for something that cannot be undone: a `confirm` press has `key`. */
  readonly confirm?: ConfirmButton;
  /** The buttons below the answer, in order. */
  readonly actions?: readonly ReplyAction[];
  /** Forms that a `settings` press opens. A platform without forms leaves them out. */
  readonly forms?: readonly FormOffer[];
}

/** A button in warning colours. `label` says in at most 80 characters what it does. */
export interface ConfirmButton {
  readonly label: string;
  readonly key: string;
}

/** What a reply says, in Markdown. */
export interface ReplyContent {
  /**
   * Quotes what the answer refers to, such as the words of a voice note or the prompt of a command. A
   * platform that shows those elsewhere leaves it out.
   */
  readonly lead?: string;
  readonly text: string;
  /** What the model thought before it answered. A platform that cannot fold it leaves it out. */
  readonly thoughts?: string;
  /** Whether nothing follows, so that there is nothing to stop. Default false. */
  readonly isWhole?: boolean;
}

/** What is shown at the end of a failed reply. */
export interface ReplyFailure {
  /** Says in one or two plain sentences what went wrong and what to do. */
  readonly text: string;
  readonly notices?: readonly string[];
  /** The same as in {@link ReplyEnding}. */
  readonly sources?: readonly AnswerSource[];
  /** Present: the platform shows a Retry button for a `retry` press with this key. */
  readonly retryKey?: string;
}

/** The options of {@link Reply.status}. */
export interface StatusOptions {
  /** Whether the step takes minutes, so that people must see the words. Default false. */
  readonly isLong?: boolean;
  /** The pictures that are being drawn, so that a platform may keep their place. Sizes are in pixels. */
  readonly drawing?: { readonly count: number; readonly width: number; readonly height: number };
}

/**
 * A reply that streams. The caller uses `show`, any number of `write`, `status` and `attach`, and then
 * exactly one of `finish`, `fail` and `abandon`. Text is standard Markdown from an untrusted model. The
 * platform makes it harmless (no pings, no previews), splits it, and limits the rate of its edits.
 */
export interface Reply {
  /** People can look at the replaced answers of this reply. Without it, these answers are not kept. */
  readonly showsVersions?: true;
  /**
   * Shows that an answer is coming: typing, a session at work or a placeholder. Resolves when its address is
   * saved.
   */
  show(): Promise<void>;
  /**
   * Shows a few words on the current step ("Transcribing note.ogg") while there is no text. It must not
   * throw.
   */
  status(text: string, options?: StatusOptions): void;
  /**
   * Shows what the model has thought so far, before there is text. A platform without it shows no thoughts
   * that grow. It must not throw.
   */
  think?(thoughts: string): void;
  /** Sets the whole content so far, not a delta. The first call is shown at once. It must not throw. */
  write(content: ReplyContent): void;
  /** Shows a file. Resolves when the platform has it. */
  attach(file: ReplyFile): Promise<void>;
  /** Shows the last written content in as many messages as needed. Resolves when all of it is visible. */
  finish(ending?: ReplyEnding): Promise<void>;
  /** Keeps the text so far and shows the failure. Resolves when the failure is visible. */
  fail(failure: ReplyFailure): Promise<void>;
  /**
   * Shows nothing more and waits for nothing. Another process, or this one after a restart, resumes the reply
   * from its address. A `show`, `finish` or `fail` in progress may reject. It must not throw.
   */
  abandon(): void;
}

/** What the caller gives to a reply that it opens. */
export interface ReplyHooks {
  /** The attempt that it shows, and when its last question was sent. Some replies belong to no turn. */
  readonly turn?: Pick<Attempt, "key" | "attempt"> & { readonly sentAt: number };
  /** An earlier run may have posted messages of it without saving their address. Default false. */
  readonly isResumed?: boolean;
  /** Shows nothing before the reply ends: no placeholder and no text that grows. Default false. */
  readonly isCalm?: boolean;
  /**
   * The reply only ends what an earlier run has shown, so `show` changes nothing. A new placeholder would
   * stay if this process died before the end. Default false.
   */
  readonly isEndOnly?: boolean;
  /** A button that ends the reply early. It is shown while text grows, and is gone afterwards. */
  readonly stop?: ReplyAction;
  /**
   * Whether this process still has the lease of the conversation, by its age. It is asked before each call
   * that shows something: a process that was frozen for longer shows nothing more. Default true.
   */
  isFresh?(): boolean;
  /**
   * Called with the extended address after each message of the reply, so that a restart can resume it. When
   * it resolves, the address survives the end of the process, and a power failure once a later write was
   * waited for. With `isDurable` it survives both at once, which a message needs that could not be found
   * again.
   */
  saveAddress(address: ReplyAddress, options?: { readonly isDurable?: boolean }): Promise<void>;
}

/** A thread that was opened for a conversation. */
export interface OpenedThread {
  readonly conversationId: string;
  /** The address of replies in the thread. */
  readonly address: ReplyAddress;
  /** The thread existed before and people use it. It was not opened now. */
  readonly isPeoples?: true;
}

/** Limits of a download. */
export interface DownloadOptions {
  /** A larger file is refused with `attachment-too-large`, before reading if its size is known. */
  readonly maxBytes: number;
  readonly signal: AbortSignal;
}

/** The state of a platform's connection, for `/readyz`. */
export interface PlatformHealth {
  readonly state: "ready" | "connecting" | "failed";
  readonly detail?: string;
  /** The state of each connection for metrics, if the platform has several. */
  readonly connections?: readonly { readonly name: string; readonly state: PlatformHealth["state"] }[];
}

/** The calls of the platform's API that wait for room under its limits. */
export interface DeliveryState {
  /** So many wait that a new turn whose reply goes to this address should be refused as busy. */
  isFull(address: ReplyAddress): boolean;
  /** How many wait, by method and by what they are for; for metrics. */
  waiting(): readonly { readonly method: string; readonly urgency: string; readonly count: number }[];
}

/** A chat platform, which makes {@link IncomingEvent}s of its events and shows {@link Reply}s. */
export interface Platform {
  /** A short, stable name, with which its conversation ids begin. */
  readonly id: string;
  /**
   * Where messages of a conversation come in the order in which they were sent: always; where one instance
   * runs, while several share them; or never, as by requests of their own.
   */
  readonly deliversInOrder: "always" | "to-one" | "never";
  /**
   * Connects and starts to deliver events. Resolves when it is connected.
   * @throws ParleyError `platform-unauthorized` (bad token), `platform-unreachable`
   */
  start(receiver: Receiver, history: ConversationHistory): Promise<void>;
  /**
   * Called when a model has made a title from a conversation's first exchange. Platforms without this method
   * get no titles. It must not throw.
   */
  readonly titled?: (conversationId: string) => void;
  /** Opens a reply at an address of this platform, for a new event or after a restart. */
  openReply(address: ReplyAddress, hooks: ReplyHooks): Reply;
  /**
   * The keys that {@link Receiver.deleted} gets when people delete the messages of this reply. It is
   * empty while nothing is shown, or where people cannot delete them.
   */
  shownMessageKeys(address: ReplyAddress): readonly string[];
  /**
   * The address of a reply that only the author of this address's event sees. It is `undefined` if the
   * platform cannot do that. In a server, Discord answers privately only to interactions.
   */
  toPrivateAddress(address: ReplyAddress): ReplyAddress | undefined;
  /**
   * Tells the author of this address's event something beside the reply: to this person alone. Where the
   * platform cannot show that in the place, it sends a direct message.
   * @param authorId the `Author.id` of the person
   * @throws ParleyError where the person cannot be told alone. Nothing is said in public then.
   */
  tellAlone(address: ReplyAddress, authorId: string, text: string): Promise<void>;
  /**
   * The address of a message in a conversation by its id. Two messages with one `name` are the same one. It
   * is absent where there are no channels.
   */
  readonly channelAddress?: (channel: string, name: string) => ReplyAddress;
  /**
   * Opens a thread at `address`, or returns the thread that an earlier call opened there. A place without
   * threads, such as a direct message, returns the conversation itself.
   * @throws ParleyError `platform-forbidden` with the missing permission in `detail.permission`
   */
  openThread(address: ReplyAddress, options: { readonly title: string }): Promise<OpenedThread>;
  /**
   * Reads the bytes of a file, only from the platform's own hosts.
   * @throws ParleyError `attachment-too-large`, `attachment-gone`, `attachment-blocked`,
   * `attachment-unreadable`, `platform-unreachable`
   */
  download(attachment: Attachment, options: DownloadOptions): Promise<Uint8Array>;
  /**
   * Reads what people and apps said in the thread or channel of an address. It must not throw: what fails is
   * the `failure` of a {@link RoomReading}.
   */
  readRoom(address: ReplyAddress, query: RoomQuery): Promise<RoomResult>;
  /**
   * The web addresses of messages in the thread or channel of an address, by their event keys. Those without
   * one are left out. It must not throw.
   */
  linksTo(address: ReplyAddress, keys: readonly string[]): Promise<ReadonlyMap<string, string>>;
  /**
   * The name of a person (`Author.id`) or channel (`Origin.channel`) of this platform, if it is known. It
   * must not throw, and takes a few seconds at most.
   */
  nameOf(id: string): Promise<string | undefined>;
  /**
   * The largest file in a reply at this address. It is absent if the platform takes larger ones than
   * anybody has.
   */
  maxUploadBytes?(address: ReplyAddress): number;
  /** Explains in `/help` how people use the bot on this platform. */
  readonly guide: PlatformGuide;
  /** It is absent if the platform has no limits. */
  readonly delivery?: DeliveryState;
  health(): PlatformHealth;
  /**
   * Called before the process stops. The platform then takes no event that the service would deliver to
   * another instance or later. Replies continue. It resolves within ten seconds, and normally once everything
   * taken before is accepted.
   */
  pause(): Promise<void>;
  /** Stops delivering events at once and disconnects. It is called after open replies have ended. */
  stop(): Promise<void>;
}

/** Where and when the bot answers in a channel, as the channel's managers have set it. */
export interface PlaceSettings {
  readonly answerTo: AnswerTo;
  /** `channel` puts answers into the channel itself, which is then one conversation. */
  readonly answerIn: "thread" | "channel";
}

/** The content of a message. */
export interface MessageContent {
  readonly text: string;
  readonly attachments: readonly Attachment[];
}

/**
 * What people have changed on the platform.
 * - `edit`: the author of a message.
 * - `delete-messages`: the keys are event keys or, for answers, those of {@link Platform.shownMessageKeys}.
 *   Unknown keys are ignored. `others` are more conversations that may contain some of them, with their keys.
 * - `delete-conversation`: all that is stored of it.
 * - `delete-place`: a server, workspace or channel, with its settings and every conversation within it.
 * - `delete-people`: settings and usage of people with this id prefix, whose workspace or account is gone.
 */
export type PeoplesChange = EditedMessage | Deletion;

/** A message that its author has edited. */
export interface EditedMessage {
  readonly kind: "edit";
  /** The {@link IncomingEvent.key} of the message. */
  readonly key: string;
  /** Unix milliseconds by the platform's clock. The later one of two edits counts. */
  readonly editedAt: number;
  /** The conversations in which it may be. */
  readonly conversationIds: readonly string[];
  /**
   * Returns the text of now. It is called if something of the message is stored. `before` is what is known of
   * it, without attachments if it was answered over a day ago; `wasAsked`: it was a question of the bot.
   * `undefined`: the text cannot be known.
   */
  read(before: MessageContent & { readonly wasAsked?: boolean }): Promise<EditedContent | undefined>;
  /** Removes words of the earlier form from an address of the event or its reply, if it has any. */
  toAddress?(address: ReplyAddress, content: EditedContent): ReplyAddress;
}

/** Something that people deleted on the platform. */
export type Deletion =
  | {
      readonly kind: "delete-messages";
      readonly conversationId: string;
      readonly keys: readonly string[];
      readonly others?: ReadonlyMap<string, readonly string[]>;
    }
  | { readonly kind: "delete-conversation"; readonly conversationId: string }
  | { readonly kind: "delete-place"; readonly place: string }
  | { readonly kind: "delete-people"; readonly idPrefix: string };

/** How an event is received. */
export interface ReceiveOptions {
  /**
   * The author sees a refusal at once and can send the same event again, so that it is not refused for good.
   */
  readonly canResend?: boolean;
  /** Earlier messages of its conversation may still come, for which it waits a few seconds. Default false. */
  readonly mayBeEarly?: boolean;
}

/** What every platform may ask of the assistant. */
export interface Receiver {
  /**
   * Accepts an event. Resolves once it is durable; only then may the platform acknowledge it. It is answered
   * in the background. `duplicate`: the event is known, and nothing more happens.
   * @throws ParleyError `access-denied`, `rate-limited`, `over-budget`, `busy`, and for a call `stopping`:
   *   the event is refused for good, here and in every instance. Acknowledge it, and show the words to its
   *   author alone.
   * @throws ParleyError `store-unavailable`, and for a message `stopping`: whether the event is kept is not
   *   known. Pass it in again, or let the platform deliver it again; the only words that are true are those
   *   of `acceptingNotice`.
   */
  receive(event: IncomingEvent | Aside, options?: ReceiveOptions): Promise<"accepted" | "duplicate">;
  /**
   * Says what becomes of a message: a question, something said to others, or nothing. Contract: the platform
   * gives an aside to {@link receive}, which keeps that the next turn there reads it. No model is asked.
   * @throws ParleyError `store-unavailable`, or what `facts.stands.isOwn` throws
   */
  placeMessage(facts: MessageFacts): Promise<Placement>;
  /**
   * A person used a button, a menu or a form, whoever asked the question. Show a result in words to this
   * person alone. A press that changes something may be repeated.
   * @throws ParleyError, whose words are for this person alone: `access-denied`, `not-permitted`,
   *   `rate-limited`, `over-budget`, `store-unavailable`, `stopping`
   */
  press(press: Press, by: Actor): Promise<PressResult>;
  /**
   * People edited or deleted something. It is durable when this resolves, and idempotent.
   *
   * What was deleted is erased, a waiting turn of it is dropped, and an active one goes on without it or
   * ends. An edited question that waits is replaced. The last question of a conversation is answered anew in
   * the same reply, even while it is being answered. For an older one only the stored text changes. The
   * earlier text is erased. `unchanged`: the text is the same, or a later edit is known. `unknown`: it is no
   * question, because nothing of it is stored, or it was said to others and is said to the bot now, so that
   * the platform may take it as a new one.
   * @throws ParleyError `store-unavailable`
   */
  changed(change: PeoplesChange): Promise<"changed" | "unchanged" | "unknown">;
  /**
   * How the bot answers messages in a channel. It is mostly read from memory.
   * @throws ParleyError `store-unavailable` if it was not read before
   */
  placeSettings(place: Pick<Origin, "server" | "channel" | "channelPlace">): Promise<PlaceSettings>;
  /**
   * The settings forms that a person may open for a conversation and the places around it. Each key is
   * pressed as `settings`. A platform without forms may leave them out, because everything can be typed.
   */
  formOffers(by: Actor, conversationId: string | undefined): readonly FormOffer[];
  /**
   * What concerns one person, for a page of their own.
   * @throws ParleyError `access-denied`, `store-unavailable`
   */
  overview(by: Actor): Promise<PersonOverview>;
  /**
   * Ids of models that people may use, for autocompletion from memory, best match first. `max` is their
   * number, by default 25. `operation` selects the models that support it.
   */
  suggestModels(
    query: string,
    options?: { readonly max?: number | undefined; readonly operation?: ModelOperation | undefined },
  ): readonly string[];
}

/** An accepted event that is not answered yet. */
export interface OpenQuestion {
  readonly event: IncomingEvent;
  /** Whether its turn was started, in any process or before a restart. */
  readonly hasBegun: boolean;
}

/** How the latest attempt at a turn has ended. `end` is absent where that is not known any more. */
export interface EndedTurn {
  readonly attempt: number;
  readonly end: TurnEnd | undefined;
}

/** Stored conversations, which platforms list, search, copy or look up. It throws `store-unavailable`. */
export interface ConversationHistory {
  /**
   * Present for some days after a backup was restored. What people sent between these two times (Unix ms) may
   * have been answered although the store does not know it.
   */
  readonly restored: { readonly backedUpAt: number; readonly restoredAt: number } | undefined;
  /** Whether the conversation exists: it was opened, or a message of it was accepted. */
  knows(conversationId: string): Promise<boolean>;
  /** The conversation of an event, or `undefined` if it was not accepted or was answered long ago. */
  conversationOf(key: string): Promise<string | undefined>;
  /** The last messages, oldest first. They are fewer if their texts have more than 8 million characters. */
  history(
    conversationId: string,
    options: { readonly maxMessages: number },
  ): Promise<readonly StoredMessage[]>;
  /** The stored question of an event, if there is one. */
  question(conversationId: string, key: string): Promise<StoredMessage | undefined>;
  /** The unanswered events of a conversation, oldest first. A question is stored when its turn begins. */
  openQuestions(conversationId: string): Promise<readonly OpenQuestion[]>;
  /** How turns have ended, by their keys. Those that run, and those older than a week, are left out. */
  ends(keys: readonly string[]): Promise<ReadonlyMap<string, EndedTurn>>;
  /**
   * Conversations whose id starts with `prefix`, most recently used first. By default there are at most 200,
   * and pinned ones in addition.
   */
  conversations(prefix: string, query?: Partial<ConversationsQuery>): Promise<readonly ConversationSummary[]>;
  /** Exports a conversation as files. */
  export(conversationId: string): Promise<ConversationExport>;
  /** Searches everything that was said in conversations whose id starts with `prefix`. */
  readonly search: ConversationLists["search"];
  /** The bytes of a picture or voice note, or `undefined` if there is no such blob. */
  readBlob(conversationId: string, hash: string): Promise<StoredBlob | undefined>;
  /** Copies a part into a new conversation. @throws ParleyError `access-denied` */
  branch(request: BranchRequest, by: Actor): Promise<BranchOutcome>;
  /**
   * Names or pins a conversation for lists. It returns false if there is no such conversation.
   * @throws ParleyError `access-denied`
   */
  label(conversationId: string, labels: ConversationLabels, by: Actor): Promise<boolean>;
}

/** What `/help` says about a platform. */
interface PlatformGuide {
  /** The prefix before each command's name, which is usually empty. */
  readonly commandPrefix: string;
  /** Whether the platform shows names of commands and options in the person's language, not in English. */
  readonly hasLocalNames: boolean;
  /** Whether conversations have one person each, so that nothing is said of others and of threads. */
  readonly isForOne?: true;
  /** How people talk to the bot, in their language. Each entry is one or two Markdown sentences. */
  readonly speaking: readonly string[];
  /** Whether messages have a menu with the message commands. */
  readonly hasMessageMenus: boolean;
  /** How `/export` shows pictures and recordings: as files, or as one archive for download. */
  readonly exportsAs: "files" | "archive";
}

/** Which part of a conversation is copied into a new one. */
export interface BranchRequest {
  readonly from: string;
  /** A new conversation, or the target of an earlier copy, to which only what is missing is copied. */
  readonly to: string;
  /** Copies up to this turn's answer, or up to the message before its question (the key of that event). */
  readonly until: { readonly turnKey: string } | { readonly beforeKey: string };
  /** The key of a copied message. It must always be the same for a message. */
  readonly toKey: (key: string) => string;
  /** The address of an event with such a key. */
  readonly toAddress: (key: string) => ReplyAddress;
}

/**
 * - `branched`: it is stored, and the answers can be asked for anew there as far as before.
 * - `gone`: the message is not stored, or `to` is another conversation.
 * - `too-long`: there are more messages than can be copied at once.
 */
export type BranchOutcome = "branched" | "gone" | "too-long";

/** What concerns one person outside of channels. */
export interface PersonOverview {
  /** The language that they have set, or else that of their client. */
  readonly language: Language;
  /** The settings in force for them, in that language. */
  readonly settings: readonly SettingFacts[];
  /** The current UTC day as `YYYY-MM-DD`. */
  readonly today: string;
  /** What they have used in this month. */
  readonly usage: readonly UsageRow[];
  /** The budgets that apply to them. */
  readonly budgets: readonly BudgetState[];
}
