import type { ConversationHistory, Receiver } from "../../../core/receiver.ts";
import type { Feeds } from "../feed.ts";
import { accountAuthorId, toAccountPerson } from "../address.ts";
import type { Uploads } from "../uploads.ts";
import type { Account, Accounts } from "./accounts.ts";

/** The options of {@link eraseRemoved}. */
interface AccountErasureOptions {
  readonly accounts: Accounts;
  readonly receiver: Pick<Receiver, "changed">;
  readonly history: Pick<ConversationHistory, "conversations">;
  readonly uploads: Pick<Uploads, "removeOf">;
  readonly feeds: Feeds;
}

/**
 * Erases the chats, settings, counts and files of accounts that are to be erased, then the accounts. It is
 * idempotent: the next call completes what was interrupted. Returns how many accounts there were.
 * @throws ParleyError `store-unavailable`
 */
export async function eraseRemoved(options: AccountErasureOptions): Promise<number> {
  const removed = await options.accounts.erasing();
  for (const account of removed) await erase(account, options);
  return removed.length;
}

async function erase(account: Pick<Account, "id" | "name">, options: AccountErasureOptions): Promise<void> {
  const { accounts, receiver, history, uploads, feeds } = options;
  const { conversationPrefix } = toAccountPerson(account);
  const erased = new Set<string>();
  for (;;) {
    // Private calls have conversations of their own, whose ids begin so too.
    const listed = await history.conversations(conversationPrefix);
    const left = listed.filter(({ conversationId }) => !erased.has(conversationId));
    if (left.length === 0) break;
    for (const { conversationId } of left) {
      await receiver.changed({ kind: "delete-conversation", conversationId });
      feeds.of(conversationId).clear();
      erased.add(conversationId);
    }
  }
  const authorId = accountAuthorId(account.id);
  await uploads.removeOf(authorId);
  await receiver.changed({ kind: "delete-people", idPrefix: authorId });
  await accounts.forget(account.id);
}
