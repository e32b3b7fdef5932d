import type { Json } from "../../core/events.ts";
import { toEventKey } from "./address.ts";

/** One posted message of a reply, as saved in its address. `isOwn`: an ordinary message, not an interaction's. */
export interface MessageRef {
  readonly channelId: string;
  readonly messageId: string;
  readonly isOwn: boolean;
  /** The first response of its interaction: its token edits that one by `@original` alone. */
  readonly isOriginal?: boolean;
}

/** A saved reference. */
export function fromRef(ref: Json): MessageRef {
  return ref as unknown as MessageRef;
}

/** The inverse of {@link fromRef}. */
export function toRef(ref: MessageRef): Json {
  return ref as unknown as Json;
}

/** The event key of a posted message, by its saved reference. */
export function toRefKey(ref: Json): string {
  return toEventKey(fromRef(ref).messageId);
}
