import type { Clock } from "../core/clock.ts";
import { storedIn, type IncomingEvent } from "../core/events.ts";
import { ParleyError } from "../core/errors.ts";
import type {
  Attempt,
  Begun,
  Change,
  ChangeOutcome,
  Inbox,
  InboxRecord,
  RunWrite,
  TurnRecord,
  TurnState,
  Written,
} from "../core/inbox.ts";
import type { StoredMessage } from "../core/storage.ts";
import type { Log } from "../core/telemetry.ts";
import { systemClock } from "../support/clock.ts";
import type { KeyedQueue } from "../support/queues.ts";
import { createRecent } from "../support/recent.ts";
import type { WriteCondition } from "./backend.ts";
import { readMembers } from "./conversation-index.ts";
import {
  eraseRecord,
  isOpen,
  keepJoined,
  keptMs,
  list,
  listLast,
  orderOf,
  saveRecord,
  unlist,
  withoutWords,
} from "./inbox-record.ts";
import { decide, type Decision, type Found } from "./inbox-transitions.ts";
import { type Change as StoreChange, type KeyValueStore, type Observed, checkIds } from "./key-value.ts";
import { createLogPlanner, type LogPlan, type PlannedMessage, type WritePlan } from "./log-plan.ts";
import { createQuestions, withoutVersions } from "./questions.ts";
import { createRunWrites } from "./run-writes.ts";
import { entryAt, indexes, type Head } from "./keys.ts";

const batchSize = 500;

/** So many attempts run here at once at most without a read of their records for each write. */
const maxRunning = 1000;

/** More lost races in a row are a fault. */
const maxConflicts = 100;

/** The options of {@link createInbox}. */
interface InboxOptions {
  readonly store: KeyValueStore;
  readonly log: Log;
  /** Runs this process's writes of a conversation's log one by one. */
  readonly writers: KeyedQueue;
  /** Erases the files that only this message shows, apart from those that it keeps. */
  readonly eraseFiles: (
    conversationId: string,
    message: StoredMessage,
    kept?: StoredMessage,
  ) => Promise<void>;
  /** How many milliseconds messages are kept. Default: for ever. */
  readonly retentionMs?: number | undefined;
  /** Tells when events are accepted and changed. Default: the system's. */
  readonly clock?: Pick<Clock, "now"> | undefined;
}

/**
 * The inbox over a key-value store. The entry under an event's key is the deduplication record, the pending
 * work and, for the first event of a turn, the turn. Its list of open events, and the words that move between
 * record and log, change in the same atomic write.
 */
