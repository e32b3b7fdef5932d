import { randomUUID } from "node:crypto";
import type { Conversations, RollingSummary, StoredMessage } from "../core/storage.ts";
import { systemClock } from "../support/clock.ts";
import type { Resolves, WriteCondition } from "./backend.ts";
import { type Change, type KeyValueStore } from "./key-value.ts";
import { createSlots, type Slot, toMessage } from "./slots.ts";
import { entryAt, type StoredSummary } from "./keys.ts";

interface RollingSummaryOptions {
  readonly store: KeyValueStore;
  readonly retentionMs?: number | undefined;
}

/** Messages so near their removal are not summed up, so that a summary lives for some time. */
const retainedShare = 0.9;

/** Creates the part of {@link Conversations} that keeps a summary of what models are no longer sent. */
export function createRollingSummary({
  store,
  retentionMs,
}: RollingSummaryOptions): Pick<Conversations, "summary" | "sumUp"> {
  const slots = createSlots(store);

  const positionOf = async (conversationId: string, messageId: string | undefined) => {
    if (messageId === undefined) return undefined;
    const { space, key } = entryAt.messageId(conversationId, messageId);
    const position = await store.get<number>(space, key);
    return position === undefined || position < 0 ? undefined : position;
  };

  /** The messages from a position on that are taken together, and the position after the last of them. */
  const take = async (
    conversationId: string,
    [from, until]: readonly [number, number],
    { sizeOf, maxSize }: Parameters<Conversations["sumUp"]>[1],
  ) => {
    const messages: StoredMessage[] = [];
    const expired = systemClock.now() - (retentionMs ?? Number.POSITIVE_INFINITY) * retainedShare;
    let size = 0;
    let end = from;
    for await (const { position, message, damage } of slots.all(conversationId, { from, to: until })) {
      if (damage !== undefined) throw damage;
      if (message !== undefined && message.createdAt > expired) {
        size += sizeOf(message);
        if (size > maxSize && messages.length > 0) return { messages, end };
        messages.push(message);
      }
      end = position + 1;
    }
    return { messages, end };
  };

  /** Replaces what was observed. False: somebody else has changed it. */
  const put = async (
    conversationId: string,
    unchanged: Observed["unchanged"],
    value: StoredSummary,
    resolves?: Resolves,
  ) => {
    const at = entryAt.summary(conversationId);
    const ttlMs =
      retentionMs === undefined
        ? undefined
        : Math.max(1, (value.oldestAt ?? systemClock.now()) + retentionMs - systemClock.now());
    return (await store.writeIf([unchanged], [{ kind: "set", at, value, ttlMs }], resolves)) === undefined;
  };

  return {
    async summary(conversationId) {
      const { space, key } = entryAt.summary(conversationId);
      return toShown(await store.get<StoredSummary>(space, key));
    },
    async sumUp(conversationId, bounds, make) {
      const at = entryAt.summary(conversationId);
      const [{ value: known, unchanged }, needed, wanted = 0, reset = -1] = await Promise.all([
        store.observe<StoredSummary>(at),
        positionOf(conversationId, bounds.before),
        positionOf(conversationId, bounds.ahead),
        positionOf(conversationId, bounds.resetAfter),
      ]);
      // A message that is not stored yet may be any number of messages away.
      if (needed === undefined) return { summary: undefined, isComplete: false };
      const { claim: _claim, ...before } = known ?? {
        text: "",
        from: reset + 1,
        until: reset + 1,
        messages: 0,
      };
      if (needed <= before.until) return { summary: toShown(before), isComplete: true };
      const claim = { token: randomUUID(), until: Math.max(needed, wanted) };
      // The claim comes before the reading: who erases a message later takes it away.
      if (!(await put(conversationId, unchanged, { ...before, claim }, "soon"))) return nothing;
      const { messages, end } = await take(conversationId, [before.until, claim.until], bounds);
      const made = messages.length === 0 ? undefined : await make(toShown(before), messages);
      const costUsd = addCosts(before.costUsd, made?.costUsd);
      const oldestAt = Math.min(...[before, ...messages.map(toAge)].map((one) => one.oldestAt ?? Infinity));
      const value: StoredSummary = {
        text: made?.text ?? before.text,
        from: before.from,
        until: end,
        messages: before.messages + messages.length,
        ...(costUsd === undefined ? {} : { costUsd }),
        ...(before.isEstimated === true || made?.isEstimated === true ? { isEstimated: true } : {}),
        ...(oldestAt === Infinity ? {} : { oldestAt }),
      };
      const { value: now, unchanged: unchangedNow } = await store.observe<StoredSummary>(at);
      if (now?.claim?.token !== claim.token) return nothing;
      if (!(await put(conversationId, unchangedNow, value))) return nothing;
      return { summary: toShown(value), isComplete: needed <= end };
    },
  };
}

