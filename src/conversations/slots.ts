import { ParleyError } from "../core/errors.ts";
import type { StoredMessage } from "../core/storage.ts";
import type { KeyValueStore } from "./key-value.ts";
import { entryAt } from "./store-keys.ts";
import { type Slot, toMessage } from "./stored-message.ts";

/** Reads a conversation's numbered entries. */
export interface Slots {
  /** The head's hint at the position of the next message; may be too low. */
  hintedEnd(conversationId: string): Promise<number>;
  /** The first free position from `from` on. */
  firstFree(conversationId: string, from: number): Promise<number>;
  isTaken(conversationId: string, position: number): Promise<boolean>;
  /** The newest messages, oldest first. */
  last(conversationId: string, maxMessages: number): Promise<readonly StoredMessage[]>;
  /** `undefined`: free, erased or expired. */
  at(conversationId: string, position: number): Promise<StoredMessage | undefined>;
  /** Every position up to the end, oldest first. */
  all(conversationId: string): AsyncIterable<{
    readonly position: number;
    /** Of the message, also of an erased one; `undefined`: expired. */
    readonly id: string | undefined;
    /** `undefined`: erased, expired or damaged. */
    readonly message: StoredMessage | undefined;
    /** Why a message cannot be read. */
    readonly damage?: ParleyError;
  }>;
}

const batchSize = 200;

/** @see {@link Slots} */
export function createSlots(store: KeyValueStore): Slots {
  const read = async (conversationId: string, from: number, to: number) =>
    store.getMany<Slot>("slot", keysOf(conversationId, from, to));

  const hintedEnd = async (conversationId: string) => {
    const { space, key } = entryAt.head(conversationId);
    return (await store.get<{ next: number }>(space, key))?.next ?? 0;
  };

  const firstFree = async (conversationId: string, from: number) => {
    for (let start = from; ; start += batchSize) {
      const taken = await store.hasMany("slot", keysOf(conversationId, start, start + batchSize));
      const free = taken.indexOf(false);
      if (free !== -1) return start + free;
    }
  };

  return {
    hintedEnd,
    firstFree,
    async isTaken(conversationId, position) {
      const [isTaken] = await store.hasMany("slot", [entryAt.slot(conversationId, position).key]);
      return isTaken === true;
    },
    async last(conversationId, maxMessages) {
      let end = await hintedEnd(conversationId);
      const size = Math.min(maxMessages, batchSize);
      // One more than the hint says: if that is taken, the hint is out of date.
      let page = await read(conversationId, Math.max(0, end - size), end + 1);
      if (page.at(-1) !== undefined) {
        end = await firstFree(conversationId, end + 1);
        page = await read(conversationId, Math.max(0, end - size), end);
      }
      const found = toMessages(page);
      for (let to = end - size; to > 0 && found.length < maxMessages; to -= batchSize) {
        found.unshift(...toMessages(await read(conversationId, Math.max(0, to - batchSize), to)));
      }
      return maxMessages <= 0 ? [] : found.slice(-maxMessages);
    },
    async at(conversationId, position) {
      const { space, key } = entryAt.slot(conversationId, position);
      const slot = await store.get<Slot>(space, key);
      return toMessage(slot);
    },
    async *all(conversationId) {
      const end = await firstFree(conversationId, await hintedEnd(conversationId));
      for (let from = 0; from < end; from += batchSize) {
        const keys = keysOf(conversationId, from, Math.min(end, from + batchSize));
        const page = await store.inspectMany<Slot>("slot", keys);
        for (const [index, slot] of page.entries()) {
          const position = from + index;
          yield slot instanceof ParleyError
            ? { position, id: undefined, message: undefined, damage: slot }
            : { position, id: slot?.id, message: toMessage(slot) };
        }
      }
    },
  };
}

function keysOf(conversationId: string, from: number, to: number): string[] {
  return Array.from(
    { length: Math.max(0, to - from) },
    (_, index) => entryAt.slot(conversationId, from + index).key,
  );
}

function toMessages(slots: readonly (Slot | undefined)[]): StoredMessage[] {
  return slots.flatMap((slot) => toMessage(slot) ?? []);
}
