import { isParleyError, ParleyError } from "../core/errors.ts";
import type { Inbox, InboxEntry, TurnProgress } from "../core/inbox.ts";
import type { Log } from "../core/telemetry.ts";
import { systemClock } from "../support/clock.ts";
import type { Resolves, WriteCondition } from "./backend.ts";
import { readMembers } from "./conversation-index.ts";
import {
  acceptEvent,
  answeredTtlMs,
  type InboxRecord,
  isGone,
  isOver,
  saveProgress,
  saveRecord,
  toEntry,
  toErased,
} from "./inbox-record.ts";
import {
  claimEvents,
  closeEvents,
  type Decision,
  editEvent,
  eraseEvent,
  type FoundEvent,
  hearPart,
  reopenTurn,
  stopEvent,
  withdrawEvents,
} from "./inbox-transitions.ts";
import { type Change, type KeyValueStore, checkIds, entryAt, indexes } from "./key-value.ts";

const batchSize = 500;

/** More lost races in a row are a fault. */
const maxConflicts = 100;

/** Reads events, with the conditions for a write that nobody has changed them since. */
async function observeEvents(
  store: KeyValueStore,
  keys: readonly string[],
): Promise<{ readonly found: readonly FoundEvent[]; readonly unchanged: readonly WriteCondition[] }> {
  const unchanged: WriteCondition[] = [];
  const found = await Promise.all(
    keys.map(async (key): Promise<FoundEvent> => {
      try {
        const [record, turn] = await Promise.all([
          store.observe<InboxRecord>(entryAt.event(key)),
          store.observe<TurnProgress>(entryAt.turn(key)),
        ]);
        unchanged.push(record.unchanged, turn.unchanged);
        return { key, record: record.value, turn: turn.value };
      } catch (error) {
        if (!isParleyError(error, "store-corrupt")) throw error;
        return { key, record: undefined, turn: undefined, damage: error };
      }
    }),
  );
  return { found, unchanged };
}

/**
 * Changes events together. `decide` gets their current state, and is called again if another process or this
 * one has changed them.
 * @throws ParleyError `store-corrupt` if one of them is damaged, unless `decide` is `forDamaged`
 */
async function changeEvents<T>(
  store: KeyValueStore,
  keys: readonly string[],
  decide: (found: readonly FoundEvent[]) => Decision<T>,
  { resolves, forDamaged = false }: { readonly resolves?: Resolves; readonly forDamaged?: boolean } = {},
): Promise<T> {
  for (let conflict = 0; conflict < maxConflicts; conflict++) {
    const { found, unchanged } = await observeEvents(store, keys);
    const damage = found.find((one) => one.damage !== undefined)?.damage;
    if (damage !== undefined && !forDamaged) throw damage;
    const { result, changes = [] } = decide(found);
    if (changes.length === 0 || (await store.writeIf(unchanged, changes, resolves)) === undefined)
      return result;
  }
  throw tooManyConflicts();
}

function tooManyConflicts(): ParleyError {
  return new ParleyError("store-unavailable", "other processes kept changing the event");
}

/** The options of {@link createInbox}. */
interface InboxOptions {
  readonly store: KeyValueStore;
  readonly log: Log;
  /** How many milliseconds messages are kept. Default: for ever. */
  readonly retentionMs?: number | undefined;
}

/**
 * The inbox over a key-value store. The entry under an event's key is both the deduplication record and the
 * pending work. The indexes of events change in the same atomic write, so neither can be lost without the
 * other, and a list reads only entries of its index.
 */
