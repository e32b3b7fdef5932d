import type { ParleyError } from "../../core/errors.ts";
import type { IncomingEvent, IncomingMessage } from "../../core/events.ts";
import type { OpenRedo, StoppedAnswer, TurnProgress } from "../../core/inbox.ts";

/** A turn that is waiting to run: its event, and how far an earlier run came. */
export interface PendingTurn {
  readonly event: IncomingEvent;
  readonly progress: TurnProgress | undefined;
  /** The other events answered by the same reply, in a resumed batch. */
  readonly others: readonly IncomingMessage[];
  /** It is too old or failed too often to run by itself: its reply only ends, with a Retry button. */
  readonly isSealed?: true;
  /** Its messages were deleted: its reply only ends. */
  readonly isWithdrawn?: true;
  /** It was answered before, and runs again into the same reply. */
  readonly redo?: OpenRedo;
  /** Its one message was edited after it had been answered: the edit is still to be applied. */
  readonly wasAnswered?: true;
  /** It runs again because a message of it was edited: that counts for its author. Not stored. */
  readonly isEdited?: true;
  /** Why it must not be answered again: its reply ends with these words. Not stored. */
  readonly refusal?: ParleyError;
  /** Who stopped it, by name: its reply only ends. */
  readonly stoppedBy?: string;
  /** What people saw of its answer then: it is shown and kept. */
  readonly stoppedAnswer?: StoppedAnswer;
  /** The caller has confirmed the command. Not stored: after a crash the command asks again. */
  readonly isConfirmed?: true;
}

/** The conversation in which an event is stored. A private or standalone command has its own, named by its key. */
export function storedIn(event: IncomingEvent): string {
  if (event.kind === "message") return event.conversationId;
  return event.inConversation && !event.isPrivate ? event.conversationId : event.key;
}

/** All events that a turn answers. */
export function eventsOf(turn: PendingTurn): IncomingEvent[] {
  return [turn.event, ...turn.others];
}

/** Their keys. */
export function keysOf(turn: PendingTurn): string[] {
  return eventsOf(turn).map(({ key }) => key);
}

/** Removes the next batch from the front: a command or resumed turn alone, else all new messages up to the next of those. */
export function takeBatch(turns: PendingTurn[]): PendingTurn[] {
  const isNewMessage = (turn: PendingTurn | undefined) =>
    turn?.event.kind === "message" && turn.progress === undefined;
  if (!isNewMessage(turns[0])) return turns.splice(0, 1);
  const end = turns.findIndex((turn) => !isNewMessage(turn));
  return turns.splice(0, end === -1 ? turns.length : end);
}

/**
 * Merges the pending turns of a conversation with its open turns in the inbox, which other processes share: what they
 * accepted earlier comes first, what they started is resumed, what they answered is dropped.
 * @param open the conversation's open turns, in order of acceptance
 */
export function reconcile(pending: readonly PendingTurn[], open: readonly PendingTurn[]): PendingTurn[] {
  const ours = new Set(pending.flatMap(keysOf));
  const last = open.findLastIndex((turn) => keysOf(turn).some((key) => ours.has(key)));
  return open.slice(0, last + 1).map((turn) => {
    const own = pending.find(({ event }) => event.key === turn.event.key);
    const merged = own === undefined ? turn : toMerged(own, turn);
    const isEdited = pending.some((one) => one.isEdited === true && keysOf(turn).includes(one.event.key));
    return isEdited ? { ...merged, isEdited } : merged;
  });
}

/** A pending turn with what is stored of it: its messages may have been edited. */
function toMerged(own: PendingTurn, stored: PendingTurn): PendingTurn {
  if (stored.isWithdrawn === true || stored.wasAnswered === true || stored.stoppedBy !== undefined)
    return stored;
  const attempts = stored.progress?.attempts ?? 0;
  const { event, redo } = stored;
  // Another process has begun it, perhaps with messages that this one did not know then.
  const isBehind = attempts > (own.progress?.attempts ?? 0);
  if (own.progress === undefined) return attempts === 0 ? { ...own, event } : stored;
  // A Retry that a person asked for is not sealed for its age.
  return {
    ...own,
    event,
    others: isBehind
      ? stored.others
      : own.others.map((other) => stored.others.find(({ key }) => key === other.key) ?? other),
    ...(redo !== undefined && redo.since >= (own.redo?.since ?? 0) ? { redo } : {}),
    ...(isBehind ? { progress: stored.progress } : {}),
  };
}

/** How often each edited event of a turn was edited, by key. */
export function editsOf(turn: PendingTurn): ReadonlyMap<string, number> {
  return new Map(
    eventsOf(turn).flatMap((event) =>
      event.edit === undefined ? [] : [[event.key, event.edit.count] as const],
    ),
  );
}

/** What is left to answer of a cancelled batch after some of its messages were deleted; `undefined`: nothing. */
export function withoutDeleted(
  batch: readonly PendingTurn[],
  isDeleted: (key: string) => boolean,
): PendingTurn | undefined {
  const events = batch.flatMap(eventsOf);
  const [event, ...others] = events.filter(({ key }) => !isDeleted(key));
  if (event === undefined || others.length === events.length - 1) return undefined;
  return { event, progress: undefined, others: others.filter((other) => other.kind === "message") };
}

/** The same turn with a new reply. Its attempts go on counting, so that no answer replaces an earlier one. */
export function withNewReply(turn: PendingTurn, attempts: number): PendingTurn {
  const { address } = turn.others.at(-1) ?? turn.event;
  return { ...turn, progress: { keys: keysOf(turn), address, attempts } };
}
