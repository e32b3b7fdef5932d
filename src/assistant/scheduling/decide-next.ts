import type { IncomingEvent } from "../../core/events.ts";
import type { InboxRecord } from "../../core/inbox.ts";

/**
 * What is to be done next in a conversation.
 * - `run`: its events are answered.
 * - `seal`: it is too old, or has failed too often, to run by itself. Its reply gets a Retry button.
 * - `end`: the end that was decided is shown.
 * - `give-up`: the end could not be shown too often.
 */
export interface Task {
  readonly kind: "run" | "seal" | "end" | "give-up";
  /** A begun turn or a call alone, or all waiting messages up to the next of those. */
  readonly batch: readonly InboxRecord[];
}

/** A task, the time until which it waits (Unix ms), or nothing. */
export type Next = Task | { readonly kind: "wait"; readonly until: number } | { readonly kind: "nothing" };

/** A turn does not run by itself if it was opened longer ago than this, in milliseconds. */
const maxAgeMs = 60 * 60_000;
/** Nothing waits longer, in milliseconds. A later time was written before the clock was set back. */
const maxWaitMs = 10_000;
/** After this many tries a turn is not run by itself, because they may have ended the process. */
const maxTries = 4;
/** The same for showing a stored end. It asks no model, and a bad hour with many restarts takes dozens. */
const maxShows = 100;

/**
 * Decides what the holder of a conversation does next.
 * @param open its open records in the order in which they were accepted. `now` is in Unix ms
 */
export function decideNext(open: readonly InboxRecord[], now: number): Next {
  const begun = open.find(({ turn }) => turn !== undefined);
  const batch = begun === undefined ? takeWaiting(open, now) : [begun];
  const [first] = batch;
  if (first === undefined) return { kind: "nothing" };
  const until = Math.max(...batch.map(({ dueAt = 0 }) => (dueAt > now + maxWaitMs ? 0 : dueAt)));
  if (until > now) return { kind: "wait", until };
  const { attempt, since, openedAt } = first.turn ?? { attempt: 0, since: 0, openedAt: first.acceptedAt };
  const tries = attempt - since;
  if (first.state === "ending") return { kind: tries >= maxShows ? "give-up" : "end", batch };
  return { kind: tries >= maxTries || isTooOld(openedAt, now) ? "seal" : "run", batch };
}

function isTooOld(openedAt: number, now: number): boolean {
  return now - openedAt > maxAgeMs;
}

/**
 * A call alone, or all messages up to the next call, in the order of their sending. Those that are too old go
 * first and by themselves, so that a new message is not sealed with them.
 */
function takeWaiting(open: readonly InboxRecord[], now: number): readonly InboxRecord[] {
  const [first] = open;
  if (first === undefined || first.event.kind === "call") return open.slice(0, 1);
  const end = open.findIndex(({ event }) => event.kind === "call");
  const messages = open
    .slice(0, end === -1 ? open.length : end)
    .toSorted((a, b) => compareSending(a.event, b.event));
  const old = messages.filter(({ acceptedAt }) => isTooOld(acceptedAt, now));
  return old.length > 0 ? old : messages;
}

/** Platforms number the messages of one millisecond in their ids, which end the keys. */
function compareSending(a: IncomingEvent, b: IncomingEvent): number {
  if (a.sentAt !== b.sentAt) return a.sentAt - b.sentAt;
  const [one, two] = [a.key, b.key].map((key) => /(?<![\d.])[\d.]+$/.exec(key)?.[0] ?? "");
  if (one === undefined || two === undefined || one.length !== two.length || one === two) return 0;
  return one < two ? -1 : 1;
}
