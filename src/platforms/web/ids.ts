import type { StoredMessage } from "../../core/storage.ts";
import type { WebAddress } from "./address.ts";

/** All ids of the web platform are made and read here. */

/** Pattern of the ids that pages make for conversations and messages. */
export const pageIdPattern = "[a-z0-9]{16,40}";

const conversationPrefix = "web:";
const conversationPattern = new RegExp(`^${conversationPrefix}${pageIdPattern}$`);
/** Stored answers are numbered by attempt: `<turn>/assistant/2`. */
const answerSuffix = /\/assistant(?:\/\d+)?$/;

/** `pageId`: the conversation's id in the page's addresses. */
export function toConversationId(pageId: string): string {
  return `${conversationPrefix}${pageId}`;
}

/** The conversation's id in the page's addresses. */
export function toPageId(conversationId: string): string {
  return conversationId.slice(conversationPrefix.length);
}

/** False for the conversations that private calls are stored in. */
export function isPageConversation(conversationId: string): boolean {
  return conversationPattern.test(conversationId);
}

/** Prefix of the ids of all conversations that private calls of this conversation are stored in. */
export function privateCallPrefix(conversationId: string): string {
  return `${conversationId}:`;
}

/** The key of the event that a sent message becomes, and the id of the conversation a private call is stored in. */
export function toEventKey({ conversationId, replyId }: WebAddress): string {
  return `${privateCallPrefix(conversationId)}${replyId}`;
}

/** The item of a sent message. */
export function toUserItemId(eventKey: string): string {
  return `${eventKey}/user`;
}

/** The item of the answer to a turn, the same for all attempts. `turnKey`: key of the turn's first event. */
export function toAnswerItemId(turnKey: string): string {
  return `${turnKey}/assistant`;
}

/** The item of a stored message: the same as before it was stored. */
export function toItemId({ id, role }: Pick<StoredMessage, "id" | "role">): string {
  return role === "assistant" ? toAnswerItemId(toTurnKey(id)) : id;
}

/** The key of the turn that a stored message or an item belongs to. */
export function toTurnKey(id: string): string {
  return id.replace(/\/user$/, "").replace(answerSuffix, "");
}
