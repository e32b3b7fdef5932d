import type { TurnProgress } from "../core/inbox.ts";
import { expireAnswered } from "./event-index.ts";
import { answeredTtlMs, editsOf, type InboxRecord } from "./inbox-record.ts";
import type { Change, KeyValueStore } from "./key-value.ts";
import { entryAt, indexes } from "./store-keys.ts";
import { steadyClock } from "../support/steady-clock.ts";

/** Most earlier events that are looked at for one answered turn; the rest follows with the next one. */
const maxEarlier = 100;

/** The turn that has just been answered. */
export interface AnsweredBefore {
  readonly conversationId: string;
  /** Keys of its events. */
  readonly keys: readonly string[];
  /** `InboxRecord.acceptedAt` of the first of them. */
  readonly acceptedAt: number;
}

/**
 * Lets the earlier turns of a conversation expire within a day: once a later message is answered, people can no longer have
 * them answered anew. Without that everything people have ever sent would be stored twice. One read where there are none.
 * @throws ParleyError `store-unavailable`, `store-corrupt`
 */
export async function letEarlierTurnsExpire(store: KeyValueStore, answered: AnsweredBefore): Promise<void> {
  const { conversationId, keys, acceptedAt } = answered;
  const index = indexes.answeredEventsIn(conversationId);
  const minScore = steadyClock.latest() + answeredTtlMs + 1;
  const page = { order: "lowest-first", minScore, offset: 0, max: maxEarlier } as const;
  const kept = (await store.backend.readIndex(index, page)).map(({ member }) => member);
  const others = kept.filter((key) => !keys.includes(key));
  if (others.length === 0) return;
  const [records, turns] = await Promise.all([
    store.getMany<InboxRecord>("inbox", others),
    store.getMany<TurnProgress>("turn", others),
  ]);
  for (const [position, key] of others.entries()) {
    const record = records[position];
    if (record === undefined) await store.write([{ kind: "remove-member", index, member: key }], "soon");
    else if (record.isClosed === true && record.acceptedAt < acceptedAt)
      await letExpire(store, record, turns[position]);
  }
}

/** Changes nothing where the event has been edited, or its turn is to run again, since it was read. */
async function letExpire(
  store: KeyValueStore,
  record: InboxRecord,
  turn: TurnProgress | undefined,
): Promise<void> {
  const { key } = record.event;
  const reopened = [entryAt.edit(key, editsOf(record) + 1), entryAt.redo(key, turn?.attempts ?? 1)];
  const changes: Change[] = [
    { kind: "keep", at: entryAt.event(key), ttlMs: answeredTtlMs },
    { kind: "keep", at: entryAt.turn(key), ttlMs: answeredTtlMs },
    ...expireAnswered(record.event, answeredTtlMs),
  ];
  await store.writeIf(reopened, changes, "soon");
}
