import { ParleyError } from "../core/errors.ts";
import type { Inbox, InboxEntry, TurnProgress } from "../core/inbox.ts";
import type { Log } from "../core/telemetry.ts";
import { createAcceptedEvents } from "./accepted-events.ts";
import { createEventEditor, editGuards, maxConflicts, outdate, toConflictError } from "./edit-event.ts";
import { toClosing } from "./close-events.ts";
import { indexAccepted, unindexAnswered, unindexOpen } from "./event-index.ts";
import {
  answeredTtlMs,
  claimTtlMs,
  type InboxRecord,
  orderOf,
  toEntry,
  toErased,
  toWithdrawn,
  turnTtlMs,
} from "./inbox-record.ts";
import { letEarlierTurnsExpire } from "./earlier-turns.ts";
import { createInboxRedo } from "./inbox-redo.ts";
import { readMembers } from "./index-members.ts";
import { type Change, type KeyValueStore, writeBatches } from "./key-value.ts";
import { entryAt, indexes } from "./store-keys.ts";
import { steadyClock } from "../support/steady-clock.ts";

const batchSize = 500;

/** An inbox that outlives the loss of the store's data. */
export interface RestorableInbox extends Inbox {
  /** Writes again what this process has accepted and not answered; resolves to how many events were missing. */
  storeAnew(): Promise<number>;
}

/** @see {@link createInbox} */
export interface InboxOptions {
  readonly store: KeyValueStore;
  readonly log: Log;
  /** Whether several processes may run turns on this store. */
  readonly isShared: boolean;
  /** Whether another process may write to it at all. Without, what this one has accepted is not read again. */
  readonly isOpenToOthers: boolean;
  /** How long messages are kept, in milliseconds. Default: for ever. */
  readonly retentionMs?: number | undefined;
}

/**
 * The inbox over a key-value store. The entry under an event's key is both the dedupe record and the pending work.
 * The indexes of events change in the same atomic write, so neither can be lost without the other, and a list
 * never reads entries that are not in it.
 */
