import type { ConversationHistory } from "../core/platform.ts";
import type { Inbox } from "../core/inbox.ts";
import type { Archive, Conversations } from "../core/storage.ts";
import { withoutRetriedAttempts } from "./turn/stored-messages.ts";

/** Most conversations that are listed at once, where nobody asks for more. */
const maxListed = 200;

/** The history as people see it: of a retried turn only the last attempt. @see {@link ConversationHistory} */
export function createConversationHistory(
  conversations: Conversations,
  archive: Pick<Archive, "exportConversation">,
  inbox: Pick<Inbox, "listOpenIn">,
  restored: ConversationHistory["restored"],
): ConversationHistory {
  return {
    restored,
    async history(conversationId, { maxMessages }) {
      return withoutRetriedAttempts(await conversations.recent(conversationId, { maxMessages }));
    },
    async openQuestions(conversationId) {
      const open = await inbox.listOpenIn(conversationId);
      const begun = new Set(open.flatMap(({ turn }) => turn?.keys ?? []));
      return open
        .filter(({ isWithdrawn }) => isWithdrawn !== true)
        .map(({ event }) => ({ event, hasBegun: begun.has(event.key) }));
    },
    conversations: (prefix, query) => conversations.list(prefix, { max: maxListed, ...query }),
    export: (conversationId) => archive.exportConversation(conversationId),
    search: (prefix, search) => conversations.search(prefix, search),
    readBlob: (conversationId, hash) => conversations.getBlob(conversationId, hash),
  };
}
