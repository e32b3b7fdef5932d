import type { ReplyAddress } from "../../core/events.ts";

/** The address of a reply on the page: its conversation and the id that the page gave the message it answers. */
export interface WebAddress {
  readonly conversationId: string;
  readonly replyId: string;
  /** True for a private call: nothing of it becomes part of the conversation. */
  readonly isPrivate?: true;
}

/** @throws TypeError when another platform made the address */
export function toWebAddress(address: ReplyAddress): WebAddress {
  const { conversationId, replyId, isPrivate } = address;
  if (typeof conversationId !== "string" || typeof replyId !== "string") {
    throw new TypeError("not an address of the web platform");
  }
  return { conversationId, replyId, ...(isPrivate === true ? { isPrivate } : {}) };
}
