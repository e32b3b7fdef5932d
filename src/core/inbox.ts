import type { IncomingEvent, IncomingMessage, ReplyAddress } from "./events.ts";
import type { TranscriptionAnswer } from "./gateway.ts";
import type { StoredMessage } from "./storage.ts";

/** Progress of an accepted event's turn, saved before each step that must not happen twice after a crash. */
export interface TurnProgress {
  /** Keys of all events that this turn's reply answers, in order. The first is the turn's own. */
  readonly keys: readonly string[];
  readonly address: ReplyAddress;
  /** How many attempts were started, including the current one. */
  readonly attempts: number;
}

/**
 * Why a turn runs again into the same reply.
 * - `retry`: it has failed, or its reply was sealed.
 * - `confirm`: its person has confirmed the command.
 * - `regenerate`: somebody asks for another answer.
 * - `continue`: somebody asks for the rest of an answer that reached its length limit.
 * - `edit`: its question was changed.
 */
export type ReopenReason = "retry" | "confirm" | "regenerate" | "continue" | "edit";

/** Why a turn that runs again replaces its answer. */
export interface Redo {
  readonly kind: ReopenReason;
  /** The model to ask. By default it is chosen as for any answer. */
  readonly model?: string;
  /** How many attempts there were before. Their answers are to be replaced. */
  readonly since: number;
  /** Unix milliseconds. */
  readonly requestedAt: number;
}

/** The answer that a turn has, and how it is replaced. */
export interface ReplacedAnswer {
  /** The turn's attempts when a person asked for this. If there are others by now, nothing is reopened. */
  readonly attempts: number;
  /** The model to ask. By default it is chosen as for any answer. */
  readonly model?: string;
  /** Edited forms, which replace the turn's events that have the same keys. */
  readonly edited?: readonly IncomingEvent[];
}

/** A turn that is open again. */
export interface ReopenedTurn {
  readonly event: IncomingEvent;
  /** The other events that its reply answers. */
  readonly others: readonly IncomingMessage[];
  readonly turn: TurnProgress;
  readonly redo?: Redo;
}

/** What people saw of an answer when somebody stopped it. */
export interface StoppedAnswer {
  /** The message as the turn stores it at its end. */
  readonly message: StoredMessage;
  /** The {@link ReplyContent.lead} of the reply. */
  readonly lead: string;
}

/** What a gateway has heard in a recording, or in one part of a long one. */
export interface HeardPart {
  /** The SHA-256 of the bytes that were sent, in hex. */
  readonly hash: string;
  /** `asked` is the model that was asked. Without an answer there are no words in it. */
  readonly answer?: TranscriptionAnswer & { readonly asked: string };
}

/**
 * What an accepted event is.
 * - `open`: it waits for its turn, or its turn runs.
 * - `edited`: it was answered before its author edited it, and is open until the edit is applied.
 * - `stopping`: a person has stopped its turn, which does not run. Only its reply must be ended.
 * - `withdrawn`: its content is erased. Only the reply of its turn must be ended.
 * - `answered`: its turn is over.
 * - `erased`: only its key is left, so that a late delivery is a duplicate.
 */
export type EventState = "open" | "edited" | "stopping" | "withdrawn" | "answered" | "erased";

/** An accepted event. */
export interface InboxEntry {
  readonly event: IncomingEvent;
  readonly acceptedAt: number;
  readonly state: EventState;
  /** It is present only on the first event of a turn. */
  readonly turn?: TurnProgress;
  /** The highest attempt that was claimed for it, also in another turn than the one that lists it. */
  readonly attempts?: number;
  /** Present on the first event of a turn that runs again, until it is closed. */
  readonly redo?: Redo;
  /** The name of the person who stopped its turn, or an empty text, in the state `stopping`. */
  readonly stoppedBy?: string;
  /** The answer's text when it was stopped, on the first event of its turn, if the text was known. */
  readonly stoppedAnswer?: StoppedAnswer;
  /** What was heard in its recordings so far. */
  readonly heard?: readonly HeardPart[];
}

/** An edit that is to be stored. */
export interface NewEdit {
  /** Unix milliseconds by the platform's clock. */
  readonly at: number;
  /** The known number of attempts of the turn that answers the message. */
  readonly attemptsBefore: number;
  /** Removes words of the earlier form from the reply's address. It is absent if the address has none. */
  readonly toAddress?: (address: ReplyAddress) => ReplyAddress;
}

