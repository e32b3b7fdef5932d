import type { APIMessage } from "discord.js";
import type { Clock } from "../../../core/clock.ts";
import { isParleyError, ParleyError } from "../../../core/errors.ts";
import type { ConversationHistory } from "../../../core/platform.ts";
import type { ConversationSummary } from "../../../core/storage.ts";
import type { Log } from "../../../core/telemetry.ts";
import { inTime, sleepUnlessAborted, systemClock, untilAborted } from "../../../support/clock.ts";
import { createConcurrencyLimit, createKeyedQueue } from "../../../support/queues.ts";
import { createRecent } from "../../../support/recent.ts";
import { backoffMs, retry } from "../../../support/retry.ts";
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
import type { ChannelActivity } from "../transport/gateway-events.ts";
import type { Shard } from "../transport/shards.ts";
import { isEdited } from "./message-changes.ts";

/** Older messages are not answered. */
const searchedMs = 60 * 60_000;
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

/** How many other channels and threads with activity are read slowly in each session. */
const maxOthers = 1000;
/** How long the store or Discord is asked again. */
const retryForMs = 10 * 60_000;
const backoff = { baseMs: 1000, maxMs: 15_000 };
/** A live message waits for a search, so that the store is asked often. */
const searchBackoff = { baseMs: 500, maxMs: 2000 };
/** How long a live message waits for a search of a store that may be back. */
const maxSearchMs = 2500;
/** In how many channels it is known which message was not accepted. */
const maxUnaccepted = 1000;
/** The pause between two other channels, which leaves room for requests of live messages. */
const pauseMs = 100;
/** How long live messages of a channel wait for its missed ones, from the start of their reading. */
const maxHoldMs = 30_000;
const onlyShard: Shard = { id: 0, has: () => true };

/** Catches up on messages from while the bot was offline: known conversations, and mentions elsewhere. */
interface MissedMessages {
  /**
   * Starts to catch up. It is called at every new session of a shard, since Discord redelivers nothing.
   * Conversations in other shards' servers are left to those. Contract: must not throw.
   */
  start(shard?: Shard): void;
  /**
   * Searches a server of the session: channels with recent messages for mentions, and the bot's own threads
   * for messages. Contract: must not throw.
   */
  guildAvailable(guildId: string, channels: readonly ChannelActivity[]): void;
  /**
   * Searches again, unless a search waits for the store, since a message was not accepted. Searches go back
   * to it although a later one may be stored by then. Contract: must not throw.
   */
  lookAgain(channelId: string, messageId: string): void;
  /** Resolves when a channel is caught up, for which live messages wait up to 30 s. `undefined`: it is. */
  pending(channelId: string): Promise<void> | undefined;
  /**
   * Waits for searches and for the channel to be read, for a live message that is about to be accepted.
   * Resolves to whether there was something to wait for. By then its earlier messages have been taken.
   * @throws ParleyError `store-unavailable` after 2.5 s in which the store could not be searched
   */
  searchFirst(channelId: string): Promise<boolean>;
}

/** A session of a shard, with the channels that are searched at its start. */
interface Session {
  readonly shard: Shard;
  readonly startedAt: number;
  /** Resolves when it is known what its conversations may have missed. */
  done: Promise<void>;
  readonly channels: Set<string>;
  others: number;
}

/** A missed message, with the server it is in. */
type MissedMessage = APIMessage & { readonly guild_id?: string };

/** A part of a channel that the bot may have missed. */
interface Gap {
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
  /** Finds gaps before the session's start. What came later was delivered live, perhaps before this. */
  find(session: Pick<Session, "shard" | "startedAt">): Promise<Gap[]>;
  /** Returns all messages of a gap, oldest first, and those of them that were missed. */
  read(gap: Gap): Promise<{ readonly all: MissedMessage[]; readonly missed: MissedMessage[] }>;
}

