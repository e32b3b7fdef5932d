import { ParleyError } from "../core/errors.ts";
import { storedIn, type IncomingEvent, type ReplyAddress } from "../core/events.ts";
import type { AgainReason, InboxRecord, TurnState } from "../core/inbox.ts";
import { messageIds } from "../core/message-ids.ts";
import type { StoredMessage } from "../core/storage.ts";
import type { Log } from "../core/telemetry.ts";
import { inOrder } from "./conversation-index.ts";
import {
  eraseRecord,
  isOpen,
  keptMs,
  list,
  listRepeatable,
  orderOf,
  unlist,
  withoutWords,
} from "./inbox-record.ts";
import { type Change, type KeyValueStore } from "./key-value.ts";
import { createLogPlanner } from "./log-plan.ts";
import { createSlots } from "./slots.ts";
import { inboxMark } from "./store-marks.ts";
import { entryAt, type Head } from "./keys.ts";

// The inbox of version 4 had the progress of turns in a space of its own, six states, and the words of
// answered events. Each record is rewritten by one write over what was read, so that a start which is killed
// goes on where it was. The mark comes last.

/** A record of version 4. */
interface EarlierRecord {
  readonly event: IncomingEvent;
  readonly acceptedAt: number;
  readonly version?: number;
  readonly attempts?: number;
  readonly state: "open" | "edited" | "stopping" | "withdrawn" | "answered" | "erased";
  readonly redo?: {
    readonly kind: AgainReason;
    readonly model?: string;
    readonly since: number;
    readonly requestedAt: number;
  };
  readonly stoppedBy?: string;
  readonly stoppedAnswer?: { readonly message: StoredMessage };
}

/** The progress of a turn in version 4, under the key of its first event. */
interface EarlierTurn {
  readonly keys: readonly string[];
  readonly address: ReplyAddress;
  readonly attempts: number;
}

/** The indexes of answered events, which are not needed any more. */
const goneIndexes = /^(?:answered-events-(?:in|by):|expiring-indexes$)/s;

/** Rewrites the inbox of a store of version 4. It does nothing in any other. */
export async function migrateInbox(
  store: KeyValueStore,
  { log, retentionMs }: { readonly log: Log; readonly retentionMs?: number | undefined },
): Promise<void> {
  const [mark] = await store.inspectMany(inboxMark.space, [inboxMark.key]);
  // An empty store may have been marked before it was to be encrypted. Then its mark cannot be read.
  if (mark !== undefined && !(mark instanceof ParleyError)) return;
  const turns = await readTurns(store);
  const migrate = createMigration(store, turns, retentionMs);
  let count = 0;
  const conversations = new Set<string>();
  for await (const { key } of store.backend.scan("inbox")) {
    const migrated = await migrate(key);
    if (migrated === undefined) continue;
    conversations.add(migrated.conversationId);
    if (migrated.isRewritten) count++;
  }
  for (const conversationId of conversations) await markLast(store, conversationId);
  for await (const { key } of store.backend.scan("turn"))
    await store.write([{ kind: "delete", at: { space: "turn", key } }], "soon");
  for await (const { key: index } of store.backend.scan("indexes"))
    if (goneIndexes.test(index))
      for await (const { member } of inOrder(store, index, "lowest-first"))
        await store.write([{ kind: "remove-member", index, member }], "soon");
  await store.write([{ kind: "set", at: inboxMark, value: "records" }]);
  if (count > 0) {
    log.info({ records: count }, "the inbox was migrated");
    await store.scrub();
  }
}

/** The progress of all turns, and which turn answers an event. */
interface Turns {
  readonly byKey: ReadonlyMap<string, EarlierTurn>;
  readonly answeredIn: ReadonlyMap<string, string>;
}

async function readTurns(store: KeyValueStore): Promise<Turns> {
  const byKey = new Map<string, EarlierTurn>();
  const answeredIn = new Map<string, string>();
  for await (const { key } of store.backend.scan("turn")) {
    const [turn] = await store.inspectMany<EarlierTurn>("turn", [key]);
    if (turn === undefined || turn instanceof Error) continue;
    byKey.set(key, turn);
    for (const other of turn.keys) if (other !== key) answeredIn.set(other, key);
  }
  return { byKey, answeredIn };
}

