import type { APIMessage } from "discord.js";
import type { Clock } from "../../../core/clock.ts";
import { isParleyError } from "../../../core/errors.ts";
import type { ConversationHistory } from "../../../core/platform.ts";
import type { ConversationSummary } from "../../../core/storage.ts";
import type { Log } from "../../../core/telemetry.ts";
import { inTime, sleepUnlessAborted, systemClock, untilAborted } from "../../../support/clock.ts";
import { createConcurrencyLimit } from "../../../support/keyed-queue.ts";
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
import { isEdited } from "./message-changes.ts";
import type { Shard } from "../transport/shards.ts";

/** Older messages are not answered. */
const windowMs = 60 * 60_000;
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
/** How many other channels and threads with activity are read slowly in each session. */
const maxOthers = 1000;
/** The number of concurrent requests. Live messages come first. */
const maxConcurrent = 3;
/** How long the store or Discord is asked again. */
const retryForMs = 10 * 60_000;
const backoff = { baseMs: 1000, maxMs: 15_000 };
/** How long live messages of a channel wait for its missed ones, from the start of their reading. */
const maxHoldMs = 30_000;
/** Messages from shortly before the session count as live, because the clocks differ. */
const clockMarginMs = 60_000;

const onlyShard: Shard = { id: 0, has: () => true };

/** A missed message, with the server it is in. */
type MissedMessage = APIMessage & { readonly guild_id?: string };

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
  /** Like {@link start}, but does nothing while a search waits for the store. Contract: must not throw. */
  startUnlessSearching(): void;
  /** Resolves when a channel is caught up, for which live messages wait up to 30 s. `undefined`: it is. */
  pending(channelId: string): Promise<void> | undefined;
  /**
   * Makes a search that waits for the store now, for a live message that is about to be accepted, and waits
   * for the channel to be read. Resolves to whether there was something to wait for. By then its earlier
   * messages have been taken.
   * @throws ParleyError `store-unavailable`
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

/** A search for gaps that is not done. */
interface Search {
  readonly session: Session;
  readonly done: Promise<void>;
  /** The attempt that live messages wait for. */
  attempt: Promise<void> | undefined;
  finish(gaps: readonly Gap[]): void;
}

interface Gap {
  readonly channelId: string;
  readonly guildId: string | undefined;
  /** Messages after `after` are read. `lastSeen` is the last one in the store, which may have been edited. */
  readonly after: bigint;
  readonly lastSeen?: bigint;
  /** For a channel that contains conversations, only its newest page is read, and only for mentions. */
  readonly isChannel: boolean;
}

/**
 * Reads, in each conversation, the messages after the last one that the store has, and the newest ones of the
 * channels that conversations are in. Passes them to `take`, oldest first. The receiver recognises
 * duplicates. Failures of the store and of Discord are retried for ten minutes.
 */
