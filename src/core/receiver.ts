import type { Language } from "../words/languages.ts";
import type { Actor } from "./access.ts";
import type { AnswerTo } from "./addressee.ts";
import type { SettingFacts } from "./command-services.ts";
import type { Attachment, EditedContent, IncomingEvent, Origin, ReplyAddress } from "./events.ts";
import type { ModelOperation } from "./gateway.ts";
import type { TurnEnd } from "./inbox.ts";
import type { Aside, MessageFacts, Placement } from "./placement.ts";
import type { FormOffer, Press, PressResult } from "./press.ts";
import type { BudgetState, UsageRow } from "./spending.ts";
import type {
  ConversationExport,
  ConversationLabels,
  ConversationLists,
  ConversationSummary,
  ConversationsQuery,
  StoredBlob,
  StoredMessage,
} from "./storage.ts";

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
