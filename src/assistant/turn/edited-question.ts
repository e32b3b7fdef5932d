import type { CommandCall, EditedContent, IncomingMessage } from "../../core/events.ts";
import type { MessagePart, StoredMessage } from "../../core/storage.ts";
import { estimatePartsTokens, messageIds } from "./stored-messages.ts";
import type { TurnDependencies } from "./turn.ts";

/** A stored question after an edit: with the new words, without the files that were taken away, and no longer a call. */
export function toEditedQuestion(
  stored: StoredMessage,
  { text, attachments }: EditedContent,
  editedAt: number,
): StoredMessage {
  const isKept = (part: MessagePart): boolean => {
    if (part.kind === "text") return false;
    if (attachments === undefined) return true;
    return attachments.some(({ name, linkUrl }) =>
      part.kind === "image-link" ? linkUrl === part.url : name === part.name,
    );
  };
  const words: MessagePart[] = text === "" ? [] : [{ kind: "text", text }];
  const parts = [...words, ...stored.parts.filter(isKept)];
  const { call: _asItWas, ...kept } = stored;
  return { ...kept, parts, estimatedTokens: estimatePartsTokens(parts), editedAt };
}

/**
 * Stores the edit of a call's message in the place of what it said before, which is erased. Can be repeated.
 * @throws ParleyError `store-unavailable`
 */
export async function applyCallEdit(
  { conversations, archive }: Pick<TurnDependencies, "conversations" | "archive">,
  conversationId: string,
  { key, edit, editedTo }: CommandCall,
): Promise<void> {
  const stored = await conversations.find(conversationId, messageIds.user(key));
  if (stored === undefined || edit === undefined || editedTo === undefined) return;
  if (edit.at <= (stored.editedAt ?? -Infinity)) return;
  await archive.replaceMessage(conversationId, toEditedQuestion(stored, editedTo, edit.at));
}

/**
 * Stores the edit of a question in the place of what it said before, which is erased. Resolves to the question as it is
 * stored then; `undefined`: it is not stored. Can be repeated.
 * @throws ParleyError `store-unavailable`
 */
export async function applyEdit(
  { conversations, archive }: Pick<TurnDependencies, "conversations" | "archive">,
  conversationId: string,
  message: IncomingMessage,
): Promise<StoredMessage | undefined> {
  const stored = await conversations.find(conversationId, messageIds.user(message.key));
  const editedAt = message.edit?.at;
  if (stored === undefined || editedAt === undefined || editedAt <= (stored.editedAt ?? -Infinity))
    return stored;
  const edited = toEditedQuestion(stored, message, editedAt);
  await archive.replaceMessage(conversationId, edited);
  return edited;
}
