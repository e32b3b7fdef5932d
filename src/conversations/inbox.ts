import type { Inbox, InboxEntry, TurnProgress } from "../core/storage.ts";
import type { IncomingEvent } from "../core/events.ts";
import type { Log } from "../core/telemetry.ts";
import type { Change, KeyValueStore } from "./key-value.ts";
import { indexes } from "./store-keys.ts";

const dayMs = 24 * 60 * 60 * 1000;

/** A turn's progress says where its reply stands; it must outlast the longest outage a start recovers from. */
const turnTtlMs = 90 * dayMs;

interface InboxRecord {
  readonly event: IncomingEvent;
  readonly acceptedAt: number;
  readonly isClosed?: true;
  /** Only the key is left of the event: it was answered, and its author wants it forgotten. */
  readonly isForgotten?: true;
}

/**
 * The inbox over a key-value store. The entry under an event's key is the dedupe record and the work to do in
 * one; the ranking of open keys changes in the same atomic write, so neither can be lost without the other and
 * `listOpen` never walks what is answered.
 */
export function createInbox({ store, log }: { readonly store: KeyValueStore; readonly log: Log }): Inbox {
  let lastTicket = 0;
  const at = (key: string) => ({ space: "inbox", key }) as const;
  const turnAt = (key: string) => ({ space: "turn", key }) as const;

  const read = async (keys: readonly string[]) => {
    const [records, turns] = await Promise.all([
      store.getMany<InboxRecord>("inbox", keys),
      store.getMany<TurnProgress>("turn", keys),
    ]);
    return keys.map((key, index) => ({ key, record: records[index], turn: turns[index] }));
  };

  return {
    async accept(event) {
      const acceptedAt = Date.now();
      // Finer than the clock: what arrives within one millisecond keeps its order.
      const ticket = Math.max(acceptedAt * 1000, lastTicket + 1);
      lastTicket = ticket;
      const record: InboxRecord = { event, acceptedAt };
      const taken = await store.writeIfAbsent(
        [at(event.key)],
        [
          { kind: "set", at: at(event.key), value: record },
          { kind: "add-member", index: indexes.inbox, member: event.key, score: ticket },
        ],
      );
      return taken === undefined ? "accepted" : "duplicate";
    },
    async saveTurn(turn) {
      const [key] = turn.keys;
      if (key === undefined) return;
      await store.write([{ kind: "set", at: turnAt(key), value: turn, ttlMs: turnTtlMs }]);
    },
    async close(keys) {
      const changes: Change[] = [];
      for (const { key, record, turn } of await read(keys)) {
        changes.push({ kind: "remove-member", index: indexes.inbox, member: key });
        if (record !== undefined)
          changes.push({ kind: "set", at: at(key), value: { ...record, isClosed: true }, ttlMs: dayMs });
        if (turn !== undefined) changes.push({ kind: "set", at: turnAt(key), value: turn, ttlMs: dayMs });
      }
      await store.write(changes);
    },
    async reopen(key) {
      const [found] = await read([key]);
      if (found?.record === undefined || found.record.isForgotten === true) return undefined;
      const { event, acceptedAt } = found.record;
      const turn = found.turn;
      await store.write([
        { kind: "set", at: at(key), value: { event, acceptedAt } satisfies InboxRecord },
        { kind: "add-member", index: indexes.inbox, member: key, score: acceptedAt * 1000 },
        ...(turn === undefined
          ? []
          : [{ kind: "set", at: turnAt(key), value: turn, ttlMs: turnTtlMs } as const]),
      ]);
      return toEntry({ event, acceptedAt }, turn);
    },
    async lookUp(keys) {
      const found = await read(keys);
      return found.flatMap(({ record, turn }) =>
        record === undefined || record.isForgotten === true ? [] : [toEntry(record, turn)],
      );
    },
    async withdraw(keys) {
      const found = await read(keys);
      await store.write(
        found.flatMap(({ key, record }): Change[] => [
          { kind: "remove-member", index: indexes.inbox, member: key },
          { kind: "set", at: at(key), value: toForgotten(key, record), ttlMs: dayMs },
          { kind: "delete", at: turnAt(key) },
        ]),
      );
      await store.backend.scrub();
    },
    async isOpen(key) {
      const record = await store.get<InboxRecord>("inbox", key);
      return record !== undefined && record.isClosed !== true;
    },
    async listOpen() {
      const entries: InboxEntry[] = [];
      const lost: Change[] = [];
      for (let offset = 0; ; offset += 500) {
        const page = { order: "lowest-first", offset, max: 500 } as const;
        const keys = (await store.backend.readIndex(indexes.inbox, page)).map(({ member }) => member);
        if (keys.length === 0) break;
        for (const { key, record, turn } of await read(keys)) {
          if (record !== undefined && record.isClosed !== true) entries.push(toEntry(record, turn));
          else if (record === undefined)
            lost.push({ kind: "remove-member", index: indexes.inbox, member: key });
        }
      }
      if (lost.length > 0) {
        log.error(
          { entries: lost.length },
          "accepted events are gone from the store: was it emptied or does it evict?",
        );
        await store.write(lost);
      }
      return entries;
    },
  };
}

/**
 * Takes the content out of answered events; their keys still answer `duplicate`. Events that are not answered yet
 * stay: the request to forget is among them. Walks the whole inbox.
 */
export async function forgetEvents(
  store: KeyValueStore,
  isMeant: (event: IncomingEvent) => boolean,
): Promise<void> {
  for await (const key of store.backend.keys("inbox")) {
    const record = await store.get<InboxRecord>("inbox", key);
    if (record?.isClosed !== true || record.isForgotten === true || !isMeant(record.event)) continue;
    await store.write([
      { kind: "set", at: { space: "inbox", key }, value: toForgotten(key, record), ttlMs: dayMs },
      { kind: "delete", at: { space: "turn", key } },
    ]);
  }
}

/** What is left of an event: its key, so that a late delivery is noticed. */
function toForgotten(key: string, record: InboxRecord | undefined): InboxRecord {
  const bare: IncomingEvent = {
    kind: "message",
    key,
    platform: record?.event.platform ?? "",
    conversationId: "",
    author: { id: "", name: "" },
    sentAt: record?.event.sentAt ?? 0,
    address: {},
    text: "",
    attachments: [],
  };
  return { event: bare, acceptedAt: record?.acceptedAt ?? 0, isClosed: true, isForgotten: true };
}

function toEntry({ event, acceptedAt }: InboxRecord, turn: TurnProgress | undefined): InboxEntry {
  return turn === undefined ? { event, acceptedAt } : { event, acceptedAt, turn };
}
