import { storedIn, type CommandCall, type IncomingEvent } from "../core/events.ts";
import type { InboxRecord, RunWrite, TurnRecord, TurnState } from "../core/inbox.ts";
import { messageIds } from "../core/message-ids.ts";
import {
  eraseRecord,
  isEditedCall,
  keepJoined,
  keptMs,
  list,
  listRepeatable,
  orderOf,
  saveRecord,
  unlist,
  withoutAnyWords,
  withoutText,
  withoutWords,
} from "./inbox-record.ts";
import { type KeyValueStore, type Observed } from "./key-value.ts";
import type { createLogPlanner, LogPlan, PlannedMessage, WritePlan } from "./log-plan.ts";
import type { createQuestions } from "./questions.ts";
import { entryAt } from "./keys.ts";

interface RunWritesOptions {
  readonly store: KeyValueStore;
  readonly planLog: ReturnType<typeof createLogPlanner>;
  readonly questions: ReturnType<typeof createQuestions>;
  /** How many milliseconds messages are kept. Default: for ever. */
  readonly retentionMs: number | undefined;
}

/** A write of an attempt. `changed` is the turn's record after it, which is stored with it. */
interface PlannedWrite extends WritePlan, Pick<LogPlan, "head"> {
  readonly changed?: TurnRecord;
}

/** How often the write has failed before, and the end of the log where that is known. */
type Before = Pick<Parameters<ReturnType<typeof createLogPlanner>>[2], "conflicts" | "head">;

const none: WritePlan = { conditions: [], changes: [] };

