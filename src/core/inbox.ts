import type { ErrorCode } from "./errors.ts";
import type { IncomingEvent, ReplyAddress } from "./events.ts";
import type { NotedWithMessage, StoredMessage } from "./storage.ts";

/**
 * What is to be done for an accepted event.
 * - `open`: its turn waits or runs.
 * - `ending`: the end of its turn is decided, and is to be shown.
 * - `over`: nothing. Its words are in the log.
 * - `joined`: the turn of another event answers it.
 * - `erased`: nothing. Only its key is left, so that a late delivery is a duplicate.
 */
export type RecordState = "open" | "ending" | "over" | "joined" | "erased";

/**
 * Why a turn runs again into the same reply.
 * - `retry`: it has failed, or was sealed.
 * - `confirm`: its person has confirmed the command.
 * - `regenerate`: somebody asks for another answer.
 * - `continue`: somebody asks for the rest of an answer that broke off.
 * - `edit`: its question was changed.
 */
export const againReasons = ["retry", "confirm", "regenerate", "continue", "edit"] as const;
export type AgainReason = (typeof againReasons)[number];

/** Why a turn is open again. */
export interface Again {
  readonly kind: AgainReason;
  /** The model to ask. By default it is chosen as for any answer. */
  readonly model?: string;
  /** Whether it is no further request of its author: it was counted, or is not theirs. */
  readonly isCounted?: true;
}

/**
 * How a turn ends.
 * - `answer`: with the whole answer, or the result of a command.
 * - `failed`: an error ended it.
 * - `stopped`: a person did.
 * - `refused`: by the rules, a rate, a budget, or because nothing could be read.
 * - `sealed`: it is too old or has failed too often to run by itself.
 * - `withdrawn`: all of its questions were deleted.
 */
export type ResultKind = "answer" | "failed" | "stopped" | "refused" | "sealed" | "withdrawn";

/** The end of a turn, which is shown by whoever holds the conversation. */
export interface TurnEnd {
  readonly kind: ResultKind;
  /** Unix milliseconds. */
  readonly at: number;
  /** The name of the person who stopped it. An empty text names nobody. */
  readonly by?: string;
  /** Why there is no whole answer, in a sentence for people. */
  readonly why?: string;
  /** The error of a failure. */
  readonly code?: ErrorCode;
  /** Whether its reply offers to try again. */
  readonly canRetry?: true;
  /** Whether an earlier answer stays, which is shown with `why`. */
  readonly keepsEarlier?: true;
  /** Whether the log has what it ends with. Without it only the end was decided. */
  readonly isStored: boolean;
}

/** The turn of an event, from its first attempt on. */
export interface TurnState {
  /** The keys of the events that it answers, in order. A deleted one leaves it. */
  readonly keys: readonly string[];
  /** How many attempts were begun. */
  readonly attempt: number;
  /** How many of them were begun before it was last opened. The others are its tries. */
  readonly since: number;
  /** When it was last opened, in Unix milliseconds. */
  readonly openedAt: number;
  readonly again?: Again;
  /** The attempt whose answer is stored. Those after it have left it as it was. */
  readonly answer?: number;
  /** Where its reply is. */
  readonly address: ReplyAddress;
  /** Present in the state `ending`. */
  readonly end?: TurnEnd;
  /** When a person has stopped it, by the platform's clock in Unix milliseconds. */
  readonly stoppedAt?: number;
}

/**
 * An accepted event. The record of a turn's first event is also that of the turn. The words of a message are
 * in it until its question is in the log, and then only there. A call keeps its options for a week, because
 * it can be asked again.
 */
export interface InboxRecord {
  readonly event: IncomingEvent;
  readonly acceptedAt: number;
  readonly state: RecordState;
  /** It rises with each write. */
  readonly version: number;
  /** Whether the text of the event is in the log. Its files are still to be read where it names some. */
  readonly isInLog?: true;
  /** It does not run before this time, in Unix milliseconds. */
  readonly dueAt?: number;
  /** In the state `joined`, the key of the turn that answers it. */
  readonly in?: string;
  readonly turn?: TurnState;
}

/** A record with a turn. */
export type TurnRecord = InboxRecord & { readonly turn: TurnState };

/**
 * What people may ask for after an event was accepted. It counts as soon as it is durable, also where its
 * turn runs, here or in another process. Each can be repeated.
 */
export type Change =
  | {
      readonly kind: "edit";
      /** The key of the edited event. */
      readonly of: string;
      /** When it was made by the platform's clock, in Unix milliseconds. */
      readonly at: number;
      /** Whether it may be answered anew. Otherwise only the words change. */
      readonly isAsked: boolean;
      readonly toEvent: (event: IncomingEvent) => IncomingEvent;
      readonly toQuestion: (stored: StoredMessage) => StoredMessage;
      /** Removes the earlier words from an address, if it has any. */
      readonly toAddress: (address: ReplyAddress) => ReplyAddress;
    }
  | { readonly kind: "delete"; readonly of: string }
  | {
      readonly kind: "stop";
      readonly of: string;
      /** The name of the person, or an empty text. */
      readonly by: string;
      readonly at: number;
    }
  | {
      readonly kind: "again";
      readonly of: string;
      readonly reason: AgainReason;
      /** The attempt whose answer has the button. Without it any attempt is meant. */
      readonly attempt?: number;
      readonly model?: string;
      /** Whether it must be the last turn of its conversation. */
      readonly isLastOnly: boolean;
      /** Corrects the words of its questions, which are in the log. */
      readonly toQuestion?: (stored: StoredMessage) => StoredMessage;
    };

