import { isParleyError, ParleyError } from "../../core/errors.ts";
import type { IncomingEvent, IncomingMessage } from "../../core/events.ts";
import type { StoppedAnswer, Redo, TurnProgress, InboxEntry } from "../../core/inbox.ts";
import type { Reply } from "../../core/platform.ts";
import type { Span } from "../../core/telemetry.ts";

/** What the inbox says of a turn besides its progress. A turn is `open` unless it says otherwise. */
type Marks = Partial<Pick<InboxEntry, "redo" | "state" | "stoppedAnswer" | "stoppedBy">>;

/** A turn that waits to run, with the progress of an earlier run. */
export interface PendingTurn extends Marks {
  readonly event: IncomingEvent;
  readonly progress: TurnProgress | undefined;
  /** In a resumed batch, the other events that the same reply answers. */
  readonly others: readonly IncomingMessage[];
  /** It is too old or failed too often to run by itself. Its reply only ends, with a Retry button. */
  readonly isSealed?: true;
  // The following are not stored.
  /** It runs again because a message of it was edited, which counts for its author. */
  readonly isEdited?: true;
  /** Why it must not be answered again. Its reply ends with these words. */
  readonly refusal?: ParleyError;
  /** The caller has confirmed the command, which asks again after a crash. */
  readonly isConfirmed?: true;
  /** The trace that began when its event arrived in this process, until it is answered. */
  readonly arrival?: Span;
}

/** All events that a turn answers. */
export function eventsOf(turn: PendingTurn): IncomingEvent[] {
  return [turn.event, ...turn.others];
}

/** The keys of all events that a turn answers. */
export function keysOf(turn: PendingTurn): string[] {
  return eventsOf(turn).map(({ key }) => key);
}

/** Takes the next batch: a command or resumed turn alone, or all new messages up to the next of those. */
export function takeBatch(turns: PendingTurn[]): PendingTurn[] {
  const isNewMessage = (turn: PendingTurn | undefined) =>
    turn?.event.kind === "message" && turn.progress === undefined;
  if (!isNewMessage(turns[0])) return turns.splice(0, 1);
  const end = turns.findIndex((turn) => !isNewMessage(turn));
  return turns.splice(0, end === -1 ? turns.length : end);
}

/**
 * Merges the pending turns of a conversation with its open turns in the inbox, which processes share. What
 * others accepted earlier comes first, what they started is resumed, and what they answered is dropped.
 * @param open the conversation's open turns in the order in which they were accepted
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

/** Adds what is stored to a pending turn, because its messages may have been edited. */
function toMerged(own: PendingTurn, stored: PendingTurn): PendingTurn {
  const { state = "open" } = stored;
  if (state !== "open") return stored;
  const attempts = stored.progress?.attempts ?? 0;
  const { event, redo } = stored;
  // Another process has started it, maybe with messages that this process did not know.
  const isBehind = attempts > (own.progress?.attempts ?? 0);
  if (own.progress === undefined) return attempts === 0 ? { ...own, event, state } : stored;
  // A Retry that a person asked for is not sealed for its age.
  return {
    ...own,
    event,
    state,
    others: isBehind
      ? stored.others
      : own.others.map((other) => stored.others.find(({ key }) => key === other.key) ?? other),
    ...(redo !== undefined && redo.since >= (own.redo?.since ?? 0) ? { redo } : {}),
    // In the same attempt, a process that was late in noticing the loss of its lease may have shown more.
    ...(attempts < own.progress.attempts ? {} : { progress: stored.progress }),
  };
}

/** The number of edits of each edited event of a turn, by key. */
export function editsOf(turn: PendingTurn): ReadonlyMap<string, number> {
  return new Map(
    eventsOf(turn).flatMap((event) =>
      event.edit === undefined ? [] : [[event.key, event.edit.count] as const],
    ),
  );
}

/** What a cancelled batch still has to answer after some of its messages were deleted, if anything. */
export function withoutDeleted(
  batch: readonly PendingTurn[],
  isDeleted: (key: string) => boolean,
): PendingTurn | undefined {
  const events = batch.flatMap(eventsOf);
  const [event, ...others] = events.filter(({ key }) => !isDeleted(key));
  if (event === undefined || others.length === events.length - 1) return undefined;
  return { event, progress: undefined, others: others.filter((other) => other.kind === "message") };
}

/** The progress of a turn in a new reply. Attempts continue, so that no answer replaces an earlier one. */
export function toNewReply(turn: PendingTurn, attempts: number): TurnProgress {
  const { address } = turn.others.at(-1) ?? turn.event;
  return { keys: keysOf(turn), address, attempts };
}

