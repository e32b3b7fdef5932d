import type { APIMessage } from "discord.js";
import type { ConversationHistory } from "../../../core/platform.ts";
import type { ConversationSummary } from "../../../core/storage.ts";
import { createConcurrencyLimit } from "../../../support/keyed-queue.ts";
import {
  commandPrefix,
  idPrefix,
  parseChannelPlace,
  parseConversationId,
  parseEventKey,
  parseGuildPlace,
  snowflakeAt,
} from "../address.ts";
import type { DiscordApi } from "../transport/api.ts";
import type { Shard } from "../transport/shards.ts";

/** Older messages are not answered. */
export const searchedMs = 60 * 60_000;
/** How many messages of each conversation are read, the bot's own and known ones included. */
const maxMessages = 300;
const pageSize = 100;
/** How many conversations are read, the most recent first. */
const maxConversations = 100;
/**
 * How many channels that contain conversations are searched for mentions, a page each, the most recent first.
 * Live messages wait for them.
 */
const maxChannels = 50;
/** The number of concurrent requests. Live messages come first. */
const maxConcurrent = 3;
/** Messages from shortly before the session count as live, because the clocks differ. */
const clockMarginMs = 60_000;

/** A missed message, with the server it is in. */
export type MissedMessage = APIMessage & { readonly guild_id?: string };

/** A part of a channel that the bot may have missed. */
export interface Gap {
  readonly channelId: string;
  readonly guildId: string | undefined;
  /** Messages after `after` are read. `lastSeen` is the last one in the store, which may have been edited. */
  readonly after: bigint;
  readonly lastSeen?: bigint;
  /** For a channel that contains conversations, only its newest page is read, and only for mentions. */
  readonly isChannel: boolean;
}

/** The shard whose session began, and when. */
interface GapSession {
  readonly shard: Shard;
  /** Discord's time, in Unix milliseconds. */
  readonly startedAt: number;
}

/** Finds what may have been missed, and reads it. */
interface Gaps {
  /** Finds gaps before the session's start. What came later was delivered live, perhaps before this. */
  find(session: GapSession): Promise<Gap[]>;
  /** Returns all messages of a gap, oldest first, and those of them that were missed. */
  read(gap: Gap): Promise<{ readonly all: MissedMessage[]; readonly missed: MissedMessage[] }>;
}

