import type { TurnProgress } from "../core/inbox.ts";
import { steadyClock } from "../support/steady-clock.ts";
import { indexAccepted } from "./event-index.ts";
import { type InboxRecord, orderOf, turnTtlMs } from "./inbox-record.ts";
import type { Change, KeyValueStore } from "./key-value.ts";
import { entryAt } from "./store-keys.ts";

/** An accepted event that this process has not answered yet, as it is stored. */
export interface Unanswered {
  readonly record: InboxRecord;
  readonly turn?: TurnProgress | undefined;
}

/** Later its reply is sealed in any case, and another process may have answered it long ago. */
const maxAgeMs = 60 * 60 * 1000;

/**
 * What this process has accepted or runs, and has not answered: when the store loses it, it is written again, so that
 * nobody's message is dropped silently. Costs little memory beside the turns, which hold the same events.
 */
export function createAcceptedEvents(store: KeyValueStore) {
  const unanswered = new Map<string, Unanswered>();
  let storing: Promise<number> | undefined;

  const storeOne = async (key: string, { record, turn }: Unanswered): Promise<boolean> => {
    const at = entryAt.event(key);
    const changes: Change[] = [
      { kind: "set", at, value: record },
      ...indexAccepted(record.event, orderOf(record)),
    ];
    if (turn !== undefined)
      changes.push({ kind: "set", at: entryAt.turn(key), value: turn, ttlMs: turnTtlMs });
    return (await store.writeIf([at], changes)) === undefined;
  };

  const storeAll = async () => {
    let count = 0;
    // In the order of acceptance.
    for (const [key, each] of unanswered) {
      if (steadyClock.latest() - each.record.acceptedAt > maxAgeMs) unanswered.delete(key);
      else if (await storeOne(key, each)) count++;
    }
    return count;
  };

  return {
    add: (record: InboxRecord, turn?: TurnProgress) =>
      void unanswered.set(record.event.key, { record, turn }),
    has: (key: string) => unanswered.has(key),
    get: (key: string) => unanswered.get(key),
    keys: () => [...unanswered.keys()],
    setTurn(key: string, turn: TurnProgress) {
      const found = unanswered.get(key);
      if (found !== undefined) unanswered.set(key, { ...found, turn });
    },
    setRecord(record: InboxRecord) {
      const found = unanswered.get(record.event.key);
      if (found !== undefined) unanswered.set(record.event.key, { ...found, record });
    },
    delete: (keys: readonly string[]) => keys.forEach((key) => unanswered.delete(key)),
    /** Writes what the store lacks; resolves to how many events were missing. */
    storeAnew: () =>
      (storing ??= storeAll().finally(() => {
        storing = undefined;
      })),
  };
}
