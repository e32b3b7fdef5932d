import type { IncomingEvent } from "../core/events.ts";
import type { InboxEntry, TurnProgress } from "../core/storage.ts";

const dayMs = 24 * 60 * 60 * 1000;

/** How long an answered event stays known, so that a late delivery is a duplicate. */
export const answeredTtlMs = dayMs;

/** A turn's progress says where its reply is; it must outlast the longest outage that a start recovers from. */
export const turnTtlMs = 90 * dayMs;

/** An accepted event as it is stored. */
export interface InboxRecord {
  readonly event: IncomingEvent;
  readonly acceptedAt: number;
  readonly isClosed?: true;
  /** Its content was erased. Only the key is left of a closed one. */
  readonly isForgotten?: true;
}

/** Position of an event among the open events; finer than the clock. */
export function orderOf({ acceptedAt }: Pick<InboxRecord, "acceptedAt">): number {
  return acceptedAt * 1000;
}

/** What is left of an open event whose reply is still to be ended: where it is. */
export function toWithdrawn({ event, acceptedAt }: InboxRecord): InboxRecord {
  const { event: erased } = toErased(event.key, undefined);
  const { platform, conversationId, sentAt } = event;
  return { event: { ...erased, platform, conversationId, sentAt }, acceptedAt, isForgotten: true };
}

/** What is left of an erased event: its key, so that a late delivery is a duplicate. */
export function toErased(key: string, record: InboxRecord | undefined): InboxRecord {
  const event: IncomingEvent = {
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
  return { event, acceptedAt: record?.acceptedAt ?? 0, isClosed: true, isForgotten: true };
}

/** A stored event as the port shows it. */
export function toEntry(
  { event, acceptedAt, isForgotten }: InboxRecord,
  turn: TurnProgress | undefined,
): InboxEntry {
  return {
    event,
    acceptedAt,
    ...(turn === undefined ? {} : { turn }),
    ...(isForgotten === true ? { isWithdrawn: true } : {}),
  };
}
