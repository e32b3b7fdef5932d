import type { Actor } from "../core/access.ts";
import type { ConversationLabels } from "../core/conversation-lists.ts";
import type { Conversations } from "../core/storage.ts";

const maxNameChars = 100;

/** @see {@link Receiver.labelConversation} */
export function createLabelConversation({
  conversations,
  expectAllowed,
}: {
  readonly conversations: Pick<Conversations, "exists" | "saveSettings">;
  readonly expectAllowed: (by: Actor) => Promise<void>;
}) {
  return async (
    conversationId: string,
    { name, isPinned }: ConversationLabels,
    by: Actor,
  ): Promise<boolean> => {
    await expectAllowed(by);
    if (!(await conversations.exists(conversationId))) return false;
    await conversations.saveSettings(conversationId, {
      ...(name === undefined ? {} : { name: toName(name) }),
      ...(isPinned === undefined ? {} : { isPinned: isPinned || undefined }),
    });
    return true;
  };
}

/** On one line; `undefined`: there is nothing to show. */
function toName(text: string): string | undefined {
  const line = text.replaceAll(/\s+/g, " ").trim();
  return line === "" ? undefined : Array.from(line).slice(0, maxNameChars).join("");
}
