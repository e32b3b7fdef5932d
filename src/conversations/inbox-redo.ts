import type { Inbox, OpenRedo, ReopenedTurn, TurnProgress } from "../core/inbox.ts";
import type { IncomingEvent } from "../core/events.ts";
import type { createAcceptedEvents } from "./accepted-events.ts";
import { indexOpen, unindexAnswered } from "./event-index.ts";
import { maxConflicts, observeEvent, toConflictError } from "./edit-event.ts";
import { type InboxRecord, orderOf, toEntry, turnTtlMs } from "./inbox-record.ts";
import type { Change, KeyValueStore } from "./key-value.ts";
import { entryAt } from "./store-keys.ts";
import { steadyClock } from "../support/steady-clock.ts";

/** How long it is known that a process has reopened a turn: others that got the same click may be slow. */
const claimTtlMs = 60 * 60 * 1000;

/** The part of the inbox by which people steer turns that it knows: run again, or stopped. */
export function createInboxRedo({
  store,
  accepted,
}: {
  readonly store: KeyValueStore;
  readonly accepted: ReturnType<typeof createAcceptedEvents>;
}): Pick<Inbox, "reopen" | "redo" | "stop"> {
  function isAnswered(record: InboxRecord | undefined): record is InboxRecord {
    return record?.isClosed === true && record.isForgotten !== true;
  }

  return {
    async reopen(key) {
      for (let conflict = 0; conflict < maxConflicts; conflict++) {
        const { record, turn, unchanged } = await observeEvent(store, key);
        if (record === undefined || record.isForgotten === true) return undefined;
        const { event, acceptedAt } = record;
        const value: InboxRecord = { event, acceptedAt };
        const changes = toReopened(value);
        if (turn !== undefined)
          changes.push({ kind: "set", at: entryAt.turn(key), value: turn, ttlMs: turnTtlMs });
        // Otherwise it was edited, answered or erased meanwhile.
        if ((await store.writeIf(unchanged, changes)) !== undefined) continue;
        accepted.add(value, turn);
        return toEntry(value, turn);
      }
      throw toConflictError();
    },
    async redo(key, wanted, { edited, attempts } = {}) {
      const { record, turn, unchanged } = await observeEvent(store, key);
      if (record === undefined || record.isForgotten === true) return "gone";
      if (record.isClosed !== true) return "open";
      const progress: TurnProgress = turn ?? { keys: [key], address: record.event.address, attempts: 1 };
      if (attempts !== undefined && progress.attempts !== attempts) return "open";
      const observed = await Promise.all(
        progress.keys.slice(1).map((other) => store.observe<InboxRecord>(entryAt.event(other))),
      );
      const rest = observed.map(({ value }) => value);
      // One of them is being edited: then the turn runs again for it.
      if (rest.some((other) => other !== undefined && other.isClosed !== true)) return "open";
      const requestedAt = steadyClock.latest();
      const redo: OpenRedo = { ...wanted, since: progress.attempts, requestedAt };
      const toOpen = ({ event, acceptedAt }: InboxRecord): InboxRecord => ({
        event: edited?.find(({ key: own }) => own === event.key) ?? event,
        acceptedAt,
      });
      const first: InboxRecord = { ...toOpen(record), redo };
      // Those that were erased meanwhile are no longer part of it.
      const others = rest.filter(isAnswered).map(toOpen);
      const own: TurnProgress = { ...progress, keys: [first, ...others].map(({ event }) => event.key) };
      const claim = entryAt.redo(key, progress.attempts);
      const taken = await store.writeIf(
        [claim, ...unchanged, ...observed.map((other) => other.unchanged)],
        [
          { kind: "set", at: claim, value: { ...own, address: {} }, ttlMs: claimTtlMs },
          { kind: "set", at: entryAt.turn(key), value: own, ttlMs: turnTtlMs },
          ...[first, ...others].flatMap(toReopened),
        ],
      );
      if (taken !== undefined) return "open";
      accepted.add(first, own);
      for (const other of others) accepted.add(other);
      return {
        event: first.event,
        others: others.map(({ event }) => event).filter(isMessage),
        turn: own,
        redo,
      } satisfies ReopenedTurn;
    },
    async stop(keys, by, answer) {
      const stopped: string[] = [];
      for (const [index, key] of keys.entries()) {
        const withAnswer = index === 0 && answer !== undefined ? { stoppedAnswer: answer } : {};
        let changed: InboxRecord | undefined;
        await store.update<InboxRecord>(entryAt.event(key), (record) => {
          changed = record.isClosed === true ? undefined : { ...record, stoppedBy: by, ...withAnswer };
          return changed;
        });
        if (changed === undefined) continue;
        accepted.setRecord(changed);
        stopped.push(key);
      }
      return stopped;
    },
  };
}

/** What opens a closed event again. */
function toReopened(record: InboxRecord): Change[] {
  const { event } = record;
  return [
    { kind: "set", at: entryAt.event(event.key), value: record },
    ...indexOpen(event, orderOf(record)),
    ...unindexAnswered(event),
  ];
}

function isMessage(event: IncomingEvent): event is Extract<IncomingEvent, { kind: "message" }> {
  return event.kind === "message";
}
