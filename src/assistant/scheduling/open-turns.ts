import type { IncomingEvent } from "../../core/events.ts";
import type { InboxEntry, OpenRedo, TurnProgress } from "../../core/inbox.ts";
import type { PendingTurn } from "./pending-turn.ts";

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
