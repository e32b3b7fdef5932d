import { isParleyError, ParleyError } from "../../core/errors.ts";
import type { IncomingEvent, IncomingMessage } from "../../core/events.ts";
import type { StoppedAnswer, OpenRedo, TurnProgress, InboxEntry } from "../../core/inbox.ts";
import type { Reply } from "../../core/platform.ts";

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

/** A turn that is running. */
export interface ActiveTurn {
  readonly signal: AbortSignal;
  /** Set once the reply is open. One that is set after the turn was abandoned is abandoned at once. */
  reply: Reply | undefined;
  /** Set while an answer grows. Returns it as it is stored if a person stops it now. */
  soFar: ((by: string) => StoppedAnswer | undefined) | undefined;
  /** Keys of the events that it answers. */
  readonly keys: readonly string[];
  /** A person stopped it: partial text is the answer. `by`: the name that is shown; empty: none. */
  stop(by: string): void;
  /** These messages were deleted: the turn is cancelled where it answers one of them. Returns whether it does. */
  deleteMessages(keys: readonly string[]): boolean;
  /** Whether a message that the turn answers was deleted while it ran. */
  isDeleted(key: string): boolean;
  /** Whether it shows nothing more. */
  isAbandoned(): boolean;
  /** Another process, or this one after a restart, resumes it: nothing more is shown from now on. */
  abandon(reason: ParleyError): void;
}

/** The error `cancelled` of a turn that a person has stopped. */
export function toStopped(by: string): ParleyError {
  return new ParleyError("cancelled", "stopped by a person", {
    detail: { because: "stopped", ...(by === "" ? {} : { by }) },
  });
}

/** @param keys of the events that the turn answers */
export function createActiveTurn(keys: readonly string[]): ActiveTurn {
  const controller = new AbortController();
  const deleted = new Set<string>();
  let isAbandoned = false;
  let reply: Reply | undefined;
  return {
    signal: controller.signal,
    get reply() {
      return reply;
    },
    set reply(opened) {
      reply = opened;
      if (isAbandoned) opened?.abandon();
    },
    soFar: undefined,
    keys,
    stop(by) {
      controller.abort(toStopped(by));
    },
    deleteMessages(given) {
      const own = given.filter((key) => keys.includes(key));
      for (const key of own) deleted.add(key);
      if (own.length === 0) return false;
      controller.abort(
        new ParleyError("cancelled", "its message was deleted", { detail: { because: "deleted" } }),
      );
      return true;
    },
    isDeleted: (key) => deleted.has(key),
    isAbandoned: () => isAbandoned,
    abandon(reason) {
      isAbandoned = true;
      reply?.abandon();
      controller.abort(reason);
    },
  };
}

/** Why a turn ends without an end of its reply: it runs again, since a question of it was edited. */
export function toEditedError(): ParleyError {
  return new ParleyError("stopping", "its question was edited", { detail: { because: "edited" } });
}

/** Whether an error is one of {@link toEditedError}. */
export function isEditedError(error: unknown): boolean {
  return isParleyError(error, "stopping") && error.detail["because"] === "edited";
}

/** Older events are not answered unasked after a restart, in milliseconds. */
const maxAgeMs = 60 * 60_000;
/** Runs that may end the process before a turn is no longer resumed by itself. */
const maxAttempts = 4;

/**
 * The turns of open entries, in order of acceptance; messages beside each other, in the order of their sending. Entries that share a reply become one turn.
 */
export function toOpenTurns(accepted: readonly InboxEntry[], now: number): PendingTurn[] {
  const open = inSendingOrder(accepted);
  const byKey = new Map(open.map((entry) => [entry.event.key, entry]));
  const joined = new Set<string>();
  // Two processes may each have started with both of two messages: they belong to the first turn.
  for (const { event, turn } of open)
    if (!joined.has(event.key)) for (const key of turn?.keys.slice(1) ?? []) joined.add(key);
  return open.flatMap((entry): PendingTurn[] => {
    const { event, turn, isWithdrawn, wasAnswered, stoppedBy, stoppedAnswer } = entry;
    if (joined.has(event.key)) return [];
    const others = (turn?.keys.slice(1) ?? []).flatMap((key) => {
      const other = byKey.get(key)?.event;
      return other?.kind === "message" ? [other] : [];
    });
    const progress: TurnProgress = turn ?? { keys: [event.key], address: event.address, attempts: 0 };
    // A turn that people asked for again, or whose messages they edited, begins anew.
    const redo = latestRedo([event, ...others], entry.redo);
    const { requestedAt, since } = redo ?? { requestedAt: entry.acceptedAt, since: 0 };
    const isSealed = now - requestedAt > maxAgeMs || progress.attempts - since >= maxAttempts;
    return [
      {
        event,
        progress,
        others,
        ...(isSealed ? { isSealed } : {}),
        ...(isWithdrawn === true ? { isWithdrawn } : {}),
        ...(redo === undefined ? {} : { redo }),
        ...(wasAnswered === true ? { wasAnswered } : {}),
        ...(stoppedBy === undefined ? {} : { stoppedBy }),
        ...(stoppedAnswer === undefined ? {} : { stoppedAnswer }),
      },
    ];
  });
}

/** What a turn runs again for: what people asked for, or an edit of its messages after it had begun. */
function latestRedo(events: readonly IncomingEvent[], asked: OpenRedo | undefined): OpenRedo | undefined {
  const edits = events.flatMap((event) => (event.kind === "message" ? (event.edit ?? []) : []));
  const since = Math.max(0, ...edits.map(({ attemptsBefore }) => attemptsBefore));
  if (since === 0 || since < (asked?.since ?? 0)) return asked;
  return { kind: "edit", since, requestedAt: Math.max(...edits.map(({ takenAt }) => takenAt)) };
}

/**
 * Several processes may have accepted messages in another order than they were sent. What has begun comes first: its
 * reply is shown already.
 */
function inSendingOrder(open: readonly InboxEntry[]): InboxEntry[] {
  const runs: InboxEntry[][] = [];
  for (const entry of open) {
    const run = runs.at(-1);
    if (run?.at(-1)?.event.kind === "message" && entry.event.kind === "message") run.push(entry);
    else runs.push([entry]);
  }
  const rank = ({ turn }: InboxEntry): number => (turn === undefined ? 1 : 0);
  return runs.flatMap((run) => run.toSorted((a, b) => rank(a) - rank(b) || compareSending(a.event, b.event)));
}

/** Platforms number the messages of a millisecond in their ids, with which the keys end. */
function compareSending(a: IncomingEvent, b: IncomingEvent): number {
  if (a.sentAt !== b.sentAt) return a.sentAt - b.sentAt;
  const [one, two] = [a.key, b.key].map((key) => /(?<![\d.])[\d.]+$/.exec(key)?.[0] ?? "");
  if (one === undefined || two === undefined || one.length !== two.length || one === two) return 0;
  return one < two ? -1 : 1;
}
