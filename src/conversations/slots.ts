import { ParleyError } from "../core/errors.ts";
import { type StoredMessage, charsOf } from "../core/storage.ts";
import { type KeyValueStore } from "./key-value.ts";
import { entryAt, type Head, type Tombstone } from "./keys.ts";

/**
 * Reads a conversation's numbered entries. A message that is missing although it cannot have expired is
 * `store-corrupt`, like one that cannot be read.
 */
export interface Slots {
  /** The known end of the conversation, if it has one. */
  head(conversationId: string): Promise<Head | undefined>;
  /** The first free position from `from` on. */
  firstFree(conversationId: string, from: number): Promise<number>;
  isTaken(conversationId: string, position: number): Promise<boolean>;
  /** The newest messages, oldest first, until their texts exceed `maxChars` characters together. */
  last(conversationId: string, maxMessages: number, maxChars: number): Promise<readonly StoredMessage[]>;
  /** The message at a position, or `undefined` if that is free, erased or expired. */
  at(conversationId: string, position: number): Promise<StoredMessage | undefined>;
  /** Every position from `from` up to the end or to before `to`, oldest first. */
  all(
    conversationId: string,
    bounds?: { readonly from: number; readonly to: number },
  ): AsyncIterable<{
    readonly position: number;
    /** The id of the message, even if that is erased, or `undefined` if it has expired. */
    readonly id: string | undefined;
    /** The message, or `undefined` if it is erased, expired or damaged. */
    readonly message: StoredMessage | undefined;
    /** Why the message cannot be read. */
    readonly damage?: ParleyError;
  }>;
}

const batchSize = 200;
/** How many messages are read at once where they may be long. Each can hold a million characters. */
const readAtOnce = 16;

/** Creates {@link Slots}. */
export function createSlots(store: KeyValueStore): Slots {
  const read = async (conversationId: string, from: number, to: number) =>
    store.getMany<Slot>("slot", keysOf(conversationId, from, to));

  const readHead = async (conversationId: string) => {
    const { space, key } = entryAt.head(conversationId);
    return store.get<Head>(space, key);
  };

  /**
   * Finds a slot that is missing although the head says that it must exist. Both are read again, because the
   * slot may have been written or the conversation erased.
   */
  const findLost = async (
    conversationId: string,
    { head, from, page }: { head: Head | undefined; from: number; page: readonly (Slot | undefined)[] },
  ) => {
    const offset = page.findIndex((slot, index) => slot === undefined && mustExist(head, from + index));
    if (offset === -1) return undefined;
    const position = from + offset;
    const [slot] = await read(conversationId, position, position + 1);
    return slot === undefined && mustExist(await readHead(conversationId), position) ? position : undefined;
  };

  const checkComplete = async (...[conversationId, found]: Parameters<typeof findLost>) => {
    if ((await findLost(conversationId, found)) !== undefined) throw lostMessage();
  };

  const firstFree = async (conversationId: string, from: number) => {
    for (let start = from; ; start += batchSize) {
      const taken = await store.hasMany("slot", keysOf(conversationId, start, start + batchSize));
      const free = taken.indexOf(false);
      if (free !== -1) return start + free;
    }
  };

  return {
    head: readHead,
    firstFree,
    async isTaken(conversationId, position) {
      const [isTaken] = await store.hasMany("slot", [entryAt.slot(conversationId, position).key]);
      return isTaken === true;
    },
    async last(conversationId, maxMessages, maxChars) {
      const head = await readHead(conversationId);
      let end = head?.next ?? 0;
      const size = Math.min(maxMessages, readAtOnce);
      // It reads one more than the hint says. If that is taken, the hint is out of date.
      let page = await read(conversationId, Math.max(0, end - size), end + 1);
      if (page.at(-1) !== undefined) {
        end = await firstFree(conversationId, end + 1);
        page = await read(conversationId, Math.max(0, end - size), end);
      }
      await checkComplete(conversationId, { head, from: Math.max(0, end - size), page });
      /** The messages are newest first. */
      const found = toMessages(page).toReversed();
      let chars = charsOf(found);
      for (let to = end - size; to > 0 && found.length < maxMessages && chars <= maxChars; to -= readAtOnce) {
        const from = Math.max(0, to - readAtOnce);
        const earlier = await read(conversationId, from, to);
        await checkComplete(conversationId, { head, from, page: earlier });
        const messages = toMessages(earlier).toReversed();
        chars += charsOf(messages);
        found.push(...messages);
      }
      return upToChars(found.slice(0, Math.max(0, maxMessages)), maxChars).toReversed();
    },
    async at(conversationId, position) {
      const { space, key } = entryAt.slot(conversationId, position);
      const slot = await store.get<Slot>(space, key);
      if (slot === undefined)
        await checkComplete(conversationId, {
          head: await readHead(conversationId),
          from: position,
          page: [slot],
        });
      return toMessage(slot);
    },
    async *all(conversationId, bounds) {
      const head = await readHead(conversationId);
      const end = bounds?.to ?? (await firstFree(conversationId, head?.next ?? 0));
      for (let from = bounds?.from ?? 0; from < end; from += readAtOnce) {
        const keys = keysOf(conversationId, from, Math.min(end, from + readAtOnce));
        const page = await store.inspectMany<Slot>("slot", keys);
        const readable = page.map((slot) => (slot instanceof ParleyError ? damaged : slot));
        const lost = await findLost(conversationId, { head, from, page: readable });
        for (const [index, slot] of page.entries()) {
          const position = from + index;
          const damage = slot instanceof ParleyError ? slot : position === lost ? lostMessage() : undefined;
          yield slot instanceof ParleyError || damage !== undefined
            ? { position, id: undefined, message: undefined, ...(damage === undefined ? {} : { damage }) }
            : { position, id: slot?.id, message: toMessage(slot) };
        }
      }
    },
  };
}

/** Stands for a slot that exists but cannot be read. */
const damaged: Slot = { forgotten: true, id: "" };

function mustExist(head: Head | undefined, position: number): boolean {
  return head?.keptFrom !== undefined && position >= head.keptFrom && position < head.next;
}

function lostMessage(): ParleyError {
  return new ParleyError("store-corrupt", "a message of the conversation is missing from the store");
}

function keysOf(conversationId: string, from: number, to: number): string[] {
  return Array.from(
    { length: Math.max(0, to - from) },
    (_, index) => entryAt.slot(conversationId, from + index).key,
  );
}

/** The first messages, up to the one with which they exceed the limit. */
function upToChars(messages: readonly StoredMessage[], maxChars: number): readonly StoredMessage[] {
  let chars = 0;
  const last = messages.findIndex((message) => {
    chars += charsOf([message]);
    return chars > maxChars;
  });
  return last === -1 ? messages : messages.slice(0, last + 1);
}

function toMessages(slots: readonly (Slot | undefined)[]): StoredMessage[] {
  return slots.flatMap((slot) => toMessage(slot) ?? []);
}

/** The value of a slot. */
export type Slot = StoredMessage | Tombstone;

/** The message in a slot, or `undefined` if the slot is free, expired or erased. */
export function toMessage(slot: Slot | undefined): StoredMessage | undefined {
  return slot === undefined || "forgotten" in slot ? undefined : slot;
}
