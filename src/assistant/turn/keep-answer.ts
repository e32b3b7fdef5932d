import type { StoredMessage } from "../../core/storage.ts";
import type { Turn, TurnDependencies } from "./turn.ts";

/**
 * Stores an answer. In a turn that runs again it takes the place of the earlier one, whose words and files are gone then.
 * `duplicate`: the answer of another attempt is stored, or it was erased.
 */
export async function keepAnswer(
  { conversations, archive }: Pick<TurnDependencies, "conversations" | "archive">,
  { conversationId, redo }: Pick<Turn, "conversationId" | "redo">,
  message: StoredMessage,
): Promise<"stored" | "duplicate"> {
  if (redo === undefined) {
    if ((await conversations.append(conversationId, message)) === "appended") return "stored";
    const known = await conversations.find(conversationId, message.id);
    // A run that failed in the place of an earlier answer left its failure there.
    if (known?.failure === undefined || message.failure !== undefined) return "duplicate";
  }
  const before = await conversations.find(conversationId, message.id);
  if ((await conversations.replace(conversationId, message)) === "refused") return "duplicate";
  if (before?.parts.some(({ kind }) => kind === "image") === true)
    await archive.removeMessages(conversationId, { ids: [], withLooseFiles: true });
  return "stored";
}