export function createGaps(options: {
  readonly api: Pick<DiscordApi, "listMessages">;
  readonly history: Pick<ConversationHistory, "conversations" | "history" | "restored">;
  /** Returns the bot's user id. It is called once the bot is connected. */
  readonly botId: () => string;
  /** Whether every message of a channel is for the bot. */
  readonly isAnsweredWhole: (channelId: string, guildId: string | undefined) => Promise<boolean>;
  readonly signal: AbortSignal;
}): Gaps {
  const { api, history, signal } = options;
  const limit = createConcurrencyLimit(maxConcurrent);

  async function find({ startedAt, shard }: GapSession): Promise<Gap[]> {
    const earliest = snowflakeAt(startedAt - searchedMs);
    const sessionStart = snowflakeAt(startedAt - clockMarginMs);
    const [all, threads] = (
      await Promise.all([
        history.conversations(idPrefix),
        history.conversations(idPrefix, { without: commandPrefix }),
      ])
    ).map((found) => found.filter((summary) => mayBeOf(summary, shard))) as [
      ConversationSummary[],
      ConversationSummary[],
    ];
    const gaps = new Map<string, Gap>();
    for (const summary of threads.slice(0, maxConversations)) {
      const channelId = parseConversationId(summary.conversationId);
      if (channelId === undefined) continue;
      const messages = await history.history(summary.conversationId, { maxMessages: 20 });
      // A thread that people opened is known from the first mention on. Earlier ones were not for the bot.
      const lastSeen = messages
        .map(({ turnKey }) => BigInt(parseEventKey(turnKey) ?? 0))
        .filter((id) => id < sessionStart)
        .reduce((last, id) => (id > last ? id : last), BigInt(channelId));
      const after = lastSeen > earliest ? lastSeen - 1n : earliest;
      gaps.set(channelId, { channelId, guildId: guildOf(summary), after, lastSeen, isChannel: false });
    }
    const recent = [...all, ...threads].sort((a, b) => b.updatedAt - a.updatedAt);
    let channels = 0;
    for (const summary of recent) {
      for (const channelId of (summary.within ?? []).flatMap((place) => parseChannelPlace(place) ?? [])) {
        if (gaps.has(channelId) || channels >= maxChannels) continue;
        channels += 1;
        gaps.set(channelId, { channelId, guildId: guildOf(summary), after: earliest, isChannel: true });
      }
    }
    return [...gaps.values()];
  }

  /** Returns the messages of a gap, oldest first. */
  async function readMessages({ channelId, after, isChannel }: Gap): Promise<APIMessage[]> {
    if (isChannel) {
      const page = await limit(() => api.listMessages(channelId, { limit: pageSize, isPatient: true }));
      return page.filter(({ id }) => BigInt(id) > after).toReversed();
    }
    const messages: APIMessage[] = [];
    let last = after.toString();
    while (messages.length < maxMessages) {
      signal.throwIfAborted();
      const from = last;
      const page = await limit(() =>
        api.listMessages(channelId, { after: from, limit: pageSize, isPatient: true }),
      );
      messages.push(...page.toReversed());
      if (page.length < pageSize) break;
      last = page[0]?.id ?? last;
    }
    return messages;
  }

  /** Whether all of its messages are for the bot. While the settings cannot be read, only mentions are. */
  async function isAnsweredWhole({ channelId, guildId }: Gap): Promise<boolean> {
    const [answer] = await Promise.allSettled([options.isAnsweredWhole(channelId, guildId)]);
    return answer.status === "fulfilled" && answer.value;
  }

  /**
   * Whether Discord shows that a message was taken: the bot opened its thread. A restored store does not know
   * some messages; the bot has taken such a message also where it replied to it, with an answer or a refusal,
   * or wrote later in the conversation, where turns run in order.
   */
  function wasAnsweredBefore({ id, thread }: APIMessage, own: readonly APIMessage[]): boolean {
    if (thread !== undefined && "owner_id" in thread && thread.owner_id === options.botId()) return true;
    if (history.restored === undefined) return false;
    const { backedUpAt, restoredAt } = history.restored;
    const isLost =
      BigInt(id) >= snowflakeAt(backedUpAt - clockMarginMs) &&
      BigInt(id) <= snowflakeAt(restoredAt + clockMarginMs);
    return (
      isLost &&
      own.some(({ id: later, message_reference: to }) =>
        to === undefined ? BigInt(later) > BigInt(id) : to.message_id === id,
      )
    );
  }

  return {
    find,
    async read(gap) {
      const messages = await readMessages(gap);
      const isWhole = !gap.isChannel || (await isAnsweredWhole(gap));
      const own = messages.filter(({ author }) => author.id === options.botId());
      const withServer = (message: APIMessage): MissedMessage =>
        gap.guildId === undefined ? message : { ...message, guild_id: gap.guildId };
      const missed = messages.filter(
        (message) =>
          message.author.bot !== true &&
          BigInt(message.id) > (gap.lastSeen ?? 0n) &&
          !wasAnsweredBefore(message, own) &&
          (isWhole || mentionsAnyone(message)),
      );
      return { all: messages.map(withServer), missed: missed.map(withServer) };
    },
  };
}

/** Whether a conversation may be of this shard. Its server is stored only with its first answer. */
function mayBeOf(summary: ConversationSummary, shard: Shard): boolean {
  const guildId = guildOf(summary);
  return guildId === undefined || shard.has(guildId);
}

function guildOf({ within = [] }: ConversationSummary): string | undefined {
  return within.map((place) => parseGuildPlace(place)).find((id) => id !== undefined);
}

function mentionsAnyone({ mentions, mention_roles: roles }: APIMessage): boolean {
  return mentions.length > 0 || roles.length > 0;
}
