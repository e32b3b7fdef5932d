import type { ReplyAddress, Author, Origin } from "../../core/events.ts";
import { AsyncLocalStorage } from "node:async_hooks";

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

/** Somebody who uses the page. */
export interface PagePerson {
  readonly author: Author;
  /** The origin of an account. It is absent for the operator, whom no access rule lists. */
  readonly origin?: Origin;
  /** The ids of this person's conversations begin with this, and nobody else's do. */
  readonly conversationPrefix: string;
}

const sharedPrefix = "web:";
const accountPrefix = /^web:@[0-9a-f]{12}:/;

/** Everybody who uses the page without an account counts as one person, the operator. */
export const sharedPerson: PagePerson = {
  author: { id: "web:local", name: "You" },
  conversationPrefix: sharedPrefix,
};

/** Returns the person of an account. `id` is 12 hexadecimal digits, never given to another account. */
export function toAccountPerson({ id, name }: { readonly id: string; readonly name: string }): PagePerson {
  return {
    author: { id: accountAuthorId(id), name },
    // The page is one place, whose settings and budgets hold for everybody there.
    origin: { user: `web:user:${name}`, server: "web", isMember: true, isManager: false },
    conversationPrefix: `${sharedPrefix}@${id}:`,
  };
}

/** Returns the `Author.id` of an account. */
export function accountAuthorId(id: string): string {
  return `${sharedPrefix}@${id}`;
}

/** Returns the prefix of all conversations of the person who has this one. */
export function conversationPrefixOf(conversationId: string): string {
  return accountPrefix.exec(conversationId)?.[0] ?? sharedPrefix;
}

/** Returns the `Author.id` of the person who has a conversation. */
export function ownerOf(conversationId: string): string {
  const [prefix] = accountPrefix.exec(conversationId) ?? [];
  return prefix === undefined ? sharedPerson.author.id : prefix.slice(0, -1);
}

const current = new AsyncLocalStorage<PagePerson>();

/** Runs the handler of a request for the person who sends it. */
export function asPerson<T>(person: PagePerson, work: () => T): T {
  return current.run(person, work);
}

/**
 * Returns who sends the request that the running code handles.
 * @throws Error outside of {@link asPerson}, where nobody is known and no default would be safe
 */
export function currentPerson(): PagePerson {
  const person = current.getStore();
  if (person === undefined) throw new Error("no request of a person is being handled");
  return person;
}