export function createInbox(options: InboxOptions): Inbox {
  const { store, log, writers, retentionMs, clock = systemClock } = options;
  const planLog = createLogPlanner(store, retentionMs);
  const questions = createQuestions(store);
  const planWrite = createRunWrites({ store, planLog, questions, retentionMs });

  /** Tries a write until nobody was faster. `attempt` returns `undefined` to try again. */
  async function untilWritten<T>(attempt: (conflicts: number) => Promise<T | undefined>): Promise<T> {
    for (let conflicts = 0; conflicts < maxConflicts; conflicts++) {
      const result = await attempt(conflicts);
      if (result !== undefined) return result;
    }
    throw new ParleyError("store-unavailable", "other processes kept changing the event");
  }

  /** Records as they were last read or written here, with the conditions that they are unchanged. */
  const seen = new WeakMap<InboxRecord, WriteCondition>();
  /** The end of the log of their conversation, as it was last read or written with them. */
  const heads = new WeakMap<InboxRecord, Observed<Head>>();
  /** The records of attempts that run here, so that not each of their writes has to read them. */
  const running = createRecent<TurnRecord>(maxRunning);

  /** @param conversationId the one whose end of the log is read with them */
  async function observe(
    keys: readonly string[],
    conversationId?: string,
  ): Promise<readonly Observed<InboxRecord>[]> {
    const headAt = conversationId === undefined ? [] : [entryAt.head(conversationId)];
    const all = await store.observeAll([...keys.map(entryAt.event), ...headAt]);
    const found = all.slice(0, keys.length) as readonly Observed<InboxRecord>[];
    const head = all[keys.length] as Observed<Head> | undefined;
    for (const { value, unchanged } of found) {
      if (value === undefined) continue;
      seen.set(value, unchanged);
      if (head !== undefined && storedIn(value.event) === conversationId) heads.set(value, head);
    }
    return found;
  }

  /** Remembers a record that was written over another one, with the end of the log. */
  function remember(
    record: TurnRecord,
    change: StoreChange,
    { before, head }: { readonly before: InboxRecord; readonly head: LogPlan["head"] },
  ): void {
    const unchanged = store.asWritten(change);
    if (unchanged === undefined) return;
    seen.set(record, unchanged);
    const written = head && store.asWritten(head);
    const end =
      written === undefined ? heads.get(before) : { value: head?.value as Head, unchanged: written };
    if (end !== undefined) heads.set(record, end);
    running.set(record.event.key, record);
  }

  async function observeRecords(keys: readonly string[]): Promise<readonly Observed<InboxRecord>[]> {
    const found = await observe(keys);
    for (const { damage } of found) if (damage !== undefined) throw damage;
    return found;
  }

  const read = async (keys: readonly string[]): Promise<readonly InboxRecord[]> =>
    (await observeRecords(keys)).flatMap(({ value }) => value ?? []);

  /** Reads what a change decides by, with the conditions that nobody has changed it since. */
  async function find(
    change: Change,
  ): Promise<{ found: Found; conditions: WriteCondition[]; head: WriteCondition }> {
    const { of: key } = change;
    const [own] = (await observe([key])) as [Observed<InboxRecord>];
    // Nobody can read a damaged record, but it may have words.
    if (own.damage !== undefined && change.kind !== "delete") throw own.damage;
    const turnKey = own.value?.in ?? key;
    const [turn] = turnKey === key ? [own] : await observe([turnKey]);
    if (turn?.damage !== undefined && change.kind !== "delete") throw turn.damage;
    const conditions = [own.unchanged, ...(turnKey === key ? [] : [turn!.unchanged])];
    const conversationId = conversationOf(own.value ?? turn?.value);
    if (conversationId === undefined)
      return {
        found: { key, own: own.value, turn: turn?.value, isLast: false, questions: new Map() },
        conditions,
        head: own.unchanged,
      };
    const keys = change.kind === "again" ? (turn?.value?.turn?.keys ?? [key]) : [key];
    const [[head], asked] = await Promise.all([
      store.observeAll([entryAt.head(conversationId)]),
      questions.find(conversationId, keys),
    ]);
    conditions.push(...asked.conditions);
    const { last } = (head?.value ?? {}) as Partial<Head>;
    return {
      found: {
        key,
        own: own.value,
        turn: turn?.value,
        isLast: last === turnKey,
        questions: asked.messages,
      },
      conditions,
      head: head!.unchanged,
    };
  }

  async function tryChange(change: Change): Promise<ChangeOutcome | undefined> {
    const { found, conditions, head } = await find(change);
    const decision = decide(change, found, clock.now());
    const { result, records } = decision;
    const turn = turnAfter(found, decision);
    const outcome = { result, ...(turn === undefined ? {} : { turn }) };
    if (records === undefined) {
      // The words may still be in the files, if the process that took them away has ended before.
      const wasErased = change.kind === "delete" && found.own?.state === "erased";
      if (wasErased || result === "unchanged") await store.scrub();
      return outcome;
    }
    const conversationId = conversationOf(found.own);
    const planned = await planQuestions(conversationId, found, decision);
    const failed = await store.writeIf(
      [...conditions, ...(decision.needsLast === true ? [head] : []), ...planned.conditions],
      [...toRecordChanges(found, decision), ...planned.changes],
    );
    if (failed !== undefined) return undefined;
    if (change.kind === "edit" || change.kind === "delete" || decision.questions !== undefined)
      await store.scrub();
    return outcome;
  }

  async function planQuestions(
    conversationId: string | undefined,
    { questions: before, turn }: Found,
    { questions: after }: Decision,
  ): Promise<WritePlan> {
    if (conversationId === undefined || after === undefined) return { conditions: [], changes: [] };
    // Files go first: an interrupted change is delivered again, and finds them by the question.
    for (const [key, question] of after) {
      const known = before.get(key);
      if (known === undefined) continue;
      await options.eraseFiles(conversationId, known, question === "erased" ? undefined : question);
      const outdated =
        question === "erased" ? await questions.findOutdated(conversationId, turn, key) : undefined;
      if (outdated !== undefined)
        await options.eraseFiles(conversationId, outdated, withoutVersions(outdated));
    }
    return await questions.plan(conversationId, after, turn?.event.key);
  }

  function toRecordChanges(
    { own, turn }: Found,
    { records = [], erased = [], isListed }: Decision,
  ): StoreChange[] {
    const known = new Map([own, turn].flatMap((one) => (one === undefined ? [] : [[one.event.key, one]])));
    const opened = records.filter(
      (record) => isOpen(record) && !isOpen(known.get(record.event.key) ?? record),
    );
    return [
      ...records.flatMap((record): StoreChange[] => [
        saveRecord(record, isOpen(record) ? undefined : "kept"),
        ...(isOpen(record) && (isListed === true || record.state === "ending")
          ? list(record.event, orderOf(record))
          : []),
      ]),
      // An event that another's turn answers is kept as long as that turn.
      ...opened.flatMap((record) => keepJoined(record, undefined)),
      ...erased.flatMap((key) => eraseRecord(key, known.get(key))),
    ];
  }

  const readOpen = async (index: string, conversationId?: string): Promise<readonly InboxRecord[]> => {
    const keys = await readMembers(store, index);
    const open: InboxRecord[] = [];
    const missing: string[] = [];
    for (let from = 0; from < keys.length; from += batchSize) {
      const batch = keys.slice(from, from + batchSize);
      for (const [position, { value, damage }] of (await observe(batch, conversationId)).entries()) {
        const key = batch[position] ?? "";
        // Damaged ones do not keep the others from being answered.
        if (damage !== undefined) log.error({ turn: key }, "damaged inbox entry skipped");
        else if (value === undefined) missing.push(key);
        else if (isOpen(value)) open.push(value);
      }
    }
    if (missing.length > 0) await removeMissing(index, missing);
    return open;
  };

  async function removeMissing(index: string, missing: readonly string[]): Promise<void> {
    // A conversation's index may keep a member for a while, but the index of all open events never does.
    if (index === indexes.openEvents)
      log.error(
        { entries: missing.length },
        "accepted events are missing from the store: was it emptied, or does it evict entries?",
      );
    // During a failover, index and entries may come from different servers. The write decides.
    for (const member of missing)
      await store.writeIf([entryAt.event(member)], [{ kind: "remove-member", index, member }], "soon");
  }

  async function tryBegin(
    batch: readonly InboxRecord[],
    asked: Parameters<Inbox["begin"]>[1],
    conflicts: number,
  ): Promise<{ begun: Begun | undefined } | undefined> {
    const [first] = batch as readonly [InboxRecord];
    const conditions = batch.map((one) => seen.get(one));
    if (!isKnown(conditions)) throw new Error("only records that were read can be begun");
    if (!batch.every((one) => isOpen(one) && (one === first || one.turn === undefined)))
      return { begun: undefined };
    const record = toBegun(first, batch);
    const messages = (asked?.messages ?? []).map((message): PlannedMessage => ({ message }));
    const isFirst = first.turn === undefined && first.event.kind === "message";
    const plan = await planLog(storedIn(first.event), messages, {
      noted: asked?.noted,
      conflicts,
      head: heads.get(first),
      ...(isFirst ? { last: first.event.key } : {}),
    });
    const strip = (one: InboxRecord): InboxRecord =>
      asked === undefined ? one : { ...one, event: withoutWords(one.event), isInLog: true };
    const own = strip(record) as TurnRecord;
    const saved = saveRecord(own);
    const failed = await store.writeIf(
      [...conditions, ...plan.conditions],
      [
        saved,
        ...batch
          .slice(1)
          .flatMap((one): StoreChange[] => [
            saveRecord(strip(toJoined(one, first.event.key))),
            ...unlist(one.event),
          ]),
        ...plan.changes,
      ],
    );
    if (failed !== undefined) return conditions.includes(failed) ? { begun: undefined } : undefined;
    remember(own, saved, { before: first, head: plan.head });
    return { begun: { record: own, events: await eventsOf(own, batch.map(strip)) } };
  }

  /** The events that a turn still answers. */
  async function eventsOf(
    { turn }: TurnRecord,
    known: readonly InboxRecord[],
  ): Promise<readonly IncomingEvent[]> {
    const byKey = new Map(known.map((one) => [one.event.key, one.event]));
    const missing = turn.keys.filter((key) => !byKey.has(key));
    // A damaged one does not keep the others from being answered.
    for (const { value } of await observe(missing))
      if (value !== undefined && value.state !== "erased") byKey.set(value.event.key, value.event);
    return turn.keys.flatMap((key) => byKey.get(key) ?? []);
  }

  async function tryWrite(
    { key, attempt }: Attempt,
    what: RunWrite,
    conflicts: number,
  ): Promise<Written | undefined> {
    const known = conflicts === 0 ? running.get(key) : undefined;
    const [found] = known === undefined ? await observeRecords([key]) : [];
    const record = known ?? found?.value;
    if (!isTurn(record) || record.turn.attempt !== attempt || !mayWrite(record, what)) {
      running.delete(key);
      return { isWritten: false, ...(record === undefined ? {} : { record }) };
    }
    // An earlier attempt may have stored an answer.
    const head = attempt === 1 ? heads.get(record) : undefined;
    const { changed, ...plan } = await planWrite(record, what, { conflicts, head });
    const ttlMs = what.kind === "close" ? keptMs(record, retentionMs) : "kept";
    const saved = changed && saveRecord(changed, isOpen(changed) ? undefined : ttlMs);
    const resolves =
      what.kind === "asked" || what.kind === "end" || (what.kind === "address" && what.isDurable === true)
        ? "durable"
        : "soon";
    const unchanged = seen.get(record)!;
    const changes = [...(saved === undefined ? [] : [saved]), ...plan.changes];
    const failed = await store.writeIf([unchanged, ...plan.conditions], changes, resolves);
    if (failed !== undefined) {
      running.delete(key);
      return undefined;
    }
    const isLast = what.kind === "close" || what.kind === "give-back";
    if (changed === undefined || saved === undefined || isLast) running.delete(key);
    else remember(changed, saved, { before: record, head: plan.head });
    if (plan.erases === true) await store.scrub();
    return { isWritten: true };
  }

  return {
    async accept(event, dueAt) {
      checkIds(event);
      const record: InboxRecord = {
        event,
        acceptedAt: clock.now(),
        state: "open",
        version: 1,
        ...(dueAt === undefined ? {} : { dueAt }),
      };
      const changes = [saveRecord(record), ...listLast(event, orderOf(record))];
      const failed = await store.writeIf([entryAt.event(event.key)], changes);
      return failed === undefined ? "accepted" : "duplicate";
    },
    async refuse(key) {
      const failed = await store.writeIf([entryAt.event(key)], eraseRecord(key, undefined));
      return failed === undefined ? "refused" : "duplicate";
    },
    change: (change) => untilWritten(() => tryChange(change)),
    async begin(batch, asked) {
      const [first] = batch;
      if (first === undefined) return undefined;
      const { begun } = await writers.run(storedIn(first.event), () =>
        untilWritten((conflicts) => tryBegin(batch, asked, conflicts)),
      );
      return begun;
    },
    write: (attempt, what) =>
      writers.run(attempt.conversationId, () =>
        untilWritten((conflicts) => tryWrite(attempt, what, conflicts)),
      ),
    async adopt(records) {
      for (const record of records) {
        const { event } = record;
        const absent = entryAt.event(event.key);
        const ttlMs = keptMs(record, retentionMs);
        await untilWritten(async () => {
          const plan = await planLog(storedIn(event), [], { conflicts: 0, last: event.key });
          const failed = await store.writeIf(
            [absent, ...plan.conditions],
            [saveRecord(record, ttlMs), ...(record.state === "over" ? plan.changes : [])],
          );
          return failed === undefined || failed === absent ? true : undefined;
        });
      }
    },
    read,
    open: () => readOpen(indexes.openEvents),
    openIn: (conversationId) => readOpen(indexes.openEventsIn(conversationId), conversationId),
  };
}

