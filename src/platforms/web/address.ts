import type { ReplyAddress } from "../../core/events.ts";
import { conversationPrefixOf, currentPerson, sharedPerson } from "./page-person.ts";

/** The address of a reply: its conversation, and the id that the page gave the message it answers. */
export interface WebAddress {
  readonly conversationId: string;
  readonly replyId: string;
  /** True for a private call, of which nothing becomes part of the conversation. */
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

/** The pattern of the ids that pages make for conversations and messages. */
export const pageIdPattern = "[a-z0-9]{16,40}";

const wholePageId = new RegExp(`^${pageIdPattern}$`);

/**
 * Returns the conversation of the person who sends the request. Nobody else has one with this id.
 * @param pageId the conversation's id in the page's addresses
 * @throws Error outside of a request
 */
export function toConversationId(pageId: string): string {
  return `${currentPerson().conversationPrefix}${pageId}`;
}

/** Returns another conversation of the person who has this one. */
export function toSiblingId(conversationId: string, pageId: string): string {
  return `${conversationPrefixOf(conversationId)}${pageId}`;
}

/** Returns the conversation's id in the page's addresses. */
export function toPageId(conversationId: string): string {
  return conversationId.slice(conversationPrefixOf(conversationId).length);
}

/**
 * Whether it is a conversation of the person who sends the request. The conversations that private calls are
 * stored in do not count.
 */
export function isPageConversation(conversationId: string): boolean {
  const pageId = toPageId(conversationId);
  return wholePageId.test(pageId) && conversationId === toConversationId(pageId);
}

/** Narrows a list of the conversations with the person's prefix, so that other people's are not read. */
export function withoutOthers(): { readonly without?: string } {
  return currentPerson().conversationPrefix === sharedPerson.conversationPrefix ? { without: "web:@" } : {};
}

/** Returns the prefix of all conversations that hold private calls of this conversation. */
export function privateCallPrefix(conversationId: string): string {
  return `${conversationId}:`;
}

/** Returns the event key of a sent message, which is also the conversation id of a private call. */
export function toEventKey({ conversationId, replyId }: WebAddress): string {
  return `${privateCallPrefix(conversationId)}${replyId}`;
}

/**
 * Returns the item of a message or answer. It is the same before and after storing, and for all attempts at
 * an answer. `turnKey` is the key of the message's event, or for an answer, of the turn's first event.
 */
export function toItemId(turnKey: string, role: "user" | "assistant"): string {
  return `${turnKey}/${role}`;
}

/** Returns the turn key in the id of an item. */
export function toTurnKey(id: string): string {
  return id.replace(/\/(?:user|assistant)$/, "");
}