type Observed = Awaited<ReturnType<KeyValueStore["observe"]>>;

const nothing = { summary: undefined, isComplete: false } as const;

function toShown(stored: StoredSummary | undefined): RollingSummary | undefined {
  if (stored === undefined || stored.text === "") return undefined;
  const { claim: _claim, oldestAt: _oldestAt, ...shown } = stored;
  return shown;
}

function toAge({ createdAt }: StoredMessage): Pick<StoredSummary, "oldestAt"> {
  return { oldestAt: createdAt };
}

function addCosts(one: number | undefined, other: number | undefined): number | undefined {
  return one === undefined && other === undefined ? undefined : (one ?? 0) + (other ?? 0);
}

/**
 * The part of a write to messages at these positions that erases a summary which covers one of them, or is
 * being made of it. Models make another one of the messages that are left.
 */
export async function planWithoutSummary(
  store: KeyValueStore,
  conversationId: string,
  positions: readonly number[],
): Promise<{ readonly conditions: readonly WriteCondition[]; readonly changes: readonly Change[] }> {
  const at = entryAt.summary(conversationId);
  const { value, unchanged } = await store.observe<StoredSummary>(at);
  const until = Math.max(value?.until ?? 0, value?.claim?.until ?? 0);
  const isHeld = value !== undefined && positions.some((one) => one >= value.from && one < until);
  return { conditions: [unchanged], changes: isHeld ? [{ kind: "delete", at }] : [] };
}

/**
 * Writes changes to the messages at these positions, and erases with them a summary that covers one of them
 * or is being made of it. False: a condition is not met, and nothing is written.
 */
export async function writeWithoutSummary(
  store: KeyValueStore,
  conversationId: string,
  positions: readonly number[],
  changes: readonly Change[],
  conditions: readonly WriteCondition[] = [],
): Promise<boolean> {
  for (;;) {
    const without = await planWithoutSummary(store, conversationId, positions);
    const [unchanged] = without.conditions;
    const failed = await store.writeIf(
      [...without.conditions, ...conditions],
      [...changes, ...without.changes],
    );
    if (failed !== unchanged) return failed === undefined;
  }
}

/**
 * Changes the message at a position, if there is one, and erases with it a summary that covers it. `change`
 * runs again if another writer was faster. False: it returned `undefined`, and nothing is written.
 */
export async function replaceWithoutSummary(
  store: KeyValueStore,
  conversationId: string,
  position: number,
  change: (message: StoredMessage) => StoredMessage | undefined,
): Promise<boolean> {
  const at = entryAt.slot(conversationId, position);
  for (;;) {
    const { value: slot, unchanged } = await store.observe<Slot>(at);
    const message = toMessage(slot);
    const value = message && change(message);
    if (value === undefined) return false;
    const changes = [{ kind: "set", at, value, ttlMs: "kept" }] as const;
    if (await writeWithoutSummary(store, conversationId, [position], changes, [unchanged])) return true;
  }
}
