import type { Clock } from "../../../core/clock.ts";
import { isParleyError } from "../../../core/errors.ts";
import type { ConversationHistory } from "../../../core/platform.ts";
import type { Log } from "../../../core/telemetry.ts";
import { inTime, sleepUnlessAborted, systemClock, untilAborted } from "../../../support/clock.ts";
import { backoffMs, retry } from "../../../support/retry.ts";
import { snowflakeAt } from "../address.ts";
import type { DiscordApi } from "../transport/api.ts";
import type { ChannelActivity } from "../transport/gateway-events.ts";
import { createGaps, searchedMs, type Gap, type MissedMessage } from "./gaps.ts";
import { isEdited } from "./message-changes.ts";
import type { Shard } from "../transport/shards.ts";

/** How many other channels and threads with activity are read slowly in each session. */
const maxOthers = 1000;
/** How long the store or Discord is asked again. */
const retryForMs = 10 * 60_000;
const backoff = { baseMs: 1000, maxMs: 15_000 };
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
  const { take, now, signal, log, clock = systemClock } = options;
  const gaps = createGaps(options);
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

  async function catchUp(gap: Gap): Promise<void> {
    const read = await untilDone(`channel ${gap.channelId}`, () => gaps.read(gap));
    if (read === undefined || signal.aborted) return;
    const { all, missed } = read;
    const found = { channel: gap.channelId, messages: missed.length };
    if (missed.length > 0) log.info(found, "read missed messages");
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
    const early = new AbortController();
    let gapsFoundEarly: readonly Gap[] | undefined;
    const search = untilDone(
      "conversations",
      () => (attempts++ === 0 ? first : gaps.find(current)),
      AbortSignal.any([signal, early.signal]),
    );
    const found = search.then((foundAtLast = []) => {
      searches.delete(open);
      const all = gapsFoundEarly ?? foundAtLast;
      for (const { channelId } of all) current.channels.add(channelId);
      readGaps(all);
    });
    const open: Search = {
      session: current,
      done: found,
      attempt: undefined,
      finish(foundNow) {
        gapsFoundEarly = foundNow;
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
    search.attempt ??= gaps
      .find(search.session)
      .then((found) => {
        search.finish(found);
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