export function createInbox(options: InboxOptions): RestorableInbox {
  const { store, log, isShared, isOpenToOthers, retentionMs } = options;
  const accepted = createAcceptedEvents(store);
  const inMemory = (key: string) => (isOpenToOthers ? undefined : accepted.get(key)?.record);
  /** Records that need not be read, and the other keys. Turns always are: withdrawing one event changes others' turns. */
  const lookInMemory = (keys: readonly string[]) => {
    const known = new Map<string, InboxRecord>();
    for (const key of keys) {
      const record = inMemory(key);
      if (record !== undefined) known.set(key, record);
    }
    return { known, rest: keys.filter((key) => !known.has(key)) };
  };
  const read = async (keys: readonly string[]) => {
    const { known, rest } = lookInMemory(keys);
    const [records, turns] = await Promise.all([
      store.getMany<InboxRecord>("inbox", rest),
      store.getMany<TurnProgress>("turn", keys),
    ]);
    const found = new Map(rest.map((key, position) => [key, records[position]]));
    return keys.map((key, position) => ({
      key,
      record: known.get(key) ?? found.get(key),
      turn: turns[position],
    }));
  };

  /** Without damaged entries: one of them must not keep the others from being answered. */
  const readUndamaged = async (keys: readonly string[]) => {
    const { known, rest } = lookInMemory(keys);
    const [records, turns] = await Promise.all([
      store.inspectMany<InboxRecord>("inbox", rest),
      store.inspectMany<TurnProgress>("turn", keys),
    ]);
    const found = new Map(rest.map((key, position) => [key, records[position]]));
    return keys.flatMap((key, position) => {
      const [record, turn] = [known.get(key) ?? found.get(key), turns[position]];
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
        else if (record.isClosed !== true) open.push(toEntry(record, turn));
      }
    }
    if (missing.length > 0) {
      // A conversation's index may keep a member for a while; the index of all open events never does.
      if (index === indexes.openEvents) {
        log.error(
          { entries: missing.length },
          "accepted events are missing from the store: was it emptied, or does it evict entries?",
        );
      }
      // During a failover index and entries may have been read from different servers: the write says what is missing.
      for (const member of missing)
        await store.writeIf([entryAt.event(member)], [{ kind: "remove-member", index, member }], "soon");
    }
    return open;
  };

  /** Another process may have answered some; what is missing was lost, and is listed the next time. */
  const compareAccepted = async (open: ReadonlySet<string>) => {
    const others = accepted.keys().filter((key) => !open.has(key));
    for (let from = 0; from < others.length; from += batchSize) {
      for (const { key, record } of await readUndamaged(others.slice(from, from + batchSize))) {
        if (record === undefined) await accepted.storeAnew();
        else if (record.isClosed === true) accepted.delete([key]);
      }
    }
  };

  /** Open events that an earlier run, or another process, has accepted. */
  const readAcceptedElsewhere = async (keys: readonly string[]) => {
    const found = await readUndamaged(keys.filter((key) => !accepted.has(key)));
    return found.flatMap(({ record }) => (record === undefined || record.isClosed === true ? [] : [record]));
  };

  /**
   * The progress of turns that answer other events too goes to the first of those: otherwise nobody would end their
   * reply, and its attempts, which are claimed already, would be tried anew. By the key whose turn it was.
   */
  const toTurnsOfOthers = async (
    keys: readonly string[],
    found: readonly { readonly key: string; readonly turn: TurnProgress | undefined }[],
  ): Promise<ReadonlyMap<string, readonly TurnProgress[]>> => {
    const turns = new Map<string, readonly TurnProgress[]>();
    for (const { key, turn } of found) {
      const others = await readUndamaged(turn?.keys.filter((other) => !keys.includes(other)) ?? []);
      const open = others.filter(({ record }) => record !== undefined && record.isClosed !== true);
      const [first] = open;
      if (turn === undefined || first === undefined) continue;
      const isBehind = (first.turn?.attempts ?? 0) < turn.attempts;
      turns.set(key, isBehind ? [{ ...turn, keys: open.map((other) => other.key) }] : []);
    }
    return turns;
  };

  /**
   * Attempts that were claimed for a batch whose first event was withdrawn meanwhile, by a process that died: its other
   * events get the progress themselves, so that the next attempt is another one.
   */
  const adoptOrphans = async ({ keys, attempts }: TurnProgress): Promise<void> => {
    for (const { key, record, turn } of await readUndamaged(keys)) {
      const { space, key: claimKey } = entryAt.claim(key, attempts);
      const owner = (await store.get<TurnProgress>(space, claimKey))?.keys[0];
      if (record === undefined || record.isClosed === true || owner === undefined || owner === key) continue;
      const ofOwner = await store.get<InboxRecord>("inbox", owner);
      const isOwned = ofOwner !== undefined && ofOwner.isClosed !== true;
      if (isOwned || (turn?.attempts ?? 0) >= attempts) continue;
      log.info({ turn: key, attempts }, "attempt of a withdrawn event taken over");
      const adopted: TurnProgress = { keys: [key], address: record.event.address, attempts };
      await store.write(toTurnChanges(adopted));
      rememberTurn(adopted);
    }
  };

  /**
   * Whether another process has answered one of the turn's events since this one learnt of them. A first attempt need not
   * look: it is claimed once.
   */
  const isAnsweredElsewhere = async ({ keys, attempts }: TurnProgress): Promise<boolean> => {
    if (!isShared || attempts === 1) return false;
    const records = await store.inspectMany<InboxRecord>("inbox", keys);
    return records.some((record) => !(record instanceof ParleyError) && record?.isClosed === true);
  };

  /** What was said before a message cannot be answered anew once that is answered. Commands leave it as it is. */
  const letEarlierGo = async (answered: readonly InboxRecord[], keys: readonly string[]) => {
    const first = answered.find(({ event }) => event.kind === "message");
    if (first === undefined) return;
    const { event, acceptedAt } = first;
    try {
      await letEarlierTurnsExpire(store, { conversationId: event.conversationId, keys, acceptedAt });
    } catch (error) {
      // The next message does it.
      log.warn({ err: error }, "earlier turns of a conversation are kept longer");
    }
  };

  const rememberTurn = (turn: TurnProgress) => {
    const [key] = turn.keys;
    if (key !== undefined) accepted.setTurn(key, turn);
  };

  return {
    async accept(event, { onWritten, canWait = false } = {}) {
      const acceptedAt = steadyClock.latest();
      const at = entryAt.event(event.key);
      const value: InboxRecord = { event, acceptedAt };
      let isAdded = false;
      const add = (): void => {
        if (!isAdded) accepted.add(value);
        isAdded = true;
      };
      const taken = await store.writeIf(
        [at],
        [{ kind: "set", at, value }, ...indexAccepted(event, orderOf(value))],
        canWait ? "together" : "durable",
        () => {
          add();
          onWritten?.();
        },
      );
      if (taken !== undefined) return "duplicate";
      // It may have been answered since it was written.
      add();
      return "accepted";
    },
    async claimTurn(turn) {
      if (await isAnsweredElsewhere(turn)) return false;
      const resumed = await readAcceptedElsewhere(turn.keys);
      const claims = isShared ? turn.keys.map((key) => entryAt.claim(key, turn.attempts)) : [];
      const claim = { keys: turn.keys, address: {}, attempts: turn.attempts } satisfies TurnProgress;
      const taken = await store.writeIf(claims, [
        ...toTurnChanges(turn),
        ...claims.map((at): Change => ({ kind: "set", at, value: claim, ttlMs: claimTtlMs })),
      ]);
      if (taken !== undefined) {
        await adoptOrphans(turn);
        return false;
      }
      // Between the look before and the claim. From the claim on no earlier attempt can be closed.
      if (await isAnsweredElsewhere(turn)) return false;
      for (const record of resumed) accepted.add(record);
      rememberTurn(turn);
      return true;
    },
    async refuse(key) {
      const at = entryAt.event(key);
      const change: Change = { kind: "set", at, value: toErased(key, undefined), ttlMs: answeredTtlMs };
      accepted.delete([key]);
      if ((await store.writeIf([at], [change])) === undefined) return "refused";
      const record = await store.get<InboxRecord>("inbox", key);
      return record === undefined || record.isForgotten === true ? "refused" : "accepted";
    },
    async saveTurn(turn, { isDurable = false } = {}) {
      const later = isShared ? turn.keys.map((key) => entryAt.claim(key, turn.attempts + 1)) : [];
      const resolves = isDurable ? "durable" : "soon";
      const isSaved = (await store.writeIf(later, toTurnChanges(turn), resolves)) === undefined;
      if (isSaved) rememberTurn(turn);
      return isSaved;
    },
    async close(keys, { attempts, edits } = {}) {
      for (let conflict = 0; conflict < maxConflicts; conflict++) {
        const found = (await read(keys)).map(({ key, record, turn }) => ({
          key,
          record: record ?? accepted.get(key)?.record,
          turn,
        }));
        const { changes, answered, isErased } = toClosing(found, { retentionMs, isShared });
        const isClaimable = isShared && attempts !== undefined;
        const later = isClaimable ? keys.map((key) => entryAt.claim(key, attempts + 1)) : [];
        // Begun before the write, so that SQLite commits both together. Where it fails, the event is closed later.
        const earlier = letEarlierGo(answered, keys);
        const failed = await store.writeIf([...later, ...editGuards(found, edits)], changes, "soon");
        await earlier;
        if (failed === undefined) {
          accepted.delete(keys);
          if (isErased) await store.backend.scrub();
          return true;
        }
        // Otherwise what was read has changed meanwhile.
        if (isClaimable || edits !== undefined) return false;
      }
      throw toConflictError();
    },
    ...createInboxRedo({ store, accepted }),
    edit: createEventEditor({ store, accepted }),
    async lookUp(keys) {
      const found = await read(keys);
      return found.flatMap(({ record, turn }) =>
        record === undefined || record.isForgotten === true ? [] : [toEntry(record, turn)],
      );
    },
    async withdraw(keys, { keepsReplies = false } = {}) {
      const found = await readUndamaged(keys);
      const ofOthers = await toTurnsOfOthers(keys, found);
      const turns = [...ofOthers.values()].flat();
      const damaged = keys.filter((key) => !found.some((one) => one.key === key));
      await store.write([
        ...damaged.flatMap((key) => eraseEvent(key, undefined)),
        ...found.flatMap(({ key, record, turn }) => {
          const isEnded = record === undefined || record.isClosed === true || turn === undefined;
          return isEnded || !keepsReplies || ofOthers.has(key)
            ? eraseEvent(key, record)
            : [
                { kind: "set" as const, at: entryAt.event(key), value: toWithdrawn(record) },
                ...outdate(record),
              ];
        }),
        ...turns.flatMap(toTurnChanges),
      ]);
      accepted.delete(keys);
      for (const turn of turns) rememberTurn(turn);
      await store.backend.scrub();
    },
    async isOpen(key) {
      if (inMemory(key) !== undefined) return true;
      const record = await store.get<InboxRecord>("inbox", key);
      // Answered ones stay known for a day at least, so this one was lost.
      if (record === undefined && accepted.has(key)) {
        await accepted.storeAnew();
        return accepted.has(key);
      }
      if (record === undefined) return false;
      if (record.isClosed === true) accepted.delete([key]);
      return record.isClosed !== true;
    },
    async listOpen() {
      const open = await readOpen(indexes.openEvents);
      await compareAccepted(new Set(open.map(({ event }) => event.key)));
      return open;
    },
    storeAnew: () => accepted.storeAnew(),
    listOpenIn: (conversationId) => readOpen(indexes.openEventsIn(conversationId)),
  };
}

