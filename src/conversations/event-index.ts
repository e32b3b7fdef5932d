import type { IncomingEvent } from "../core/events.ts";
import type { IndexChange } from "./backend.ts";
import { answeredTtlMs } from "./inbox-record.ts";
import { type KeyValueStore, writeBatches } from "./key-value.ts";
import { indexes } from "./store-keys.ts";
import { steadyClock } from "../support/steady-clock.ts";

const pageSize = 500;

/** What the indexes of accepted events need to know of one. */
export type IndexedEvent = Pick<IncomingEvent, "key" | "conversationId" | "author">;

/** Lists an event as open. `order`: its position among the open events. */
export function indexOpen({ key, conversationId }: IndexedEvent, order: number): IndexChange[] {
  return [
    { kind: "add-member", index: indexes.openEvents, member: key, score: order },
    { kind: "add-member", index: indexes.openEventsIn(conversationId), member: key, score: order },
  ];
}

/** Lists a new event as the last open one, whatever the clocks of the processes say. */
export function indexAccepted({ key, conversationId }: IndexedEvent, order: number): IndexChange[] {
  return [
    { kind: "append-member", index: indexes.openEvents, member: key, score: order },
    { kind: "append-member", index: indexes.openEventsIn(conversationId), member: key, score: order },
  ];
}

/** Lists an event as open no more. */
export function unindexOpen({ key, conversationId }: IndexedEvent): IndexChange[] {
  return [
    { kind: "remove-member", index: indexes.openEvents, member: key },
    { kind: "remove-member", index: indexes.openEventsIn(conversationId), member: key },
  ];
}

/** Lists an event as answered until its entry expires, and drops from the same indexes what has expired before. */
export function indexAnswered(event: IndexedEvent, ttlMs: number): IndexChange[] {
  const now = steadyClock.earliest();
  const expires = steadyClock.latest() + ttlMs;
  // Others in them may expire within a day: what came before it.
  const sweptAt = Math.min(expires, steadyClock.latest() + answeredTtlMs);
  return answeredIndexes(event).flatMap((index): IndexChange[] => [
    { kind: "trim-index", index, maxScore: now },
    { kind: "add-member", index, member: event.key, score: expires },
    // A lower score never replaces a higher one.
    { kind: "remove-member", index: indexes.expiringIndexes, member: index },
    { kind: "add-member", index: indexes.expiringIndexes, member: index, score: sweptAt },
  ]);
}

/** Lists an answered event with an earlier expiry than before. */
export function expireAnswered(event: IndexedEvent, ttlMs: number): IndexChange[] {
  const expires = steadyClock.latest() + ttlMs;
  return answeredIndexes(event).flatMap((index): IndexChange[] => [
    // A lower score never replaces a higher one.
    { kind: "remove-member", index, member: event.key },
    { kind: "add-member", index, member: event.key, score: expires },
  ]);
}

/** Lists an event as answered no more. */
export function unindexAnswered(event: IndexedEvent): IndexChange[] {
  return answeredIndexes(event).map((index) => ({ kind: "remove-member", index, member: event.key }));
}

function answeredIndexes({ conversationId, author }: IndexedEvent): string[] {
  return [indexes.answeredEventsIn(conversationId), indexes.answeredEventsBy(author.id)];
}

/** Removes what has expired from the indexes of answered events. `now` in Unix ms. */
export async function sweepEventIndexes(store: KeyValueStore, now: number): Promise<void> {
  const names: string[] = [];
  for (let offset = 0; ; offset += pageSize) {
    const page = { order: "lowest-first", offset, max: pageSize } as const;
    const found = await store.backend.readIndex(indexes.expiringIndexes, page);
    for (const { member, score } of found) if (score <= now) names.push(member);
    if (found.length < pageSize || (found.at(-1)?.score ?? 0) > now) break;
  }
  if (names.length === 0) return;
  await writeBatches(
    store,
    names.map((index) => ({ kind: "trim-index", index, maxScore: now })),
  );
  // An index that is not empty is looked at again when its next member expires.
  const left: IndexChange[] = [];
  for (const name of names) {
    const [next] = await store.backend.readIndex(name, { order: "lowest-first", offset: 0, max: 1 });
    if (next !== undefined)
      left.push({
        kind: "add-member",
        index: indexes.expiringIndexes,
        member: name,
        score: Math.max(next.score, now + 1),
      });
  }
  await writeBatches(store, left);
  // By score, not by name: an event answered meanwhile has raised the score of its index.
  await store.write([{ kind: "trim-index", index: indexes.expiringIndexes, maxScore: now }]);
}
