import type { ConversationSettings } from "../../core/storage.ts";
import type { TurnDependencies } from "./turn.ts";

/**
 * Stores once per conversation in which places it lies, so that it is erased with them. Must not throw: a failure is
 * logged, and the next turn tries again. `settings`: as they are stored; read where they are not given.
 */
export async function storePlaces(
  { conversations, log }: Pick<TurnDependencies, "conversations" | "log">,
  conversationId: string,
  within: readonly string[] | undefined,
  settings?: ConversationSettings,
): Promise<void> {
  if (within === undefined) return;
  try {
    const stored = settings ?? (await conversations.settings(conversationId));
    if (stored.within === undefined) await conversations.savePlaces(conversationId, within);
  } catch (error) {
    log.warn({ conversation: conversationId, err: error }, "places of a conversation not stored");
  }
}