/** A record that is not of version 4 any more. A start that was killed may have rewritten it before. */
interface Migrated {
  readonly conversationId: string;
  readonly isRewritten: boolean;
}

/** Returns a function that rewrites a record of version 4. It resolves to `undefined` for a damaged one. */
function createMigration(store: KeyValueStore, turns: Turns, retentionMs: number | undefined) {
  const planLog = createLogPlanner(store, retentionMs);

  async function isInLog({ key }: IncomingEvent, conversationId: string): Promise<boolean> {
    const { space, key: id } = entryAt.messageId(conversationId, messageIds.user(key));
    return ((await store.get<number>(space, id)) ?? -1) >= 0;
  }

  /** What is to be known of the other events of a turn. Some may have been rewritten already. */
  async function readOthers(key: string): Promise<Others> {
    const others = (turns.byKey.get(key)?.keys ?? []).filter((other) => other !== key);
    const found = (await store.observeAll(others.map(entryAt.event))).map(
      ({ value }) => value as EarlierRecord | InboxRecord | undefined,
    );
    return {
      hasEdited: found.some(
        (other) => other?.state === "edited" || (other?.state === "joined" && other.isInLog !== true),
      ),
      left: others.filter((_, index) => !isGone(found[index])),
    };
  }

  return async function migrate(key: string): Promise<Migrated | undefined> {
    for (;;) {
      const at = entryAt.event(key);
      const { value, unchanged, damage } = (await store.observeAll([at]))[0] ?? {};
      // A damaged record stays, and is skipped as before.
      if (damage !== undefined || value === undefined || unchanged === undefined) return undefined;
      const before = value as EarlierRecord;
      const conversationId = storedIn(before.event);
      if (isMigrated(before, turns)) return { conversationId, isRewritten: false };
      const isFiled = before.event.kind === "message" && (await isInLog(before.event, conversationId));
      const isJoined = turns.answeredIn.has(key) && !turns.byKey.has(key);
      // The turn that it has left answers the others.
      if (isJoined && before.state === "withdrawn") {
        const failed = await store.writeIf([unchanged], eraseRecord(key, value as InboxRecord));
        if (failed === undefined) return { conversationId, isRewritten: true };
        continue;
      }
      const record = toRecord(before, turns, { isFiled, others: await readOthers(key) });
      const answer = before.stoppedAnswer?.message;
      const plan =
        answer === undefined
          ? undefined
          : await planLog(conversationId, [{ message: answer, over: () => answer }], { conflicts: 0 });
      const changes: Change[] = [
        { kind: "set", at, value: record, ttlMs: "kept" },
        ...(record.state === "joined" ? unlist(record.event) : []),
        ...(isOpen(record) ? list(record.event, orderOf(record)) : []),
        ...(record.state === "over" && record.event.kind === "call"
          ? listRepeatable(key, keptMs(record, retentionMs))
          : []),
        ...(plan?.changes ?? []),
      ];
      const failed = await store.writeIf([unchanged, ...(plan?.conditions ?? [])], changes);
      if (failed === undefined) return { conversationId, isRewritten: true };
    }
  };
}

/** What is to be known of the other events of a turn. */
interface Others {
  /** Whether one was edited, and the edit was not applied yet. */
  readonly hasEdited: boolean;
  /** The keys of those that were not deleted. */
  readonly left: readonly string[];
}

function isGone(record: EarlierRecord | InboxRecord | undefined): boolean {
  return record === undefined || record.state === "withdrawn" || record.state === "erased";
}

/** Whether nothing of a record is of version 4. */
function isMigrated(record: EarlierRecord | InboxRecord, { byKey, answeredIn }: Turns): boolean {
  if (record.version === undefined) return false;
  switch (record.state) {
    case "open":
      return (
        "turn" in record ||
        !("attempts" in record || byKey.has(record.event.key) || answeredIn.has(record.event.key))
      );
    case "erased":
    case "ending":
    case "over":
    case "joined":
      return true;
    default:
      return false;
  }
}

