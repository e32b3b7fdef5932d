import type { RoomState } from "../../core/room.ts";
import type { Conversations } from "../../core/storage.ts";

/** Marks a thread that people had before the bot was called in. Changes nothing where the conversation is known. */
export async function markPeoplesThread(conversations: Conversations, conversationId: string): Promise<void> {
  const { room } = await conversations.settings(conversationId);
  // What was stored by versions without the mark stays what it is.
  if (room !== undefined || (await conversations.exists(conversationId))) return;
  await conversations.saveSettings(conversationId, { room: { isPeoples: true } });
}

/** Changes what is known of a room and keeps the rest. Only the conversation's own turns do so, one at a time. */
export async function changeRoomState(
  conversations: Pick<Conversations, "settings" | "noteSettings">,
  conversationId: string,
  change: RoomState,
): Promise<void> {
  const { room } = await conversations.settings(conversationId);
  await conversations.noteSettings(conversationId, { room: { ...room, ...change } });
}
