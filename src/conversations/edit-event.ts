import { ParleyError } from "../core/errors.ts";
import type { Inbox, TurnProgress } from "../core/inbox.ts";
import type { createAcceptedEvents } from "./accepted-events.ts";
import { indexOpen, unindexAnswered } from "./event-index.ts";
import { claimTtlMs, editsOf, orderOf, toEdited, turnTtlMs, type InboxRecord } from "./inbox-record.ts";
import type { EntryAddress, WriteCondition } from "./backend.ts";
import type { Change, KeyValueStore } from "./key-value.ts";
import { entryAt } from "./store-keys.ts";

/** So many lost races in a row are a fault. */
export const maxConflicts = 100;

const noProgress: TurnProgress = { keys: [], address: {}, attempts: 0 };

/** What {@link createEventEditor} works with. */
export interface EventEditorOptions {
  readonly store: KeyValueStore;
  readonly accepted: Pick<ReturnType<typeof createAcceptedEvents>, "add">;
}

/**
 * Returns {@link Inbox.edit}. Each edit leaves an entry of its own, set-if-absent ({@link editGuards}): it orders the edits
 * of several processes, and keeps a run that answered the earlier form from closing the event.
 */
export function createEventEditor({ store, accepted }: EventEditorOptions): Inbox["edit"] {
  return async (event, edit) => {
    const { at, toAddress = (address) => address } = edit;
    const { key } = event;
    for (let conflict = 0; conflict < maxConflicts; conflict++) {
      const { record, turn, unchanged } = await observeEvent(store, key);
      if (record === undefined || record.isForgotten === true) return "unknown";
      if (editedAtOf(record) >= at) return "unchanged";
      const value = toEdited(record, turn, { event, edit });
      const reopened =
        record.isClosed === true && turn !== undefined
          ? { ...turn, address: toAddress(turn.address) }
          : undefined;
      const changes: Change[] = [
        { kind: "set", at: entryAt.event(key), value },
        ...outdate(record),
        // Also where it was open: it may be closed meanwhile.
        ...indexOpen(value.event, orderOf(value)),
        ...unindexAnswered(value.event),
        ...(reopened === undefined
          ? []
          : [{ kind: "set", at: entryAt.turn(key), value: reopened, ttlMs: turnTtlMs } as const]),
      ];
      // Otherwise it was edited, answered, reopened or erased meanwhile.
      if ((await store.writeIf(unchanged, changes)) !== undefined) continue;
      accepted.add(value, reopened ?? turn);
      await store.backend.scrub();
      return "edited";
    }
    throw toConflictError();
  };
}

function editedAtOf({ event }: InboxRecord): number {
  return event.edit?.at ?? -Infinity;
}

/** An event's record and what of a turn it begins, and the condition of a write that nobody has changed them since. */
export async function observeEvent(
  store: KeyValueStore,
  key: string,
): Promise<{
  readonly record: InboxRecord | undefined;
  readonly turn: TurnProgress | undefined;
  readonly unchanged: readonly WriteCondition[];
}> {
  const [record, turn] = await Promise.all([
    store.observe<InboxRecord>(entryAt.event(key)),
    store.observe<TurnProgress>(entryAt.turn(key)),
  ]);
  return { record: record.value, turn: turn.value, unchanged: [record.unchanged, turn.unchanged] };
}

/**
 * What must be absent for a write that closes records as they were read: otherwise it would bring back words that were
 * edited away or erased meanwhile. Erased records hold no words.
 * @param edits how often the events of the read records were edited, by key, where the caller knows an earlier form
 */
export function editGuards(
  found: readonly { readonly key: string; readonly record: InboxRecord | undefined }[],
  edits?: ReadonlyMap<string, number>,
): EntryAddress[] {
  return found.flatMap(({ key, record }) => {
    if (record?.isForgotten === true) return [];
    const known = edits === undefined ? record && editsOf(record) : edits.get(key);
    return [entryAt.edit(key, (known ?? 0) + 1)];
  });
}

/** Has a write fail that closes a record as it was read until now. */
export function outdate(record: InboxRecord): Change[] {
  const at = entryAt.edit(record.event.key, editsOf(record) + 1);
  return [{ kind: "set", at, value: noProgress, ttlMs: claimTtlMs }];
}

/** After {@link maxConflicts}. */
export function toConflictError(): ParleyError {
  return new ParleyError("store-unavailable", "other processes kept changing the event");
}
