import type { InboxEntry, TurnProgress } from "../../core/storage.ts";
import type { PendingTurn } from "./pending-turn.ts";

/** Older events are not answered unasked after a restart, in milliseconds. */
const maxAgeMs = 60 * 60_000;
/** Runs that may end the process before a turn is no longer resumed by itself. */
const maxAttempts = 4;

/** The turns of open entries, in order of acceptance. Entries that share a reply become one turn. */
export function toOpenTurns(open: readonly InboxEntry[], now: number): PendingTurn[] {
  const byKey = new Map(open.map((entry) => [entry.event.key, entry]));
  const joined = new Set<string>();
  // Two processes may each have started with both of two messages: they belong to the first turn.
  for (const { event, turn } of open)
    if (!joined.has(event.key)) for (const key of turn?.keys.slice(1) ?? []) joined.add(key);
  return open.flatMap(({ event, turn, acceptedAt }): PendingTurn[] => {
    if (joined.has(event.key)) return [];
    const others = (turn?.keys.slice(1) ?? []).flatMap((key) => {
      const other = byKey.get(key)?.event;
      return other?.kind === "message" ? [other] : [];
    });
    const progress: TurnProgress = turn ?? { keys: [event.key], address: event.address, attempts: 0 };
    const isSealed = now - acceptedAt > maxAgeMs || progress.attempts >= maxAttempts;
    return [{ event, progress, others, ...(isSealed ? { isSealed } : {}) }];
  });
}
