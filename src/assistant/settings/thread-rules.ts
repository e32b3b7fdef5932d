import type { Receiver } from "../../core/platform.ts";
import type { Inbox } from "../../core/inbox.ts";
import type { Conversations } from "../../core/storage.ts";
import type { PlaceRules } from "./place-rules.ts";

/**
 * Returns {@link Receiver.answersTo}. Conversations of versions that did not mark people's threads have no mark: what was
 * answered whole then still is, until `/dismiss`.
 */
export function createThreadRules(options: {
  readonly conversations: Pick<Conversations, "settings" | "exists">;
  readonly inbox: Pick<Inbox, "listOpenIn">;
  readonly rules: Pick<PlaceRules, "settingsOf">;
}): Receiver["answersTo"] {
  const { conversations, inbox, rules } = options;
  return async (conversationId, place) => {
    const stored = await conversations.settings(conversationId);
    const { answerTo, room } = stored;
    if (answerTo !== undefined) return answerTo;
    if ((await rules.settingsOf(place)).answerTo === "every-message") return "every-message";
    if (room?.isPeoples === true) return undefined;
    const isStored = Object.keys(stored).length > 0 || (await conversations.exists(conversationId));
    if (isStored) return "every-message";
    // Its first message is accepted, and its turn has not stored anything yet.
    const open = await inbox.listOpenIn(conversationId);
    return open.some(({ event }) => event.inRoom !== true) ? "every-message" : undefined;
  };
}