export function createMissedMessages(options: {
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
}): MissedMessages {
  const { api, history, take, now, signal, log, clock = systemClock } = options;
  const limit = createConcurrencyLimit(maxConcurrent);
  const others = createPacedSearch(signal, clock);
  /** Reads in progress, by channel, and until when live messages wait for them. */
  const reading = new Map<string, { readonly work: Promise<void>; readonly holdsUntil: number }>();
  /** The searches in progress, including those that wait for the store. */
  const searches = new Set<Search>();
  /** The searches that live messages wait for. */
  const searching = new Set<Promise<void>>();
  /** The latest session of each shard. */
  let sessions: readonly Session[] = [];

  /** Repeats `work` while the store or Discord is unavailable. Resolves to `undefined` when it gives up. */
  async function untilDone<T>(
    what: string,
    work: () => Promise<T>,
    until: AbortSignal = signal,
  ): Promise<T | undefined> {
    const deadline = clock.monotonic() + retryForMs;
    try {
      return await retry(work, {
        signal: until,
        clock,
        delayMs(error, attempt) {
          const isTransient =
            isParleyError(error, "store-unavailable") || isParleyError(error, "platform-unreachable");
          if (!isTransient || clock.monotonic() > deadline) return undefined;
          log.warn({ what, attempt, err: error }, "missed messages not read yet");
          return Math.max(backoffMs(attempt, backoff), error.retryAfterMs ?? 0);
        },
      });
    } catch (error) {
      // Mostly the channel was deleted or closed to the bot, so there is nothing to answer.
      if (!until.aborted) log.info({ what, err: error }, "missed messages not readable");
      return undefined;
    }
  }

  /** Finds gaps before the session's start. What came later was delivered live, perhaps before this. */
  async function findGaps({ startedAt, shard }: Session): Promise<Gap[]> {
    const earliest = snowflakeAt(startedAt - windowMs);
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
  async function readGap({ channelId, after, isChannel }: Gap): Promise<APIMessage[]> {
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

  async function catchUp(gap: Gap): Promise<void> {
    const messages = await untilDone(`channel ${gap.channelId}`, () => readGap(gap));
    if (messages === undefined || signal.aborted) return;
    const withServer = (message: APIMessage): MissedMessage =>
      gap.guildId === undefined ? message : { ...message, guild_id: gap.guildId };
    const isWhole = !gap.isChannel || (await isAnsweredWhole(gap));
    const own = messages.filter(({ author }) => author.id === options.botId());
    const missed = messages.filter(
      (message) =>
        message.author.bot !== true &&
        BigInt(message.id) > (gap.lastSeen ?? 0n) &&
        !wasAnsweredBefore(message, own) &&
        (isWhole || mentionsAnyone(message)),
    );
    const found = { channel: gap.channelId, messages: missed.length };
    if (missed.length > 0) log.info(found, "read missed messages");
    missed.map(withServer).forEach(take);
    for (const one of messages) if (isEdited(one, options.botId())) options.onEdited(withServer(one));
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

  function readGaps(gaps: readonly Gap[]): void {
    for (const gap of gaps) {
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
    const first = findGaps(current);
    let attempts = 0;
    const early = new AbortController();
    let gapsFoundEarly: readonly Gap[] | undefined;
    const search = untilDone(
      "conversations",
      () => (attempts++ === 0 ? first : findGaps(current)),
      AbortSignal.any([signal, early.signal]),
    );
    const found = search.then((gaps = []) => {
      searches.delete(open);
      const all = gapsFoundEarly ?? gaps;
      for (const { channelId } of all) current.channels.add(channelId);
      readGaps(all);
    });
    const open: Search = {
      session: current,
      done: found,
      attempt: undefined,
      finish(gaps) {
        gapsFoundEarly = gaps;
        early.abort();
      },
    };
    searches.add(open);
    current.done = found;
    sessions = [...sessions.filter((one) => one.shard.id !== shard.id), current];
    // Live messages do not wait for a store that is unavailable. Their authors are told.
    const mine = first.then(
      () => found,
      () => undefined,
    );
    searching.add(mine);
    void mine.then(() => searching.delete(mine));
  }

  /** Makes one attempt at a search, which ends it. */
  function searchNow(search: Search): Promise<void> {
    search.attempt ??= findGaps(search.session)
      .then((gaps) => {
        search.finish(gaps);
        return search.done;
      })
      .finally(() => {
        search.attempt = undefined;
      });
    return search.attempt;
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
    const after = snowflakeAt(current.startedAt - windowMs);
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
      others.add(
        () => catchUp({ channelId: id, guildId, after, isChannel: !isOwnThread }),
        () => sessions.includes(current),
      );
    }
  }

  return {
    start,
    guildAvailable: (guildId, channels) => void searchOthers(guildId, channels),
    startUnlessSearching() {
      if (searches.size === 0) for (const { shard } of sessions) start(shard);
    },
    async searchFirst(channelId) {
      if (searches.size === 0 && !isHeld(channelId)) return false;
      await Promise.all([...searches].map(searchNow));
      await hold(channelId);
      return true;
    },
    pending: (channelId) => (searching.size === 0 && !isHeld(channelId) ? undefined : hold(channelId)),
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

/** The pause between two channels, which leaves room for requests of live messages. */
const pauseMs = 100;

/** Works on many channels one after another, about eight a second, since live messages come first. */
interface PacedSearch {
  /** Adds work behind what waits. `isWanted` is asked before it begins. Contract: the work must not throw. */
  add(work: () => Promise<void>, isWanted: () => boolean): void;
}

function createPacedSearch(signal: AbortSignal, clock: Clock): PacedSearch {
  const waiting: { readonly work: () => Promise<void>; readonly isWanted: () => boolean }[] = [];
  let isRunning = false;

  async function run(): Promise<void> {
    isRunning = true;
    for (let next = waiting.shift(); next !== undefined && !signal.aborted; next = waiting.shift()) {
      if (!next.isWanted()) continue;
      await next.work();
      await sleepUnlessAborted(pauseMs, signal, clock);
    }
    isRunning = false;
  }

  return {
    add(work, isWanted) {
      waiting.push({ work, isWanted });
      if (!isRunning) void run();
    },
  };
}
