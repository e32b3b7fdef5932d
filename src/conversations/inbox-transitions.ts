import type { IncomingEvent } from "../core/events.ts";
import type { Again, Change, Changed, InboxRecord, TurnRecord } from "../core/inbox.ts";
import type { StoredMessage } from "../core/storage.ts";
import { isEditedCall, withoutText } from "./inbox-record.ts";

/** Where an event is on its way, which decides what a change does. */
export type Phase = "absent" | "waiting" | "begun" | "ending" | "over" | "erased";

/**
 * What a change does.
 * - `nothing`: nothing is stored.
 * - `remember`: the key is stored as erased, so that a late delivery is a duplicate.
 * - `erase`: the event is erased, and no turn is left.
 * - `leave`: the event leaves its turn, which runs again without it, or ends where nothing is left of it.
 * - `words`: only the words are replaced or erased.
 * - `open`: the turn is open again.
 * - `open-if-last`: the same if the turn is the last of its conversation, and else `words`.
 * - `open-if-asking`: the same if it is to be confirmed. People see that button before its attempt is over.
 * - `end`: the turn is to end.
 */
type Effect =
  | "nothing"
  | "remember"
  | "erase"
  | "leave"
  | "words"
  | "open"
  | "open-if-last"
  | "open-if-asking"
  | "end";

/** Each change in each phase. A new phase or change does not compile before every effect is decided. */
export const effects = {
  edit: {
    absent: "nothing",
    waiting: "words",
    begun: "open",
    ending: "open-if-last",
    over: "open-if-last",
    erased: "nothing",
  },
  delete: {
    absent: "remember",
    waiting: "erase",
    begun: "leave",
    ending: "words",
    over: "words",
    erased: "nothing",
  },
  stop: {
    absent: "nothing",
    waiting: "end",
    begun: "end",
    ending: "nothing",
    over: "nothing",
    erased: "nothing",
  },
  again: {
    absent: "nothing",
    waiting: "nothing",
    begun: "open-if-asking",
    ending: "open",
    over: "open",
    erased: "nothing",
  },
} as const satisfies Readonly<Record<Change["kind"], Readonly<Record<Phase, Effect>>>>;

/** An event with its turn and its words, as the store has them. */
export interface Found {
  readonly key: string;
  readonly own: InboxRecord | undefined;
  /** The record of the turn that answers it, which may be its own. */
  readonly turn: InboxRecord | undefined;
  /** Whether no other turn has begun after it. */
  readonly isLast: boolean;
  /** The questions in the log by the keys of their events: its own, and for `again` all of the turn's. */
  readonly questions: ReadonlyMap<string, StoredMessage>;
}

/** What a change makes of what was found. Without `records` nothing is written. */
export interface Decision {
  readonly result: Changed;
  readonly records?: readonly InboxRecord[];
  /** The keys of records that are erased. */
  readonly erased?: readonly string[];
  /** The turn's record is listed as open. */
  readonly isListed?: boolean;
  /** What becomes of questions in the log. */
  readonly questions?: ReadonlyMap<string, StoredMessage | "erased">;
  /** It is written only if the end of the log is as it was read. */
  readonly needsLast?: boolean;
}

/** The phase of an event, by its record and that of its turn. */
function phaseOf(key: string, own: InboxRecord | undefined, turn: InboxRecord | undefined): Phase {
  if (own === undefined) return "absent";
  if (own.state === "erased" || turn === undefined || turn.state === "erased") return "erased";
  if (turn.turn === undefined) return turn.state === "open" ? "waiting" : "erased";
  if (!turn.turn.keys.includes(key)) return "erased";
  switch (turn.state) {
    case "open":
      return turn.turn.attempt === 0 ? "waiting" : "begun";
    case "ending":
    case "over":
      return turn.state;
    case "joined":
      return "erased";
  }
}

/** People often correct a message several times, so it is answered anew only after this quiet time. */
const quietMs = 1000;
/** How long a turn waits at most for people who keep changing its question, in milliseconds. */
const maxQuietMs = 10_000;

/** Decides what a change does. It is called again where another writer was faster. `now` is in Unix ms. */
export function decide(change: Change, found: Found, now: number): Decision {
  const effect = effects[change.kind][phaseOf(found.key, found.own, found.turn)];
  switch (change.kind) {
    case "edit":
      return decideEdit(change, found, effect, now);
    case "delete":
      return decideDeletion(found, effect, now);
    case "stop":
      return decideStop(change, found, effect, now);
    case "again":
      return decideAgain(change, found, effect, now);
  }
}

const next = <T extends InboxRecord>(record: T, change: Partial<InboxRecord>): T => ({
  ...record,
  ...change,
  version: record.version + 1,
});