/** The durable record of accepted events. Failures throw `store-unavailable`. */
export interface Inbox {
  /** Sets the event under `event.key` if the key is absent. It is durable when this resolves. */
  accept(event: IncomingEvent): Promise<"accepted" | "duplicate">;
  /**
   * Saves a run's progress for the first time, which claims this attempt at each of its events. It returns
   * false and saves nothing if the attempt is already claimed, one of the events is answered or withdrawn, or
   * the reply is no longer at `turn.address`, because an earlier attempt has shown more of it meanwhile.
   */
  claimTurn(turn: TurnProgress): Promise<boolean>;
  /**
   * Saves later progress of the run. It returns false and saves nothing if another process has claimed a
   * later attempt. The progress survives the end of the process and, with `isDurable`, a power failure.
   */
  saveTurn(turn: TurnProgress, options?: { readonly isDurable?: boolean }): Promise<boolean>;
  /** Set-if-absent, like `accept`: from then on the key is a `duplicate` that nobody answers. */
  refuse(key: string): Promise<"refused" | "duplicate">;
  /**
   * Marks events as answered. `accept` returns `duplicate` for their keys for at least a day. They stay
   * known as long as their messages are kept, or for a day once a later message of the conversation is
   * answered. The mark survives the end of the process when this resolves, and a power failure once a later
   * write was waited for. That suffices because the answer is stored by then and would only be shown again.
   * It returns false and closes nothing if another process has claimed an attempt after `attempts`, or if
   * an event was edited more often than `edits` says. A key that is missing in `edits` was not edited.
   */
  close(
    keys: readonly string[],
    options?: { readonly attempts?: number; readonly edits?: ReadonlyMap<string, number> },
  ): Promise<boolean>;
  /**
   * Durably replaces an accepted event by its edited form and erases the earlier form. An answered event
   * becomes `edited`. `unchanged` means that this edit or a later one is known, `unknown` that
   * the event is not known or is erased. An edited call is erased when it is closed.
   */
  edit(event: IncomingEvent, edit: NewEdit): Promise<"edited" | "unchanged" | "unknown">;
  /**
   * Opens the turn that begins with this event again, with all events that it answers, in one durable write.
   * It then runs here or after a restart. `gone` means that it has expired or was erased. Where an answer is
   * replaced, all of its events must be answered: of several processes that ask at once, only one gets it,
   * and the others get `open`. Otherwise it may be open or answered.
   */
  reopen(
    key: string,
    reason: ReopenReason,
    replaces?: ReplacedAnswer,
  ): Promise<ReopenedTurn | "open" | "gone">;
  /**
   * Marks open events as stopped by that person, so that their turn does not run again. Resolves to the keys
   * that were open. `answer` is stored with the first of them. The mark is durable when this resolves.
   */
  stop(keys: readonly string[], by: string, answer?: StoppedAnswer): Promise<readonly string[]>;
  /**
   * Keeps what was heard in a recording of an open event, so that no run pays for it again; durable when it
   * resolves. It is erased with the event's content, when the event is edited, and when it is closed, because
   * the words are then in its message. Nothing is kept for any other event.
   */
  keepHeard(key: string, part: HeardPart): Promise<void>;
  /** Whether `accept` would return `duplicate` because the event was accepted, refused or withdrawn. */
  knows(key: string): Promise<boolean>;
  /** The known entries of these keys, whether answered or not. */
  lookUp(keys: readonly string[]): Promise<readonly InboxEntry[]>;
  /**
   * Erases the content of events, known or not, and closes them. `accept` then returns `duplicate` for a day.
   * If their turn also answers other open events, it belongs to those. With `keepsReplies`, an event of any
   * other started turn stays open as withdrawn until it is closed.
   */
  withdraw(keys: readonly string[], options?: { readonly keepsReplies?: boolean }): Promise<void>;
  /** Whether the event is unanswered. Another process may have answered it in the meantime. */
  isOpen(key: string): Promise<boolean>;
  /** All open entries, the oldest first. */
  listOpen(): Promise<readonly InboxEntry[]>;
  /** The open entries of one conversation, the oldest first. The cost depends on their number only. */
  listOpenIn(conversationId: string): Promise<readonly InboxEntry[]>;
}
