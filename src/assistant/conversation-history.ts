import type { ConversationHistory } from "../core/platform.ts";
import type { Archive, Conversations } from "../core/storage.ts";
import { withoutRetriedAttempts } from "./turn/stored-messages.ts";

/** Most conversations that are listed at once, where nobody asks for more. */
const maxListed = 200;

/** The history as people see it: of a retried turn only the last attempt. @see {@link ConversationHistory} */
export function createConversationHistory(
  conversations: Conversations,
  archive: Pick<Archive, "exportConversation">,
  restored: ConversationHistory["restored"],
): ConversationHistory {
  return {
    restored,
    async history(conversationId, { maxMessages }) {
      return withoutRetriedAttempts(await conversations.recent(conversationId, { maxMessages }));
    },
    conversations: (prefix, query) => conversations.list(prefix, { max: maxListed, ...query }),
    export: (conversationId) => archive.exportConversation(conversationId),
    search: (prefix, search) => conversations.search(prefix, search),
    readBlob: (conversationId, hash) => conversations.getBlob(conversationId, hash),
  };
}