/** A turn that runs. */
export interface ActiveTurn {
  readonly signal: AbortSignal;
  /** The reply once it is open. If it is set after the turn was abandoned, it is abandoned at once. */
  reply: Reply | undefined;
  /** Set while an answer grows. It returns the answer to store if a person stops the turn now. */
  soFar: ((by: string) => StoppedAnswer | undefined) | undefined;
  /** The keys of the events that it answers. */
  readonly keys: readonly string[];
  /** Stops the turn for a person. The partial text is the answer. `by` is the shown name, or empty. */
  stop(by: string): void;
  /** Cancels the turn if it answers one of these deleted messages, and returns whether it does. */
  deleteMessages(keys: readonly string[]): boolean;
  /** Whether a message that the turn answers was deleted while it ran. */
  isDeleted(key: string): boolean;
  /** Whether the turn shows nothing more. */
  isAbandoned(): boolean;
  /** Makes the turn show nothing more, because another process or the next start resumes it. */
  abandon(reason: ParleyError): void;
}

/**
 * Runs a batch of turns. `left-open` means that it must run again. It rejects only if the batch stays open.
 */
export type RunBatch = (batch: readonly PendingTurn[], active: ActiveTurn) => Promise<"ended" | "left-open">;

/** The error `cancelled` for a turn that a person has stopped. */
export function toStopped(by: string): ParleyError {
  return new ParleyError("cancelled", "stopped by a person", {
    detail: { because: "stopped", ...(by === "" ? {} : { by }) },
  });
}

/** @param keys the keys of the events that the turn answers */
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

/** The error of a run that leaves its reply open, because an edited question makes the turn run again. */
export function toEditedError(): ParleyError {
  return new ParleyError("stopping", "its question was edited", { detail: { because: "edited" } });
}

/** Whether an error is one of {@link toEditedError}. */
export function isEditedError(error: unknown): boolean {
  return isParleyError(error, "stopping") && error.detail["because"] === "edited";
}

/** A restart does not answer events by itself that are older than this, in milliseconds. */
const maxAgeMs = 60 * 60_000;
/** After this many attempts a turn is not resumed by itself, because they may have ended the process. */
const maxAttempts = 4;

/**
 * Makes turns of open entries, in the order of acceptance. Adjacent messages are in their sending order.
 * Entries that share a reply become one turn.
 */
export function toOpenTurns(accepted: readonly InboxEntry[], now: number): PendingTurn[] {
  const open = inSendingOrder(accepted);
  const byKey = new Map(open.map((entry) => [entry.event.key, entry]));
  const joined = new Set<string>();
  // Two processes may each have started with both of two messages, which then belong to the first turn.
  for (const { event, turn } of open)
    if (!joined.has(event.key)) for (const key of turn?.keys.slice(1) ?? []) joined.add(key);
  return open.flatMap((entry): PendingTurn[] => {
    const { event, turn, acceptedAt, attempts: _claimed, redo: asked, heard: _heard, ...marks } = entry;
    if (joined.has(event.key)) return [];
    const others = (turn?.keys.slice(1) ?? []).flatMap((key) => {
      const other = byKey.get(key)?.event;
      return other?.kind === "message" ? [other] : [];
    });
    const saved: TurnProgress = turn ?? { keys: [event.key], address: event.address, attempts: 0 };
    // Other processes may have begun one of them more often. An earlier attempt could not be claimed.
    const begun = saved.keys.flatMap((key) => {
      const { attempts = 0, turn: own } = byKey.get(key) ?? {};
      return [attempts, own?.attempts ?? 0];
    });
    const progress: TurnProgress = { ...saved, attempts: Math.max(saved.attempts, ...begun) };
    // Attempts count anew for a turn that people asked for again or whose messages they edited.
    const redo = latestRedo([event, ...others], asked);
    const { requestedAt, since } = redo ?? { requestedAt: acceptedAt, since: 0 };
    const isSealed = now - requestedAt > maxAgeMs || progress.attempts - since >= maxAttempts;
    return [
      {
        event,
        progress,
        others,
        ...marks,
        ...(isSealed ? { isSealed } : {}),
        ...(redo === undefined ? {} : { redo }),
      },
    ];
  });
}

/** The reason for the turn's rerun: a person's request, or an edit of its messages after it had started. */
function latestRedo(events: readonly IncomingEvent[], asked: Redo | undefined): Redo | undefined {
  const edits = events.flatMap((event) => (event.kind === "message" ? (event.edit ?? []) : []));
  const since = Math.max(0, ...edits.map(({ attemptsBefore }) => attemptsBefore));
  if (since === 0 || since < (asked?.since ?? 0)) return asked;
  return { kind: "edit", since, requestedAt: Math.max(...edits.map(({ takenAt }) => takenAt)) };
}

/**
 * Restores the sending order, because several processes may have accepted messages in another order. Started
 * turns come first, because their reply is visible.
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

/** Platforms number the messages of one millisecond in their ids, which end the keys. */
function compareSending(a: IncomingEvent, b: IncomingEvent): number {
  if (a.sentAt !== b.sentAt) return a.sentAt - b.sentAt;
  const [one, two] = [a.key, b.key].map((key) => /(?<![\d.])[\d.]+$/.exec(key)?.[0] ?? "");
  if (one === undefined || two === undefined || one.length !== two.length || one === two) return 0;
  return one < two ? -1 : 1;
}
