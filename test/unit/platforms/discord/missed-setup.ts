import type { APIMessage } from "discord.js";
import { ParleyError } from "../../../../src/core/errors.ts";
import type { ConversationHistory } from "../../../../src/core/receiver.ts";
import type { StoredMessage } from "../../../../src/core/storage.ts";
import { createMissedMessages } from "../../../../src/platforms/discord/intake/missed-messages.ts";
import { silentLog } from "../../../support/fakes.ts";
import { createSharedMemory } from "../../../support/memory-records.ts";

export const now = Date.UTC(2026, 5, 1);
export const idAt = (msAgo: number, n = 0) =>
  String((BigInt(now - msAgo - 1_420_070_400_000) << 22n) + BigInt(n));
export const minute = 60_000;

/** Sets up Discord and a store in memory. Each conversation has stored ids and ids in its channel. */
export function setUp(
  conversations: Record<
    string,
    { known: readonly string[]; channel: readonly string[]; within?: readonly string[] }
  >,
  /** The messages that are not only an id. */
  details: Readonly<Record<string, Partial<APIMessage>>> = {},
  restored?: ConversationHistory["restored"],
  /** When the last session began that the store knows of. */
  mark?: number,
) {
  const { records } = createSharedMemory();
  if (mark !== undefined) void records.set("discord:session:0", mark);
  const taken: string[] = [];
  const edited: string[] = [];
  const asked: string[] = [];
  const state = { storeFails: 0, discordFails: 0, concurrent: 0, maxConcurrent: 0 };
  const stopping = new AbortController();
  const missed = createMissedMessages({
    isAnsweredWhole: async (channelId) => channelId === "555",
    holdsConversations: async (channelId) => `channel ${channelId}` in conversations,
    records: {
      get: async (key) => {
        if (state.storeFails > 0) throw new ParleyError("store-unavailable", "away");
        return await records.get(key);
      },
      set: (key, value) => records.set(key, value),
    },
    onEdited: ({ id }) => edited.push(id),
    api: {
      async listMessages(channelId, { after, limit }) {
        asked.push(channelId);
        state.maxConcurrent = Math.max(state.maxConcurrent, ++state.concurrent);
        await new Promise((resolve) => setTimeout(resolve, 10));
        state.concurrent -= 1;
        if (state.discordFails-- > 0) throw new ParleyError("platform-unreachable", "Discord returned 503");
        const channel = (conversations[`discord:${channelId}`] ?? conversations[`channel ${channelId}`])
          ?.channel;
        if (channel === undefined) throw new ParleyError("platform-rejected", "Unknown Channel");
        return channel
          .filter((id) => BigInt(id) > BigInt(after ?? 0))
          .slice(...(after === undefined ? [-limit] : [0, limit]))
          .toReversed()
          .map((id) => ({ id, channel_id: channelId, author: { bot: id.endsWith("9") }, ...details[id] }))
          .map((message) => ({ mentions: [], mention_roles: [], ...message }) as unknown as APIMessage);
      },
    },
    botId: () => "bot",
    history: {
      restored,
      async conversations(prefix, { without } = {}) {
        if (state.storeFails > 0) throw new ParleyError("store-unavailable", "away");
        return Object.entries(conversations)
          .filter(([id]) => id.startsWith(prefix) && (without === undefined || !id.startsWith(without)))
          .slice(0, 200)
          .map(([conversationId, { within = [] }]) => ({
            conversationId,
            title: "",
            updatedAt: 0,
            within,
          }));
      },
      history: (id, { maxMessages }) =>
        Promise.resolve(
          (conversations[id]?.known ?? [])
            .slice(-maxMessages)
            .map((turnKey) => ({ turnKey }) as StoredMessage),
        ),
    },
    take: (message) => void taken.push(message.id),
    now: () => now,
    signal: stopping.signal,
    log: silentLog,
  });
  return { missed, taken, edited, asked, state, stopping, records };
}
