import type { ConversationSettings } from "../../core/storage.ts";
import type { TurnDependencies } from "./turn.ts";

/**
 * Stores in which places a conversation lies, so that it is erased with them, where its first message has not done so. Must
 * not throw: a failure is logged, and the next turn tries again. `settings`: as they were; read where they lack places.
 */
export async function storePlaces(
  { conversations, log }: Pick<TurnDependencies, "conversations" | "log">,
  conversationId: string,
  within: readonly string[] | undefined,
  settings?: ConversationSettings,
): Promise<void> {
  if (within === undefined || settings?.within !== undefined) return;
  try {
    const stored = await conversations.settings(conversationId);
    if (stored.within === undefined) await conversations.savePlaces(conversationId, within);
  } catch (error) {
    log.warn({ conversation: conversationId, err: error }, "places of a conversation not stored");
  }
}
