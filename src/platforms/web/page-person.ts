import { AsyncLocalStorage } from "node:async_hooks";
import type { Author, Origin } from "../../core/events.ts";

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