/** Which answered events are erased: those of a conversation, of an author, or of an author in a conversation. */
export type AnsweredEvents =
  | { readonly conversationId: string; readonly authorId?: undefined }
  | { readonly conversationId: string | undefined; readonly authorId: string };

/**
 * Erases the content of answered events; their keys are still duplicates. Open events stay: the request to erase is
 * one of them.
 */
export async function eraseAnsweredEvents(store: KeyValueStore, which: AnsweredEvents): Promise<void> {
  const { conversationId, authorId } = which;
  const index =
    authorId === undefined ? indexes.answeredEventsIn(conversationId) : indexes.answeredEventsBy(authorId);
  const keys = await readMembers(store, index);
  // What is left in it expires by itself, or is listed anew with the next answered event.
  await store.write([{ kind: "remove-member", index: indexes.expiringIndexes, member: index }], "soon");
  for (let from = 0; from < keys.length; from += batchSize) {
    const batch = keys.slice(from, from + batchSize);
    const records = await store.inspectMany<InboxRecord>("inbox", batch);
    const changes = batch.flatMap((key, position): Change[] => {
      const record = records[position];
      // Nobody can read it; what it holds may be of the author.
      if (record instanceof ParleyError)
        return [...eraseEvent(key, undefined), { kind: "remove-member", index, member: key }];
      if (record?.isClosed !== true || record.isForgotten === true) return [];
      if (conversationId !== undefined && record.event.conversationId !== conversationId) return [];
      return eraseEvent(key, record);
    });
    await writeBatches(store, changes);
  }
}

function toTurnChanges(turn: TurnProgress): Change[] {
  const [key] = turn.keys;
  return key === undefined ? [] : [{ kind: "set", at: entryAt.turn(key), value: turn, ttlMs: turnTtlMs }];
}

function eraseEvent(key: string, record: InboxRecord | undefined): Change[] {
  return [
    { kind: "set", at: entryAt.event(key), value: toErased(key, record), ttlMs: answeredTtlMs },
    { kind: "delete", at: entryAt.turn(key) },
    { kind: "remove-member", index: indexes.openEvents, member: key },
    ...(record === undefined
      ? []
      : [...unindexOpen(record.event), ...unindexAnswered(record.event), ...outdate(record)]),
  ];
}
