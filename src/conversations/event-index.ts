import type { IncomingEvent } from "../core/events.ts";
import type { IndexChange } from "./backend.ts";
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
  return answeredIndexes(event).flatMap((index): IndexChange[] => [
    { kind: "trim-index", index, maxScore: now },
    { kind: "add-member", index, member: event.key, score: expires },
    { kind: "add-member", index: indexes.expiringIndexes, member: index, score: expires },
  ]);
}

/** Lists an event as answered no more. */
export function unindexAnswered(event: IndexedEvent): IndexChange[] {
  return answeredIndexes(event).map((index) => ({ kind: "remove-member", index, member: event.key }));
}

function answeredIndexes({ conversationId, author }: IndexedEvent): string[] {
  return [indexes.answeredEventsIn(conversationId), indexes.answeredEventsBy(author.id)];
}

/** Removes the indexes of answered events whose last member has expired. `now` in Unix ms. */
export async function sweepEventIndexes(store: KeyValueStore, now: number): Promise<void> {
  const expired: IndexChange[] = [];
  for (let offset = 0; ; offset += pageSize) {
    const page = { order: "lowest-first", offset, max: pageSize } as const;
    const found = await store.backend.readIndex(indexes.expiringIndexes, page);
    for (const { member, score } of found)
      if (score <= now) expired.push({ kind: "trim-index", index: member, maxScore: now });
    if (found.length < pageSize || (found.at(-1)?.score ?? 0) > now) break;
  }
  if (expired.length === 0) return;
  await writeBatches(store, expired);
  // By score, not by name: an event answered meanwhile has raised the score of its index.
  await store.write([{ kind: "trim-index", index: indexes.expiringIndexes, maxScore: now }]);
}