function toRecord(
  before: EarlierRecord,
  { byKey, answeredIn }: Turns,
  { isFiled, others }: { readonly isFiled: boolean; readonly others: Others },
): InboxRecord {
  const { event: earlier, acceptedAt, version = 0, attempts = 0, state, redo } = before;
  const { key } = earlier;
  const event = withoutEarlierFields(earlier);
  const isAsWritten = state === "edited";
  const isEdited = state === "answered" && others.hasEdited;
  const base = {
    event: isFiled && !isAsWritten ? withoutWords(event) : event,
    acceptedAt,
    version: version + 1,
    ...(isFiled && !isAsWritten ? { isInLog: true as const } : {}),
  };
  const turnKey = answeredIn.get(key);
  if (turnKey !== undefined && byKey.has(turnKey) && !byKey.has(key) && state !== "erased")
    return { ...base, state: "joined", in: turnKey };
  const known = byKey.get(key);
  const attempt = Math.max(known?.attempts ?? 0, attempts);
  const turn: TurnState = {
    keys: [...(state === "withdrawn" ? [] : [key]), ...others.left],
    attempt,
    since: redo?.since ?? (isAsWritten || isEdited ? attempt : 0),
    openedAt: redo?.requestedAt ?? acceptedAt,
    ...(redo === undefined ? {} : { again: toAgain(redo) }),
    ...(isAsWritten || isEdited ? { again: { kind: "edit" } } : {}),
    address: known?.address ?? event.address,
  };
  switch (state) {
    case "open":
      return attempt === 0 ? { ...base, state } : { ...base, state, turn };
    case "edited":
      return { ...base, state: "open", turn };
    case "stopping": {
      const isStored = before.stoppedAnswer !== undefined;
      const by = before.stoppedBy ?? "";
      return {
        ...base,
        state: "ending",
        turn: { ...turn, end: { kind: "stopped", at: acceptedAt, by, isStored } },
      };
    }
    case "withdrawn":
      // What is left of its questions is answered.
      if (others.left.length > 0)
        return {
          ...base,
          isInLog: true,
          state: "open",
          turn: { ...turn, since: attempt, again: { kind: "edit", isCounted: true } },
        };
      return {
        ...base,
        state: "ending",
        turn: { ...turn, end: { kind: "withdrawn", at: acceptedAt, isStored: false } },
      };
    case "answered":
      if (isEdited) return { ...base, state: "open", turn };
      return { ...base, event: withoutWords(event), isInLog: true, state: "over", turn };
    case "erased":
      return { ...base, event, state };
  }
}

function toAgain({ kind, model }: NonNullable<EarlierRecord["redo"]>) {
  return { kind, ...(model === undefined ? {} : { model }) };
}

/** Earlier events had corrected words, and counted their edits. */
function withoutEarlierFields(event: IncomingEvent): IncomingEvent {
  const { fixedWords: _fixedWords, edit, ...rest } = event as IncomingEvent & { fixedWords?: unknown };
  return { ...rest, ...(edit === undefined ? {} : { edit: { at: edit.at } }) };
}

/** Notes which turn is the last one of a conversation, so that it can be answered anew. */
async function markLast(store: KeyValueStore, conversationId: string): Promise<void> {
  const at = entryAt.head(conversationId);
  const recent = await createSlots(store).last(conversationId, maxLooked, Number.MAX_SAFE_INTEGER);
  const last = recent.findLast(({ role, inContext }) => role === "assistant" && inContext !== false);
  if (last === undefined) return;
  for (;;) {
    const { value, unchanged } = await store.observe<Head>(at);
    if (value === undefined || value.last !== undefined) return;
    const change: Change = { kind: "set", at, value: { ...value, last: last.turnKey }, ttlMs: "kept" };
    if ((await store.writeIf([unchanged], [change])) === undefined) return;
  }
}

/** In so many of the last messages the last turn is looked for. */
const maxLooked = 50;
