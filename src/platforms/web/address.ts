import type { ReplyAddress } from "../../core/events.ts";
import { conversationPrefixOf, currentPerson, sharedPerson } from "./page-person.ts";

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

/** All ids of the web platform are made and read here. */

/** Pattern of the ids that pages make for conversations and messages. */
export const pageIdPattern = "[a-z0-9]{16,40}";

const wholePageId = new RegExp(`^${pageIdPattern}$`);

/**
 * The conversation of the person who sends the request; nobody else has one of this id.
 * @param pageId the conversation's id in the page's addresses
 * @throws Error outside of a request
 */
export function toConversationId(pageId: string): string {
  return `${currentPerson().conversationPrefix}${pageId}`;
}

/** Another conversation of the person who has this one. */
export function toSiblingId(conversationId: string, pageId: string): string {
  return `${conversationPrefixOf(conversationId)}${pageId}`;
}

/** The conversation's id in the page's addresses. */
export function toPageId(conversationId: string): string {
  return conversationId.slice(conversationPrefixOf(conversationId).length);
}

/**
 * Whether it is a conversation of the person who sends the request. False for the conversations that private calls are
 * stored in.
 */
export function isPageConversation(conversationId: string): boolean {
  const pageId = toPageId(conversationId);
  return wholePageId.test(pageId) && conversationId === toConversationId(pageId);
}

/** Narrows a list of the conversations that begin with the person's prefix: others' are not read. */
export function withoutOthers(): { readonly without?: string } {
  return currentPerson().conversationPrefix === sharedPerson.conversationPrefix ? { without: "web:@" } : {};
}

/** Prefix of the ids of all conversations that private calls of this conversation are stored in. */
export function privateCallPrefix(conversationId: string): string {
  return `${conversationId}:`;
}

/** The key of the event that a sent message becomes, and the id of the conversation a private call is stored in. */
export function toEventKey({ conversationId, replyId }: WebAddress): string {
  return `${privateCallPrefix(conversationId)}${replyId}`;
}

/**
 * The item of a message or answer, the same before and after it is stored, and for all attempts at an answer.
 * `turnKey`: key of the message's event; for an answer, of the turn's first event.
 */
export function toItemId(turnKey: string, role: "user" | "assistant"): string {
  return `${turnKey}/${role}`;
}

/** The turn key in the id of an item. */
export function toTurnKey(id: string): string {
  return id.replace(/\/(?:user|assistant)$/, "");
}