/** Returns a function that plans what an attempt writes over its record. */
export function createRunWrites({ store, planLog, questions, retentionMs }: RunWritesOptions) {
  async function planAsked(
    record: TurnRecord,
    { messages, noted }: Extract<RunWrite, { kind: "asked" }>,
    before: Before,
  ): Promise<PlannedWrite> {
    const planned = messages.map((message): PlannedMessage => ({ message, over: () => message }));
    const isAsked = messages.some(({ inContext, room }) => inContext !== false && room === undefined);
    const plan = await planLog(storedIn(record.event), planned, {
      noted,
      ...before,
      ...(isAsked ? { last: record.event.key } : {}),
    });
    const joined = planJoined(await findJoined(record), withoutWords);
    const changed = { ...next(record), event: withoutWords(record.event), isInLog: true } as const;
    return { ...join(plan, joined), ...headOf(plan), changed };
  }

  async function planAddress(
    record: TurnRecord,
    { address, shownAs }: Extract<RunWrite, { kind: "address" }>,
  ): Promise<PlannedWrite> {
    const { attempt } = record.turn;
    const mayBeAnswered = attempt > 1 || record.state !== "open";
    const id = messageIds.answer(record.event.key);
    const shown = mayBeAnswered ? await questions.planShownAs(storedIn(record.event), id, shownAs) : none;
    return { ...shown, changed: next(record, { address }) };
  }

  async function planEnd(
    record: TurnRecord,
    what: Extract<RunWrite, { kind: "end" }>,
    before: Before,
  ): Promise<PlannedWrite> {
    const { end, answer, earlier = "erased", noted, toEdited } = what;
    const { event, turn } = record;
    // Nothing is kept of one that was deleted meanwhile.
    const asked = what.questions.filter(({ turnKey }) => turn.keys.includes(turnKey));
    const isFiled = asked.length > 0;
    const others = isFiled ? await findJoined(record) : [];
    const events = new Map([event, ...others.flatMap(({ value }) => value?.event ?? [])].map(byKey));
    const planned = asked.map((question): PlannedMessage => {
      const now = events.get(question.turnKey);
      return { message: now === undefined ? question : toEdited(question, now) };
    });
    if (answer !== undefined)
      planned.push({ message: answer, over: (stored) => questions.replacing(answer, stored, earlier) });
    const plan = await planLog(storedIn(event), planned, { noted, ...before });
    const joined = planJoined(others, withoutText);
    const changed: TurnRecord = {
      ...next(record, {
        end,
        since: turn.attempt - 1,
        ...(answer === undefined ? {} : { answer: turn.attempt }),
      }),
      state: "ending",
      ...(isFiled ? { event: withoutText(event), isInLog: true } : {}),
    };
    const edited = isEditedCall(event) ? await planEdited(event, toEdited) : none;
    const listed = { conditions: [], changes: list(event, orderOf(record)) };
    return { ...join(plan, joined, edited, listed), ...headOf(plan), changed };
  }

  /** The new words of a call that was edited while it ran take the place of those in the log. */
  async function planEdited(
    call: CommandCall,
    toEdited: Extract<RunWrite, { kind: "end" }>["toEdited"],
  ): Promise<WritePlan> {
    const conversationId = storedIn(call);
    const { messages, conditions } = await questions.find(conversationId, [call.key]);
    const stored = messages.get(call.key);
    if (stored === undefined) return none;
    const plan = await questions.plan(conversationId, new Map([[call.key, toEdited(stored, call)]]));
    return { ...join({ conditions, changes: [] }, plan), erases: true };
  }

  function planClose(record: TurnRecord, isRepeatable: boolean): PlannedWrite {
    const { event, turn } = record;
    // An edited call still has its earlier words.
    if (turn.keys.length === 0 || isEditedCall(event))
      return { conditions: [], changes: eraseRecord(event.key, record), erases: true };
    const { dueAt: _dueAt, ...rest } = next(record);
    const isLoose = record.isInLog !== true;
    const isKept = isLoose && isRepeatable;
    const closed = isLoose && !isKept ? { ...rest, event: withoutAnyWords(event) } : rest;
    const ttlMs = keptMs(record, retentionMs);
    return {
      conditions: [],
      changes: [
        ...unlist(event),
        // So it is found when its conversation is deleted, or its author is forgotten.
        ...(isKept ? listRepeatable(event.key, ttlMs) : []),
        ...keepJoined(record, ttlMs),
      ],
      changed: { ...closed, state: "over" },
    };
  }

  /** The records of the other events that a turn answers. A damaged one does not keep it from ending. */
  async function findJoined({ event, turn }: TurnRecord): Promise<readonly Observed<InboxRecord>[]> {
    const others = turn.keys.filter((key) => key !== event.key);
    const found = (await store.observeAll(others.map(entryAt.event))) as readonly Observed<InboxRecord>[];
    return found.filter(({ damage }) => damage === undefined);
  }

  /** Takes their words from the records of other events, because the log has them then. */
  function planJoined(
    found: readonly Observed<InboxRecord>[],
    strip: (event: IncomingEvent) => IncomingEvent,
  ): WritePlan {
    const toFiled = (record: InboxRecord): InboxRecord => ({
      ...record,
      event: strip(record.event),
      isInLog: true,
      version: record.version + 1,
    });
    return {
      conditions: found.map(({ unchanged }) => unchanged),
      changes: found.flatMap(({ value }) =>
        value === undefined || value.state === "erased" ? [] : [saveRecord(toFiled(value))],
      ),
    };
  }

  return async function plan(record: TurnRecord, what: RunWrite, before: Before): Promise<PlannedWrite> {
    switch (what.kind) {
      case "asked":
        return await planAsked(record, what, before);
      case "address":
        return await planAddress(record, what);
      case "end":
        return await planEnd(record, what, before);
      case "close":
        return planClose(record, what.isRepeatable === true || record.turn.end?.canRetry === true);
      case "give-back":
        return { ...none, changed: toGivenBack(record) };
    }
  };
}

/** The record with its next version and changes to its turn. */
function next(record: TurnRecord, turn: Partial<TurnState> = {}): TurnRecord {
  return { ...record, version: record.version + 1, turn: { ...record.turn, ...turn } };
}

/** The record as it was before an attempt that met an outage, which is no try. */
function toGivenBack(record: TurnRecord): TurnRecord {
  const { attempt, again } = record.turn;
  return next(record, {
    since: record.state === "open" ? attempt : attempt - 1,
    ...(again === undefined ? {} : { again: { ...again, isCounted: true } }),
  });
}

const headOf = ({ head }: LogPlan): Pick<LogPlan, "head"> => (head === undefined ? {} : { head });

const byKey = (event: IncomingEvent) => [event.key, event] as const;

function join(...plans: readonly WritePlan[]): WritePlan {
  return {
    erases: plans.some(({ erases }) => erases === true),
    conditions: plans.flatMap(({ conditions }) => conditions),
    changes: plans.flatMap(({ changes }) => changes),
  };
}
