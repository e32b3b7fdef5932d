import { storedIn, type IncomingEvent } from "../../core/events.ts";

interface Flying {
  readonly event: IncomingEvent;
  /** The number of the mark after which it was stored. */
  storedAt: number | undefined;
}

/** The events that this process has accepted, or found open, and that are not over. */
export function createInFlightEvents() {
  const events = new Map<string, Flying>();
  let marks = 0;
  return {
    has: (key: string): boolean => events.has(key),
    /** Counts an event before it is durable, so that many at once cannot exceed limits together. */
    add(event: IncomingEvent): void {
      if (!events.has(event.key)) events.set(event.key, { event, storedAt: undefined });
    },
    /** The event is durable: a later look at the store that does not find it open says that it is over. */
    stored(key: string): void {
      const flying = events.get(key);
      if (flying !== undefined) flying.storedAt ??= marks;
    },
    delete(key: string): void {
      events.delete(key);
    },
    /** Begins a look at the store. */
    mark: (): number => ++marks,
    /** Knows the events of a conversation that a look has found open, and forgets the others. */
    keepOnly(conversationId: string, open: readonly IncomingEvent[], mark: number): void {
      const keys = new Set(open.map(({ key }) => key));
      for (const event of open) if (!events.has(event.key)) events.set(event.key, { event, storedAt: 0 });
      for (const [key, { event, storedAt }] of events)
        if (storedIn(event) === conversationId && storedAt !== undefined && storedAt < mark && !keys.has(key))
          events.delete(key);
    },
    get size(): number {
      return events.size;
    },
    /** The number of one person's events in flight. */
    countOf: (authorId: string): number =>
      [...events.values()].filter(({ event }) => event.author.id === authorId).length,
    /** When the person's first event in flight of a conversation was sent. */
    askedAt: (conversationId: string, authorId: string): number | undefined =>
      [...events.values()].find(
        ({ event }) => event.conversationId === conversationId && event.author.id === authorId,
      )?.event.sentAt,
  };
}