function openAgain(record: TurnRecord, again: Again, now: number, dueAt?: number): TurnRecord {
  const { end: _end, stoppedAt: _stoppedAt, ...turn } = record.turn;
  const isWaitingAgain = record.state === "open" && turn.since === turn.attempt;
  const { dueAt: _dueAt, ...rest } = record;
  return {
    ...rest,
    version: record.version + 1,
    state: "open",
    ...(dueAt === undefined ? {} : { dueAt }),
    turn: { ...turn, since: turn.attempt, openedAt: isWaitingAgain ? turn.openedAt : now, again },
  };
}

function isTurn(record: InboxRecord | undefined): record is TurnRecord {
  return record?.turn !== undefined;
}

type Edit = Extract<Change, { kind: "edit" }>;

function decideEdit(edit: Edit, found: Found, effect: Effect, now: number): Decision {
  const { own, turn, key } = found;
  const question = found.questions.get(key);
  if (effect === "nothing" || own === undefined || turn === undefined) return { result: "unknown" };
  if (own.event.kind === "call") return decideCallEdit(edit, found);
  const known = own.isInLog === true ? question?.editedAt : own.event.edit?.at;
  if (own.isInLog === true && question === undefined) return { result: "unknown" };
  if ((known ?? -Infinity) >= edit.at) return { result: "unchanged" };
  const changed = toEditedEvent(own.event, edit);
  const words =
    own.isInLog === true && question !== undefined
      ? {
          event: withoutText(stillUnread(own.event, changed)),
          question: { ...edit.toQuestion(question), editedAt: edit.at },
        }
      : { event: changed };
  const isLater = turn.turn?.stoppedAt === undefined || edit.at > turn.turn.stoppedAt;
  const isAnew = effect === "open" || (effect === "open-if-last" && edit.isAsked && found.isLast && isLater);
  const ownNext = next(own, { event: words.event });
  const inLog = words.question === undefined ? {} : { questions: new Map([[key, words.question]]) };
  if (effect === "words" && turn.turn === undefined) {
    const dueAt = Math.min(now + quietMs, own.acceptedAt + maxQuietMs);
    return { result: "done", records: [{ ...ownNext, dueAt }], ...inLog };
  }
  if (!isTurn(turn)) return { result: "done", records: [ownNext], ...inLog };
  const before = turn === own ? { ...turn, event: words.event } : turn;
  const address = edit.toAddress(turn.turn.address);
  const records = (changed: TurnRecord): readonly InboxRecord[] => {
    const record = { ...changed, turn: { ...changed.turn, address } };
    return turn === own ? [record] : [ownNext, record];
  };
  if (!isAnew)
    return { result: "done", records: records({ ...before, version: before.version + 1 }), ...inLog };
  const firstAt = turn.state === "open" && turn.turn.since === turn.turn.attempt ? turn.turn.openedAt : now;
  const dueAt = Math.min(now + quietMs, firstAt + maxQuietMs);
  return {
    result: "done",
    records: records(openAgain(before, { kind: "edit" }, now, dueAt)),
    isListed: true,
    needsLast: effect === "open-if-last",
    ...inLog,
  };
}

function toEditedEvent(event: IncomingEvent, { at, toEvent, toAddress }: Edit): IncomingEvent {
  const changed = toEvent(event);
  return { ...changed, edit: { ...event.edit, at }, address: toAddress(event.address) };
}

/** The event with those of its unread files that an edit has left. The others are in the log. */
function stillUnread(before: IncomingEvent, changed: IncomingEvent): IncomingEvent {
  if (before.kind !== "message" || changed.kind !== "message") return changed;
  const left = new Set(changed.attachments.map(({ id }) => id));
  return { ...changed, attachments: before.attachments.filter(({ id }) => left.has(id)) };
}

/** A command runs as it was written. Its new words take the place of the earlier ones in its end. */
function decideCallEdit(edit: Edit, { key, own, turn, questions }: Found): Decision {
  const question = questions.get(key);
  if (own === undefined || turn === undefined) return { result: "unknown" };
  const known = Math.max(own.event.edit?.at ?? -Infinity, question?.editedAt ?? -Infinity);
  if (known >= edit.at) return { result: "unchanged" };
  const changed =
    question === undefined
      ? {}
      : { questions: new Map([[key, { ...edit.toQuestion(question), editedAt: edit.at }]]) };
  if (turn.state === "over") return { result: "done", records: [], erased: [own.event.key], ...changed };
  const record = next(own, { event: toEditedEvent(own.event, edit) });
  return { result: "done", records: [record], ...(turn.state === "ending" ? changed : {}) };
}