function isKnown(
  conditions: readonly (WriteCondition | undefined)[],
): conditions is readonly WriteCondition[] {
  return conditions.every((condition) => condition !== undefined);
}

function isTurn(record: InboxRecord | undefined): record is TurnRecord {
  return record?.turn !== undefined;
}

/** The first record of a batch when its next attempt begins. */
function toBegun(first: InboxRecord, batch: readonly InboxRecord[]): TurnRecord {
  const { dueAt: _dueAt, ...rest } = first;
  const turn: TurnState = first.turn ?? {
    keys: batch.map(({ event }) => event.key),
    attempt: 0,
    since: 0,
    openedAt: first.acceptedAt,
    // The reply belongs to the last of the messages.
    address: batch.at(-1)!.event.address,
  };
  return { ...rest, version: first.version + 1, turn: { ...turn, attempt: turn.attempt + 1 } };
}

function toJoined(record: InboxRecord, turnKey: string): InboxRecord {
  const { dueAt: _dueAt, ...rest } = record;
  return { ...rest, version: record.version + 1, state: "joined", in: turnKey };
}

/** Whether an attempt may write, by the record of its turn. */
function mayWrite({ state, turn }: TurnRecord, what: RunWrite): boolean {
  // The post exists, whatever has happened to the turn.
  if (what.kind === "address") return true;
  if (turn.since >= turn.attempt) return false;
  switch (what.kind) {
    case "asked":
      return state === "open";
    case "end":
      return (
        state === "open" ||
        (state === "ending" && turn.end?.isStored === false && turn.end.kind === what.end.kind)
      );
    case "give-back":
    case "close":
      return state === "open" || state === "ending";
  }
}

/** The conversation that stores the words of an event, unless the event is erased. */
function conversationOf(record: InboxRecord | undefined): string | undefined {
  return record === undefined || record.state === "erased" ? undefined : storedIn(record.event);
}

/** The record of the turn after a change. */
function turnAfter({ own, turn }: Found, { records = [], erased = [] }: Decision): InboxRecord | undefined {
  const key = turn?.event.key ?? own?.event.key;
  if (key === undefined || erased.includes(key)) return undefined;
  return records.findLast(({ event }) => event.key === key) ?? turn;
}
