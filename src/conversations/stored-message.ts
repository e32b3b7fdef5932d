import type { StoredMessage } from "../core/storage.ts";

/** What is left of an erased message: its position stays taken, so that the numbering has no gap. */
export interface Tombstone {
  readonly forgotten: true;
  /** The message's id, which stays known. */
  readonly id: string;
}

/** A message as version 1 of the store wrote it: turn and attempt in its id, a failure as its last notice. */
type MessageV1 = Omit<StoredMessage, "turnKey" | "attempt" | "failure"> & { readonly turnKey?: undefined };

/** The value of a slot. */
export type Slot = StoredMessage | MessageV1 | Tombstone;

/** The message in a slot, in today's form; `undefined` when the slot is free, expired or erased. */
export function toMessage(slot: Slot | undefined): StoredMessage | undefined {
  if (slot === undefined || "forgotten" in slot) return undefined;
  return slot.turnKey === undefined ? fromV1(slot) : slot;
}

function fromV1(message: MessageV1): StoredMessage {
  const [, key = message.id, , attempt] = /^(.*)\/(user|assistant\/(\d+))$/s.exec(message.id) ?? [];
  const { notices = [], ...others } = message;
  const isFailed = message.outcome === "failed" && notices.length > 0;
  return {
    ...others,
    turnKey: key,
    ...(attempt === undefined ? {} : { attempt: Number(attempt) }),
    ...(isFailed ? { failure: notices.at(-1) ?? "" } : {}),
    ...(message.notices === undefined ? {} : { notices: isFailed ? notices.slice(0, -1) : notices }),
  };
}
