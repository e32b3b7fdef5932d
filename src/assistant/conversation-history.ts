import type { ConversationHistory } from "../core/platform.ts";
import type { Conversations } from "../core/storage.ts";
import { withoutRetriedAttempts } from "./turn/stored-messages.ts";

/** Most conversations that are listed at once. */
const maxListed = 200;

/** The history as people see it: of a retried turn only the last attempt. @see {@link ConversationHistory} */
export function createConversationHistory(
  conversations: Conversations,
  restored: ConversationHistory["restored"],
): ConversationHistory {
  return {
    restored,
    async history(conversationId, { maxMessages }) {
      return withoutRetriedAttempts(await conversations.recent(conversationId, { maxMessages }));
    },
    conversations: (prefix, { without } = {}) => conversations.list(prefix, { max: maxListed, without }),
    readBlob: (conversationId, hash) => conversations.getBlob(conversationId, hash),
  };
}