export function createInbox(options: InboxOptions): Inbox {
  const { store, log, retentionMs } = options;

  /** Skips damaged entries, so that they do not keep the others from being answered. */
  const readUndamaged = async (keys: readonly string[]): Promise<FoundEvent[]> => {
    const [records, turns] = await Promise.all([
      store.inspectMany<InboxRecord>("inbox", keys),
      store.inspectMany<TurnProgress>("turn", keys),
    ]);
    return keys.flatMap((key, position) => {
      const [record, turn] = [records[position], turns[position]];
      if (!(record instanceof ParleyError || turn instanceof ParleyError)) return [{ key, record, turn }];
      log.error({ turn: key }, "damaged inbox entry skipped");
      return [];
    });
  };

  const readOpen = async (index: string): Promise<readonly InboxEntry[]> => {
    const keys = await readMembers(store, index);
    const open: InboxEntry[] = [];
    const missing: string[] = [];
    for (let from = 0; from < keys.length; from += batchSize) {
      for (const { key, record, turn } of await readUndamaged(keys.slice(from, from + batchSize))) {
        if (record === undefined) missing.push(key);
        else if (!isOver(record)) open.push(toEntry(record, turn));
      }
    }
    if (missing.length > 0) {
      // A conversation's index may keep a member for a while, but the index of all open events never does.
      if (index === indexes.openEvents) {
        log.error(
          { entries: missing.length },
          "accepted events are missing from the store: was it emptied, or does it evict entries?",
        );
      }
      // During a failover, index and entries may come from different servers. The write decides.
      for (const member of missing)
        await store.writeIf([entryAt.event(member)], [{ kind: "remove-member", index, member }], "soon");
    }
    return open;
  };

  return {
    async accept(event) {
      checkIds(event);
      const record: InboxRecord = { event, acceptedAt: systemClock.now(), state: "open" };
      if ((await store.writeIf([entryAt.event(event.key)], acceptEvent(record))) !== undefined)
        return "duplicate";
      return "accepted";
    },
    async claimTurn(turn) {
      const claimed = await changeEvents(store, turn.keys, (found) => claimEvents(found, turn));
      return claimed !== undefined;
    },
    async refuse(key) {
      const change = saveRecord(toErased(key, undefined), answeredTtlMs);
      const failed = await store.writeIf([entryAt.event(key)], [change]);
      return failed === undefined ? "refused" : "duplicate";
    },
    async saveTurn(turn, { isDurable = false } = {}) {
      return await changeEvents(
        store,
        turn.keys,
        (found) =>
          found.some(({ record }) => (record?.attempts ?? 0) > turn.attempts)
            ? { result: false }
            : { result: true, changes: saveProgress(turn) },
        { resolves: isDurable ? "durable" : "soon" },
      );
    },
    async close(keys, { attempts, edits } = {}) {
      const closing = await changeEvents(
        store,
        keys,
        (found) => closeEvents(found, { attempts, edits, retentionMs }),
        { resolves: "soon" },
      );
      if (closing === undefined) return false;
      if (closing.isErased) await store.backend.scrub();
      return true;
    },
    async edit(event, edit) {
      const edited = await changeEvents(store, [event.key], ([found]) => editEvent(found, event, edit));
      if (typeof edited === "string") return edited;
      await store.backend.scrub();
      return "edited";
    },
    async reopen(key, reason, replaces) {
      for (let conflict = 0; conflict < maxConflicts; conflict++) {
        const [turn] = await store.getMany<TurnProgress>("turn", [key]);
        const keys = turn?.keys ?? [key];
        const reopened = await changeEvents(store, keys, (found) => reopenTurn(found, reason, replaces));
        if (reopened === "moved") continue;
        if (typeof reopened === "string") return reopened;
        const { records, turn: again, redo } = reopened;
        const [first, ...others] = records;
        return {
          event: first.event,
          others: others.map(({ event }) => event).filter((event) => event.kind === "message"),
          turn: again,
          ...(redo === undefined ? {} : { redo }),
        };
      }
      throw tooManyConflicts();
    },
    async stop(keys, by, answer) {
      const stopped: string[] = [];
      for (const [index, key] of keys.entries()) {
        const record = await changeEvents(store, [key], ([found]) =>
          stopEvent(found, by, index === 0 ? answer : undefined),
        );
        if (record === undefined) continue;
        stopped.push(key);
      }
      return stopped;
    },
    async keepHeard(key, part) {
      await changeEvents(store, [key], ([found]) => hearPart(found, part));
    },
    knows: async (key) => (await store.get<InboxRecord>("inbox", key)) !== undefined,
    async lookUp(keys) {
      const [records, turns] = await Promise.all([
        store.getMany<InboxRecord>("inbox", keys),
        store.getMany<TurnProgress>("turn", keys),
      ]);
      return records.flatMap((record, position) =>
        record === undefined || isGone(record) ? [] : [toEntry(record, turns[position])],
      );
    },
    async withdraw(keys, { keepsReplies = false } = {}) {
      const withOthers = (await readUndamaged(keys)).flatMap(({ turn }) => turn?.keys ?? []);
      const all = [...new Set([...keys, ...withOthers])];
      await changeEvents(store, all, (found) => withdrawEvents(found, keys, keepsReplies), {
        forDamaged: true,
      });
      await store.backend.scrub();
    },
    async isOpen(key) {
      const record = await store.get<InboxRecord>("inbox", key);
      return record !== undefined && !isOver(record);
    },
    listOpen: () => readOpen(indexes.openEvents),
    listOpenIn: (conversationId) => readOpen(indexes.openEventsIn(conversationId)),
  };
}

/** Which answered events are erased: those of a conversation, an author, or an author in a conversation. */
type AnsweredEvents =
  | { readonly conversationId: string; readonly authorId?: undefined }
  | { readonly conversationId: string | undefined; readonly authorId: string };

/** How many events are erased in one write. */
const eraseBatchSize = 100;

/**
 * Erases the content of answered events, whose keys stay duplicates. Open events stay, because the request to
 * erase is one of them.
 */
export async function eraseAnsweredEvents(store: KeyValueStore, which: AnsweredEvents): Promise<void> {
  const { conversationId, authorId } = which;
  const index =
    authorId === undefined ? indexes.answeredEventsIn(conversationId) : indexes.answeredEventsBy(authorId);
  const keys = await readMembers(store, index);
  // The rest of the index expires by itself, or is listed again with the next answered event.
  await store.write([{ kind: "remove-member", index: indexes.expiringIndexes, member: index }], "soon");
  for (let from = 0; from < keys.length; from += eraseBatchSize) {
    const batch = keys.slice(from, from + eraseBatchSize);
    await changeEvents(
      store,
      batch,
      (found) => ({
        result: undefined,
        changes: found.flatMap(({ key, record, damage }): Change[] => {
          // Nobody can read the event, but it may contain words of the author.
          if (damage !== undefined)
            return [...eraseEvent(key, undefined), { kind: "remove-member", index, member: key }];
          if (record?.state !== "answered") return [];
          if (conversationId !== undefined && record.event.conversationId !== conversationId) return [];
          return eraseEvent(key, record);
        }),
      }),
      { forDamaged: true },
    );
  }
}