/**
 * What came of a change.
 * - `unchanged`: this edit, or a later one, is known.
 * - `unknown`: nothing is known of the event, or it is erased.
 * - `ended`: there is nothing to stop.
 * - `under-way`: the turn runs, or will run, again.
 * - `outdated`: the turn has another answer by now.
 * - `not-last`: another turn came after it.
 * - `gone`: the turn was erased or has expired.
 */
export type Changed =
  | "done"
  | "unchanged"
  | "unknown"
  | "ended"
  | "under-way"
  | "outdated"
  | "not-last"
  | "gone";

/** A change that was made or not, and the record of the turn as it is then. */
export interface ChangeOutcome {
  readonly result: Changed;
  readonly turn?: InboxRecord;
}

/** An attempt that has begun. */
export interface Begun {
  readonly record: TurnRecord;
  /** The events that it answers. The first is the turn's own, unless that was deleted. */
  readonly events: readonly IncomingEvent[];
}

/** What an attempt writes. Each is refused where somebody has changed the turn so that it must not. */
export type RunWrite =
  /** What is asked, with what was said in the room before, in order; the words leave the records. */
  | {
      readonly kind: "asked";
      readonly messages: readonly StoredMessage[];
      readonly noted?: NotedWithMessage;
    }
  /** Where the reply is. It is also written where the turn was opened again, because the post exists. */
  | {
      readonly kind: "address";
      readonly address: ReplyAddress;
      /** Keys of the platform's messages that show it. */
      readonly shownAs: readonly string[];
      readonly isDurable?: boolean;
    }
  /** How the turn ends, with its answer in place of the earlier one, which becomes a version, or is gone. */
  | {
      readonly kind: "end";
      readonly end: TurnEnd;
      readonly answer?: StoredMessage;
      readonly earlier?: "erased" | "version" | "continued";
      /** The questions of events whose words are not in the log yet. */
      readonly questions: readonly StoredMessage[];
      readonly noted?: NotedWithMessage;
      /** A question as it is where its message was edited since the attempt began, and else the same. */
      readonly toEdited: (question: StoredMessage, event: IncomingEvent) => StoredMessage;
    }
  /** The end is shown. `isRepeatable`: its buttons run a call again that is not in the log. */
  | { readonly kind: "close"; readonly isRepeatable?: boolean }
  /** The attempt met an outage and does not count as a try. */
  | { readonly kind: "give-back" };

/** Identifies an attempt. */
export interface Attempt {
  readonly key: string;
  readonly attempt: number;
  /** The conversation that stores it. */
  readonly conversationId: string;
}

/** Whether it was written, or the turn's record as it is instead. */
export type Written =
  | { readonly isWritten: true }
  | { readonly isWritten: false; readonly record?: InboxRecord };

/** The durable record of accepted events. Failures throw `store-unavailable`. */
export interface Inbox {
  /**
   * Sets the event under `event.key` if the key is absent. It is durable when this resolves.
   * @param dueAt the time before which it does not run, in Unix milliseconds
   */
  accept(event: IncomingEvent, dueAt?: number): Promise<"accepted" | "duplicate">;
  /** Set-if-absent, like `accept`: from then on the key is a `duplicate` that nobody answers. */
  refuse(key: string): Promise<"refused" | "duplicate">;
  /**
   * Makes a change by one durable write over what was read. Words that it takes away are gone from the
   * service's files too.
   */
  change(change: Change): Promise<ChangeOutcome>;
  /**
   * Begins an attempt at these events, which are as they were read. The first attempt of messages makes their
   * turn the last one of the conversation. `undefined`: somebody has changed one of them.
   * @param questions what is asked, where that is known already
   */
  begin(
    batch: readonly InboxRecord[],
    questions?: { readonly messages: readonly StoredMessage[]; readonly noted?: NotedWithMessage },
  ): Promise<Begun | undefined>;
  /** Writes for an attempt, over its record as it is now. */
  write(attempt: Attempt, what: RunWrite): Promise<Written>;
  /** Stores turns that are over, such as those of a copied conversation. Known keys stay as they are. */
  adopt(records: readonly InboxRecord[]): Promise<void>;
  /** The known records of these keys. Those that are not known, or have expired, are left out. */
  read(keys: readonly string[]): Promise<readonly InboxRecord[]>;
  /** The records of all events that are to be answered or whose end is to be shown, the oldest first. */
  open(): Promise<readonly InboxRecord[]>;
  /** Those of one conversation. The cost depends on their number only. */
  openIn(conversationId: string): Promise<readonly InboxRecord[]>;
}
