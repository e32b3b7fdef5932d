import type { ConversationHistory, Receiver } from "../../../core/platform.ts";
import { toChannelPlace, toChannelTerm, toConversationPrefix } from "../address.ts";

/**
 * Reports a deleted channel to the receiver. Conversations that are stored without `within` are found by the
 * channel in their ids.
 * @throws ParleyError `store-unavailable`
 */
export async function reportDeletedChannel(
  channel: string,
  teamId: string,
  receiver: Pick<Receiver, "placeDeleted" | "conversationDeleted">,
  history: Pick<ConversationHistory, "conversations">,
): Promise<void> {
  await receiver.placeDeleted(toChannelPlace(teamId, channel));
  await deleteConversations(toConversationPrefix(teamId, channel), receiver, history);
  // The settings of the channel are held under the name that access rules have for it.
  await receiver.placeDeleted(toChannelTerm(channel));
}

/**
 * Reports every conversation whose id begins with `prefix` as deleted, and calls `before` with each first.
 * @throws ParleyError `store-unavailable`
 */
export async function deleteConversations(
  prefix: string,
  receiver: Pick<Receiver, "conversationDeleted">,
  history: Pick<ConversationHistory, "conversations">,
  before: (conversationId: string) => Promise<void> = () => Promise.resolve(),
): Promise<void> {
  const reported = new Set<string>();
  for (;;) {
    // The list is limited: what is behind its end comes up when its first part is deleted.
    const listed = await history.conversations(prefix);
    const left = listed.filter(({ conversationId }) => !reported.has(conversationId));
    if (left.length === 0) return;
    for (const { conversationId } of left) {
      reported.add(conversationId);
      await before(conversationId);
      await receiver.conversationDeleted(conversationId);
    }
  }
}