/** The options of {@link createMissedMessages}. */
interface MissedOptions {
  readonly api: Pick<DiscordApi, "listMessages">;
  readonly history: Pick<ConversationHistory, "conversations" | "history" | "restored">;
  /** Returns the bot's user id. It is called once the bot is connected. */
  readonly botId: () => string;
  readonly take: (message: MissedMessage) => void;
  /** Called with each edited message of a person. */
  readonly onEdited: (message: MissedMessage) => void;
  /** Whether every message of a channel is for the bot. */
  readonly isAnsweredWhole: (channelId: string, guildId: string | undefined) => Promise<boolean>;
  /** Discord's time, in Unix milliseconds. */
  readonly now: () => number;
  /** The default is the time of this process. */
  readonly clock?: Clock | undefined;
  readonly signal: AbortSignal;
  readonly log: Log;
}

/**
 * Reads, in each conversation, the messages after the last one that the store has, and the newest ones of the
 * channels that conversations are in. Passes them to `take`, oldest first. The receiver recognises
 * duplicates. Failures of the store and of Discord are retried for ten minutes.
 */
export function createMissedMessages(options: MissedOptions): MissedMessages {
  const { take, now, signal, log, clock = systemClock } = options;
  /** The first message of a channel that was not accepted. */
  const unaccepted = createRecent<bigint>(maxUnaccepted);
  const gaps = createGaps({ ...options, unacceptedIn: (channelId) => unaccepted.get(channelId) });
  const others = createKeyedQueue();
  /** Reads in progress, by channel, and until when live messages wait for them. */
  const reading = new Map<string, { readonly work: Promise<void>; readonly holdsUntil: number }>();
  /** The searches in progress, including those that wait for the store. */
  const searches = new Set<Promise<void>>();
  /** The searches that live messages wait for. */
  const searching = new Set<Promise<void>>();
  /** The latest session of each shard. */
  let sessions: readonly Session[] = [];

  /** Repeats `work` while the store or Discord is unavailable. Resolves to `undefined` when it gives up. */
  async function untilDone<T>(
    what: string,
    work: () => Promise<T>,
    limits = backoff,
  ): Promise<T | undefined> {
    const deadline = clock.monotonic() + retryForMs;
    try {
      return await retry(work, {
        signal,
        clock,
        delayMs(error, attempt) {
          const isTransient =
            isParleyError(error, "store-unavailable") || isParleyError(error, "platform-unreachable");
          if (!isTransient || clock.monotonic() > deadline) return undefined;
          log.warn({ what, attempt, err: error }, "missed messages not read yet");
          return Math.max(backoffMs(attempt, limits), error.retryAfterMs ?? 0);
        },
      });
    } catch (error) {
      // Mostly the channel was deleted or closed to the bot, so there is nothing to answer.
      if (!signal.aborted) log.info({ what, err: error }, "missed messages not readable");
      return undefined;
    }
  }

  async function catchUp(gap: Gap): Promise<void> {
    const read = await untilDone(`channel ${gap.channelId}`, () => gaps.read(gap));
    if (read === undefined || signal.aborted) return;
    const { all, missed } = read;
    const found = { channel: gap.channelId, messages: missed.length };
    if (missed.length > 0) log.info(found, "read missed messages");
    // One that is not accepted now is noted again. A reading that began behind it has not found it.
    if ((unaccepted.get(gap.channelId) ?? 0n) > (gap.lastSeen ?? 0n)) unaccepted.delete(gap.channelId);
    missed.forEach(take);
    for (const one of all) if (isEdited(one, options.botId())) options.onEdited(one);
  }

  function readGaps(found: readonly Gap[]): void {
    for (const gap of found) {
      const { channelId } = gap;
      const work = (reading.get(channelId)?.work ?? Promise.resolve()).then(() => catchUp(gap));
      reading.set(channelId, { work, holdsUntil: clock.monotonic() + maxHoldMs });
      void work.then(() => {
        if (reading.get(channelId)?.work === work) reading.delete(channelId);
      });
    }
  }

  function start(shard: Shard = onlyShard): void {
    const current: Session = {
      shard,
      startedAt: now(),
      done: Promise.resolve(),
      channels: new Set(),
      others: 0,
    };
    const first = gaps.find(current);
    let attempts = 0;
    current.done = untilDone(
      "conversations",
      () => (attempts++ === 0 ? first : gaps.find(current)),
      searchBackoff,
    ).then((found = []) => {
      searches.delete(current.done);
      for (const { channelId } of found) current.channels.add(channelId);
      readGaps(found);
    });
    searches.add(current.done);
    sessions = [...sessions.filter((one) => one.shard.id !== shard.id), current];
    // Live messages do not wait for a store that is unavailable. Their authors are told.
    const mine = first.then(
      () => current.done,
      () => undefined,
    );
    searching.add(mine);
    void mine.then(() => searching.delete(mine));
  }

  function isHeld(channelId: string): boolean {
    return clock.monotonic() < (reading.get(channelId)?.holdsUntil ?? Number.NEGATIVE_INFINITY);
  }

  async function hold(channelId: string): Promise<void> {
    const lastsMs = (reading.get(channelId)?.holdsUntil ?? Infinity) - clock.monotonic();
    const caughtUp = Promise.all(searching).then(() => reading.get(channelId)?.work);
    await untilAborted(inTime(caughtUp, Math.min(maxHoldMs, Math.max(0, lastsMs)), { clock }), signal).catch(
      () => undefined,
    );
  }

  /** Searches other channels. Live messages do not wait: each mention there begins its own conversation. */
  async function searchOthers(guildId: string, channels: readonly ChannelActivity[]): Promise<void> {
    const current = sessions.findLast(({ shard }) => shard.has(guildId));
    if (current === undefined) return;
    const after = snowflakeAt(current.startedAt - searchedMs);
    // This is done before the wait, since a large server's channels are not kept.
    const active = channels.filter(({ lastMessageId }) => BigInt(lastMessageId) > after);
    if (active.length === 0) return;
    await current.done;
    const recent = active
      .filter(({ id }) => !current.channels.has(id))
      .sort((a, b) => Number(BigInt(b.lastMessageId) - BigInt(a.lastMessageId)));
    for (const { id, isOwnThread = false } of recent.slice(0, maxOthers - current.others)) {
      current.channels.add(id);
      current.others += 1;
      void others.run("", async () => {
        if (signal.aborted || !sessions.includes(current)) return;
        await catchUp({ channelId: id, guildId, after, isChannel: !isOwnThread });
        await sleepUnlessAborted(pauseMs, signal, clock);
      });
    }
  }

  return {
    start,
    guildAvailable: (guildId, channels) => void searchOthers(guildId, channels),
    lookAgain(channelId, messageId) {
      const id = BigInt(messageId);
      const before = unaccepted.get(channelId);
      unaccepted.set(channelId, before === undefined || id < before ? id : before);
      if (searches.size === 0) for (const { shard } of sessions) start(shard);
    },
    async searchFirst(channelId) {
      if (searches.size === 0 && !isHeld(channelId)) return false;
      const searched = Promise.all(searches).then(() => true);
      if ((await inTime(searched, maxSearchMs, { clock })) === undefined)
        throw new ParleyError("store-unavailable", "missed messages could not be searched for");
      await hold(channelId);
      return true;
    },
    pending: (channelId) => (searching.size === 0 && !isHeld(channelId) ? undefined : hold(channelId)),
  };
}

function createGaps(
  options: Pick<MissedOptions, "api" | "history" | "botId" | "isAnsweredWhole" | "signal"> & {
    readonly unacceptedIn: (channelId: string) => bigint | undefined;
  },
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

  async function find({ startedAt, shard }: Pick<Session, "shard" | "startedAt">): Promise<Gap[]> {
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
