import type { IncomingEvent, IncomingMessage } from "../../core/events.ts";
import type { TurnProgress } from "../../core/storage.ts";

/** A turn that waits: its event, and how far an earlier run had come. */
export interface Waiting {
  readonly event: IncomingEvent;
  readonly progress: TurnProgress | undefined;
  /** The other events answered by the same reply, on a recovered burst. */
  readonly others: readonly IncomingMessage[];
  /** It is not to be answered by itself any more: its reply only ends, with a Retry. */
  readonly isSealed?: true;
  /** The one who asked has confirmed it; a crash forgets that, and asks again. */
  readonly isConfirmed?: true;
}

/** The conversation an event is kept in: a private or lone call has one of its own, which nobody waits for. */
export function homeOf(event: IncomingEvent): string {
  if (event.kind === "message") return event.conversationId;
  return event.inConversation && !event.isPrivate ? event.conversationId : event.key;
}

/** Keys of all events that a turn answers. */
export function keysOf(turn: Waiting): string[] {
  return [turn.event.key, ...turn.others.map(({ key }) => key)];
}

/** Takes the next turn off the line: a call or recovered turn alone, else all fresh messages up to the next of those. */
export function takeBatch(line: Waiting[]): Waiting[] {
  const isFresh = (turn: Waiting | undefined) =>
    turn?.event.kind === "message" && turn.progress === undefined;
  if (!isFresh(line[0])) return line.splice(0, 1);
  const end = line.findIndex((turn) => !isFresh(turn));
  return line.splice(0, end === -1 ? line.length : end);
}

/**
 * The line of a conversation as the inbox has it now that other processes have been at it: what they accepted
 * before and did not answer comes first, what they began is gone on with, what they answered is dropped.
 * @param open the conversation's open turns, in order of acceptance
 */
export function reconcile(line: readonly Waiting[], open: readonly Waiting[]): Waiting[] {
  const ours = new Set(line.flatMap(keysOf));
  const last = open.findLastIndex((turn) => keysOf(turn).some((key) => ours.has(key)));
  return open.slice(0, last + 1).map((turn) => {
    const own = line.find(({ event }) => event.key === turn.event.key);
    if (own === undefined) return turn;
    const begun = turn.progress?.attempts ?? 0;
    if (own.progress === undefined) return begun === 0 ? own : turn;
    // A Retry that a person asked for is not sealed for its age.
    return begun > own.progress.attempts ? { ...own, progress: turn.progress } : own;
  });
}

/** What is left to answer of a turn that was stopped because messages of it were removed; `undefined`: nothing. */
export function withoutWithdrawn(
  batch: readonly Waiting[],
  stopped: { isWithdrawn(key: string): boolean },
): Waiting | undefined {
  const events = batch.flatMap((turn) => [turn.event, ...turn.others]);
  const [event, ...others] = events.filter(({ key }) => !stopped.isWithdrawn(key));
  if (event === undefined || others.length === events.length - 1) return undefined;
  return { event, progress: undefined, others: others.filter((other) => other.kind === "message") };
}

/** Has it answered in a reply of its own; its attempts go on, so that no answer takes an earlier one's place. */
export function answeredAnew(turn: Waiting, attempts: number): Waiting {
  const { address } = turn.others.at(-1) ?? turn.event;
  return { ...turn, progress: { keys: keysOf(turn), address, attempts } };
}
