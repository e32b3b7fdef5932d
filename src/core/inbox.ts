import type { IncomingEvent, IncomingMessage, ReplyAddress } from "./events.ts";
import type { StoredMessage } from "./storage.ts";

/** Progress of an accepted event's turn; saved before each step that a crash must not repeat. */
export interface TurnProgress {
  /** Keys of all events answered by this turn's one reply, in order; the first is the turn's own. */
  readonly keys: readonly string[];
  readonly address: ReplyAddress;
  /** How often the turn was started, the current run included. */
  readonly attempts: number;
}

/** Why an answered turn runs again into the same reply. */
export interface Redo {
  /**
   * `regenerate`: another answer. `continue`: the rest of an answer that reached its length limit. `edit`: the answer to
   * a question that was changed.
   */
  readonly kind: "regenerate" | "continue" | "edit";
  /** The model to ask. Default: as for any answer. */
  readonly model?: string;
}

/** A {@link Redo} of an open turn. */
export interface OpenRedo extends Redo {
  /** How often the turn was started before: answers of these attempts are the ones to be replaced. */
  readonly since: number;
  /** Unix milliseconds. */
  readonly requestedAt: number;
}

/** What is to be reopened. */
export interface RedoOptions {
  /** They take the places of the turn's events of the same keys. */
  readonly edited?: readonly IncomingEvent[];
  /** How often the turn was started when a person asked for this: `open` where it was started again since. */
  readonly attempts?: number;
}

/** An answered turn that is open again. */
export interface ReopenedTurn {
  readonly event: IncomingEvent;
  /** The other events that its reply answers. */
  readonly others: readonly IncomingMessage[];
  readonly turn: TurnProgress;
  readonly redo: OpenRedo;
}

/** What people saw of an answer when it was stopped. */
export interface StoppedAnswer {
  /** As the turn stores it when it ends. */
  readonly message: StoredMessage;
  /** {@link ReplyContent.lead} of the reply. */
  readonly lead: string;
}

/** An accepted event. */
export interface InboxEntry {
  readonly event: IncomingEvent;
  readonly acceptedAt: number;
  /** On the first event of a turn only. */
  readonly turn?: TurnProgress;
  /** Its content is erased: only the reply of its turn is still to be ended. */
  readonly isWithdrawn?: true;
  /** Set on the first event of a turn that runs again; until it is closed. */
  readonly redo?: OpenRedo;
  /** Who stopped its turn, by name: it is not run, only its reply is still to be ended. */
  readonly stoppedBy?: string;
  /** The words of its answer when it was stopped, on the first event of its turn. Absent: none were known. */
  readonly stoppedAnswer?: StoppedAnswer;
  /** It is answered. */
  readonly isClosed?: true;
  /** It had been answered when its author edited it, and is open again: the edit is still to be applied. */
  readonly wasAnswered?: true;
}

/** An edit that is to be taken in. */
export interface NewEdit {
  /** Unix milliseconds by the platform's clock. */
  readonly at: number;
  /** How often the turn that answers the message was started, as far as is known. */
  readonly attemptsBefore: number;
  /** Removes words of the earlier form from the address of the reply. Default: it has none. */
  readonly toAddress?: (address: ReplyAddress) => ReplyAddress;
}

/** Durable record of accepted events. Failures throw `store-unavailable`. */
export interface Inbox {
  /** Set-if-absent under `event.key`, durable when it resolves. */
  accept(event: IncomingEvent): Promise<"accepted" | "duplicate">;
  /**
   * Saves the progress of a run for the first time, which claims this attempt at each of its events. False, and
   * nothing is saved: it has been claimed, or one of the events is answered or withdrawn.
   */
  claimTurn(turn: TurnProgress): Promise<boolean>;
  /**
   * Saves later progress of the run. False, and nothing is saved: another process has claimed a later attempt. Survives
   * the end of the process when it resolves; with `isDurable` a power failure too.
   */
  saveTurn(turn: TurnProgress, options?: { readonly isDurable?: boolean }): Promise<boolean>;
  /** Set-if-absent, like `accept`: from then on the key is a `duplicate` that nobody answers. */
  refuse(key: string): Promise<"refused" | "duplicate">;
  /**
   * Marks events as answered; `accept` returns `duplicate` for their keys for a day at least. They stay known as long as
   * their messages are kept, or for a day once a later message of the conversation is answered. Survives the end of the process
   * when it resolves, a power failure 250 ms later: by then the answer is stored, and would only be shown again.
   * False, and nothing is closed: another process has claimed an attempt after `attempts`, or an event has been edited
   * more often than `edits` says (by key; a key that is not in it was not edited).
   */
  close(
    keys: readonly string[],
    options?: { readonly attempts?: number; readonly edits?: ReadonlyMap<string, number> },
  ): Promise<boolean>;
  /**
   * Replaces an accepted event by its edited form, durably, and erases the earlier form. An answered one is open again,
   * with `wasAnswered`. `unchanged`: this edit or a later one is known. `unknown`: the event is not known, or erased.
   * An edited call is erased when it is closed.
   */
  edit(event: IncomingEvent, edit: NewEdit): Promise<"edited" | "unchanged" | "unknown">;
  /** Reopens a closed entry (Retry). `undefined`: it has expired. */
  reopen(key: string): Promise<InboxEntry | undefined>;
  /**
   * Reopens an answered turn with all events that it answers, so that it runs again as `redo` says, here or after a
   * restart. Of several processes that ask for it at once one gets it. `open`: it is not closed, one of its events is being
   * edited, or another process has just changed it. `gone`: it has expired or was erased.
   */
  redo(key: string, redo: Redo, options?: RedoOptions): Promise<ReopenedTurn | "open" | "gone">;
  /**
   * Marks open events as stopped by that person: from now on their turn is not run again. Resolves to the keys that
   * were open. `answer`: stored with the mark of the first one. Durable when it resolves.
   */
  stop(keys: readonly string[], by: string, answer?: StoppedAnswer): Promise<readonly string[]>;
  /** Whether `accept` would return `duplicate`: it was accepted, refused or withdrawn. */
  knows(key: string): Promise<boolean>;
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