function decideDeletion({ key, own, turn, questions }: Found, effect: Effect, now: number): Decision {
  const inLog = questions.has(key) ? { questions: new Map([[key, "erased" as const]]) } : {};
  switch (effect) {
    case "remember":
    case "erase":
      return { result: "done", records: [], erased: [key], ...inLog };
    case "leave":
    case "words": {
      if (own === undefined || !isTurn(turn)) return { result: "unknown" };
      const keys = turn.turn.keys.filter((other) => other !== key);
      const left: TurnRecord = { ...turn, turn: { ...turn.turn, keys } };
      const changed = effect === "words" ? next(left, {}) : withoutOne(left, now);
      if (turn !== own) return { result: "done", records: [changed], erased: [key], ...inLog };
      // The turn keeps its key, because its reply must still be ended, or its other events answered.
      if (!isOpenState(changed) && keys.length === 0)
        return { result: "done", records: [], erased: [key], ...inLog };
      return {
        result: "done",
        records: [{ ...changed, event: emptied(own.event), isInLog: true }],
        ...inLog,
      };
    }
    default:
      // The turn that has answered it is gone, or cannot be read.
      if (own?.state === "joined") return { result: "done", records: [], erased: [key], ...inLog };
      return { result: "unknown" };
  }
}

function isOpenState({ state }: InboxRecord): boolean {
  return state === "open" || state === "ending";
}

/** The turn of a running message that was deleted. */
function withoutOne(record: TurnRecord, now: number): TurnRecord {
  if (record.turn.keys.length > 0) return openAgain(record, { kind: "edit", isCounted: true }, now);
  const { dueAt: _dueAt, ...rest } = record;
  return next(rest, {
    state: "ending",
    turn: { ...record.turn, end: { kind: "withdrawn", at: now, isStored: false } },
  });
}

/** What is left of an event whose turn must still end: its place. */
function emptied(event: IncomingEvent): IncomingEvent {
  const { key, platform, conversationId, sentAt, within, origin } = event;
  // The turn has the address of its reply.
  const author = { id: event.author.id, name: "" };
  const base = { key, platform, conversationId, sentAt, address: {}, author };
  const place = { ...(within === undefined ? {} : { within }), ...(origin === undefined ? {} : { origin }) };
  if (event.kind === "message") return { ...base, ...place, kind: "message", text: "", attachments: [] };
  const { name, inConversation, isPrivate } = event;
  return { ...base, ...place, kind: "call", name, options: {}, inConversation, isPrivate };
}

function decideStop(
  { by, at }: Extract<Change, { kind: "stop" }>,
  { own, turn, key }: Found,
  effect: Effect,
  now: number,
): Decision {
  if (effect !== "end" || own === undefined || turn === undefined) return { result: "ended" };
  // Nobody sees anything of a message that waits.
  if (turn.turn === undefined && own.event.kind === "message")
    return { result: "done", records: [], erased: [key] };
  const { dueAt: _dueAt, ...rest } = turn;
  const state = turn.turn ?? {
    keys: [key],
    attempt: 0,
    since: 0,
    openedAt: turn.acceptedAt,
    address: turn.event.address,
  };
  const end = { kind: "stopped", at: now, by, isStored: false } as const;
  return {
    result: "done",
    records: [next(rest, { state: "ending", turn: { ...state, end, stoppedAt: at } })],
  };
}

function decideAgain(
  { reason, attempt, model, isLastOnly, toQuestion }: Extract<Change, { kind: "again" }>,
  { own, turn, isLast, questions }: Found,
  effect: Effect,
  now: number,
): Decision {
  if (own === undefined || own.state === "erased" || turn === undefined) return { result: "gone" };
  const isAsking = reason === "confirm" && turn.turn?.again?.kind !== "confirm";
  if (effect === "nothing" || (effect === "open-if-asking" && !isAsking))
    return { result: isOpenState(turn) ? "under-way" : "gone" };
  if (!isTurn(turn) || turn.turn.keys.length === 0 || turn.turn.end?.kind === "withdrawn")
    return { result: "gone" };
  if (isEditedCall(turn.event)) return { result: "gone" };
  if (attempt !== undefined && attempt !== (turn.turn.answer ?? attempt)) return { result: "outdated" };
  if (isLastOnly && !isLast) return { result: "not-last" };
  // Whoever presses a button is counted before.
  const again: Again = { kind: reason, ...(model === undefined ? {} : { model }), isCounted: true };
  const fixed = new Map<string, StoredMessage>();
  for (const [key, question] of questions) {
    const corrected = toQuestion?.(question) ?? question;
    if (corrected !== question) fixed.set(key, corrected);
  }
  return {
    result: "done",
    records: [openAgain(turn, again, now)],
    isListed: true,
    needsLast: isLastOnly,
    ...(fixed.size === 0 ? {} : { questions: fixed }),
  };
}
