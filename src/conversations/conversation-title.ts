import type { StoredMessage } from "../core/storage.ts";
import { toTitle } from "../support/title.ts";

/** The title of a conversation that has none of its own: the beginning of its first message, or a file's name. */
export function toConversationTitle(first: Pick<StoredMessage, "parts"> | undefined): string {
  for (const part of first?.parts ?? []) {
    const title = toTitle("text" in part ? part.text : "name" in part ? part.name : "");
    if (title !== "") return title;
  }
  return "Conversation";
}
