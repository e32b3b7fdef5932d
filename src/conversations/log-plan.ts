import type { ConversationSettings, NotedWithMessage, StoredMessage } from "../core/storage.ts";
import { systemClock } from "../support/clock.ts";
import type { WriteCondition } from "./backend.ts";
import { indexActivity, indexAuthor, indexPlaces } from "./conversation-index.ts";
import { type Change, type KeyValueStore, type Observed } from "./key-value.ts";
import { outliving } from "./retention.ts";
import { planWithoutSummary } from "./rolling-summary.ts";
import { createSlots, type Slot, toMessage } from "./slots.ts";
import { entryAt, type Head } from "./keys.ts";

/** A message that is to be stored. */
export interface PlannedMessage {
  readonly message: StoredMessage;
  /** What takes the place of a stored message with its id. By default that stays. `undefined`: it stays. */
  readonly over?: (before: StoredMessage) => StoredMessage | undefined;
}

/** A part of an atomic write. */
export interface WritePlan {
  readonly conditions: readonly WriteCondition[];
  readonly changes: readonly Change[];
  /** Words that were stored are replaced, so that they must go from the service's files too. */
  readonly erases?: boolean;
}

/** The part of a write that stores messages. */
export interface LogPlan extends WritePlan {
  /** The end of the log as this write makes it. */
  readonly head?: Extract<Change, { kind: "set" }>;
  /** The ids of those that are not stored, because their ids are known or erased. */
  readonly refused: readonly string[];
}

interface PlanOptions {
  /**
   * The end of the log as it was read or written last, for messages that are new. Then nothing is read, and
   * the write compares whether it is so.
   */
  readonly head?: Observed<Head> | undefined;
  readonly noted?: NotedWithMessage | undefined;
  /** The key of the turn that becomes the last one of the conversation. */
  readonly last?: string | undefined;
  /** How often the write has failed before. Then the end of the log is looked for. */
  readonly conflicts: number;
}

/**
 * Plans to add messages to the end of a conversation's log, each in an entry of its own (a slot), which is
 * set if absent together with its id, the new end and the indexes. So several processes can write without
 * losses, and an append always costs the same.
 */
export function createLogPlanner(store: KeyValueStore, retentionMs: number | undefined) {
  const outlivingMs = outliving(retentionMs);
  const slots = createSlots(store);

  function planSettings(
    conversationId: string,
    { value: before, unchanged }: Observed<ConversationSettings>,
    { within, room }: NotedWithMessage,
    isFirst: boolean,
  ): WritePlan | undefined {
    const places = isFirst && before?.within === undefined ? within : undefined;
    if (places === undefined && room === undefined) return undefined;
    const merged: ConversationSettings = {
      ...before,
      ...(room === undefined ? {} : { room: { ...before?.room, ...room } }),
      ...(places === undefined ? {} : { within: places }),
    };
    return {
      conditions: [unchanged],
      changes: [
        { kind: "set", at: entryAt.settings(conversationId), value: merged, ttlMs: outlivingMs },
        ...indexPlaces(conversationId, before?.within ?? [], merged.within ?? []),
      ],
    };
  }

  /** The change of a message that is stored under this id. */
  async function planOver(
    conversationId: string,
    position: number,
    { message, over }: PlannedMessage,
  ): Promise<WritePlan | undefined> {
    if (over === undefined || position < 0) return undefined;
    const at = entryAt.slot(conversationId, position);
    const { value: slot, unchanged } = await store.observe<Slot>(at);
    const before = toMessage(slot);
    const after = before?.id === message.id ? over(before) : undefined;
    if (after === undefined) return undefined;
    const without = await planWithoutSummary(store, conversationId, [position]);
    return {
      conditions: [unchanged, ...without.conditions],
      changes: [{ kind: "set", at, value: after, ttlMs: "kept" }, ...without.changes],
    };
  }

  return async function plan(
    conversationId: string,
    planned: readonly PlannedMessage[],
    { noted = {}, last, conflicts, head: given }: PlanOptions,
  ): Promise<LogPlan> {
    // Places are saved with the first message.
    const isPlaced = noted.within !== undefined && (given?.value?.next ?? 0) === 0;
    const isNoted = isPlaced || noted.room !== undefined;
    const headAt = entryAt.head(conversationId);
    const idsAt = planned.map(({ message }) => entryAt.messageId(conversationId, message.id));
    const isKnown = given !== undefined && !isNoted && conflicts === 0;
    const found: readonly Observed<unknown>[] = isKnown
      ? [given, ...idsAt.map((at) => ({ value: undefined, unchanged: at }))]
      : await store.observeAll([headAt, ...idsAt, ...(isNoted ? [entryAt.settings(conversationId)] : [])]);
    for (const { damage } of found) if (damage !== undefined) throw damage;
    const head = found[0] as Observed<Head>;
    const ids = found.slice(1, 1 + planned.length) as readonly Observed<number>[];
    const settings = isNoted ? (found.at(-1) as Observed<ConversationSettings>) : undefined;
    const conditions: WriteCondition[] = [];
    const changes: Change[] = [];
    const refused: string[] = [];
    let erases = false;
    let end = head.value?.next ?? 0;
    const from = end;
    for (const [index, one] of planned.entries()) {
      const { message } = one;
      const id = ids[index]!;
      conditions.push(id.unchanged);
      if (id.value !== undefined) {
        const over = await planOver(conversationId, id.value, one);
        if (over === undefined) refused.push(message.id);
        else erases = true;
        conditions.push(...(over?.conditions ?? []));
        changes.push(...(over?.changes ?? []));
        continue;
      }
      if (conflicts > 0) end = await slots.firstFree(conversationId, end);
      const slot = entryAt.slot(conversationId, end);
      conditions.push(slot);
      changes.push(
        { kind: "set", at: slot, value: message, ttlMs: retentionMs },
        {
          kind: "set",
          at: entryAt.messageId(conversationId, message.id),
          value: end,
          ttlMs: retentionMs,
        },
        ...(message.author === undefined ? [] : indexAuthor(conversationId, message.author.id)),
      );
      end++;
    }
    const isGrown = end > from;
    const isTouched = isGrown || last !== undefined;
    // A turn may have begun before anything of it was stored.
    const isFirst = isTouched && from === 0;
    let changedHead: LogPlan["head"];
    if (isTouched) {
      const value: Head = {
        next: end,
        ...(retentionMs === undefined ? { keptFrom: head.value?.keptFrom ?? from } : {}),
        ...(last === undefined ? toLast(head.value) : { last }),
      };
      conditions.push(head.unchanged);
      changedHead = { kind: "set", at: headAt, value, ttlMs: outlivingMs };
      changes.push(changedHead);
    }
    const noting = settings && planSettings(conversationId, settings, noted, isFirst);
    if (noting !== undefined) {
      conditions.push(...noting.conditions);
      changes.push(...noting.changes);
    } else if (isGrown && outlivingMs !== undefined)
      changes.push({ kind: "keep", at: entryAt.settings(conversationId), ttlMs: outlivingMs });
    // A conversation that was deleted meanwhile is not listed again by a turn that stores nothing.
    if (isGrown || isFirst) changes.push(...indexActivity(conversationId, systemClock.now()));
    return {
      conditions,
      changes,
      refused,
      erases,
      ...(changedHead === undefined ? {} : { head: changedHead }),
    };
  };
}

/** The part of a head that stays as it is. */
export function toLast(head: Head | undefined): Pick<Head, "last"> {
  return head?.last === undefined ? {} : { last: head.last };
}
