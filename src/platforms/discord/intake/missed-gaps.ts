import type { APIMessage } from "discord.js";
import { acceptingNotice } from "../../../core/error-messages.ts";
import type { ConversationHistory } from "../../../core/receiver.ts";
import type { ConversationSummary } from "../../../core/storage.ts";
import { createConcurrencyLimit } from "../../../support/queues.ts";
import { languages } from "../../../words/languages.ts";
import { inLanguage } from "../../../words/translate.ts";
import {
  commandPrefix,
  idPrefix,
  parseChannelPlace,
  parseConversationId,
  parseEventKey,
  parseGuildPlace,
  snowflakeAt,
} from "../address.ts";
import { toSentence } from "../reply/content.ts";
import type { DiscordApi } from "../transport/api.ts";
import type { Shard } from "../transport/shards.ts";

/** Older messages are not answered. */
export const searchedMs = 60 * 60_000;
/** How many messages of each conversation are read, the bot's own and known ones included. */
const maxMessages = 300;
const pageSize = 100;
/**
 * How many stored messages of a conversation are read to find its last one before the session. The second
 * reading is for one in which much was said in the minute before.
 */
const storedPages = [20, 500] as const;
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

/** Finds what may have been missed, and reads it. */
interface Gaps {
  /**
   * Finds gaps before the session's start. What came later was delivered live, perhaps before this.
   * @param mark when the last session began that the store knows of
   */
  find(
    session: { readonly shard: Shard; readonly startedAt: number },
    mark: number | undefined,
  ): Promise<{ readonly since: number; readonly found: readonly Gap[] }>;
  /** Returns all messages of a gap, oldest first, and those of them that were missed. */
  read(gap: Gap): Promise<{ readonly all: MissedMessage[]; readonly missed: MissedMessage[] }>;
}

/** The options of {@link createGaps}. */
export interface GapOptions {
  readonly api: Pick<DiscordApi, "listMessages">;
  readonly history: Pick<ConversationHistory, "conversations" | "history" | "restored">;
  /** Returns the bot's user id. It is called once the bot is connected. */
  readonly botId: () => string;
  /** Whether every message of a channel is for the bot. */
  readonly isAnsweredWhole: (channelId: string, guildId: string | undefined) => Promise<boolean>;
  readonly signal: AbortSignal;
}

/** @param options `unacceptedIn` returns the first message of a channel that was not accepted */
export function createGaps(
  options: GapOptions & { readonly unacceptedIn: (channelId: string) => bigint | undefined },
): Gaps {
  const { api, history, signal } = options;
  const limit = createConcurrencyLimit(maxConcurrent);

  /** Returns the id of the last stored message from before the session, or of the beginning of the thread. */
  async function lastStoredBefore(
    sessionStart: bigint,
    channelId: string,
    { conversationId }: ConversationSummary,
  ): Promise<bigint> {
    // A thread that people opened is known from the first mention on. Earlier ones were not for the bot.
    const start = BigInt(channelId);
    let oldest = start;
    for (const pageLength of storedPages) {
      const messages = await history.history(conversationId, { maxMessages: pageLength });
      const ids = messages
        .map(({ turnKey }) => BigInt(parseEventKey(turnKey) ?? 0))
        .filter((id) => id > start);
      const before = ids.filter((id) => id < sessionStart);
      if (before.length > 0 || messages.length < pageLength)
        return before.reduce((last, id) => (id > last ? id : last), start);
      oldest = ids[0] ?? start;
    }
    // Still more was said since then, so that what was said before is stored.
    return oldest;
  }

  async function find(
    { startedAt, shard }: { readonly shard: Shard; readonly startedAt: number },
    mark: number | undefined,
  ): ReturnType<Gaps["find"]> {
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
    // A new store knows nothing of what was said before.
    if (mark === undefined && all.length + threads.length === 0) return { since: startedAt, found: [] };
    const since = Math.max(startedAt - searchedMs, (mark ?? 0) - clockMarginMs);
    const earliest = snowflakeAt(since);
    const gaps = new Map<string, Gap>();
    for (const summary of threads.slice(0, maxConversations)) {
      const channelId = parseConversationId(summary.conversationId);
      if (channelId === undefined) continue;
      const lastStored = await lastStoredBefore(sessionStart, channelId, summary);
      const unaccepted = options.unacceptedIn(channelId);
      const lastSeen = unaccepted !== undefined && unaccepted <= lastStored ? unaccepted - 1n : lastStored;
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
    return { since, found: [...gaps.values()] };
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
   * Whether Discord shows that a message was taken: the bot opened its thread, or replied to it with an
   * answer or a refusal. A restored store does not know some messages; the bot has taken such a message
   * also where it wrote later in the conversation, where turns run in order.
   */
  function wasAnsweredBefore({ id, thread }: APIMessage, own: readonly APIMessage[]): boolean {
    if (thread !== undefined && "owner_id" in thread && thread.owner_id === options.botId()) return true;
    if (own.some(({ message_reference: to }) => to?.message_id === id)) return true;
    if (history.restored === undefined) return false;
    const { backedUpAt, restoredAt } = history.restored;
    const isLost =
      BigInt(id) >= snowflakeAt(backedUpAt - clockMarginMs) &&
      BigInt(id) <= snowflakeAt(restoredAt + clockMarginMs);
    return (
      isLost && own.some((later) => later.message_reference === undefined && BigInt(later.id) > BigInt(id))
    );
  }

  return {
    find,
    async read(gap) {
      const messages = await readMessages(gap);
      const isWhole = !gap.isChannel || (await isAnsweredWhole(gap));
      const accepting = acceptingNotices();
      const own = messages.filter(
        ({ author, content }) => author.id === options.botId() && !accepting.has(content),
      );
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

/** Returns the replies that say in each language that a message is not accepted yet. */
function acceptingNotices(): ReadonlySet<string> {
  return new Set(languages.map((language) => toSentence(inLanguage(language, acceptingNotice)).content));
}

function mentionsAnyone({ mentions, mention_roles: roles }: APIMessage): boolean {
  return mentions.length > 0 || roles.length > 0;
}
