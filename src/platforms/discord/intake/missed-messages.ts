import type { Clock } from "../../../core/clock.ts";
import { isParleyError, ParleyError } from "../../../core/errors.ts";
import type { Records } from "../../../core/storage.ts";
import type { Log } from "../../../core/telemetry.ts";
import { inTime, sleepUnlessAborted, systemClock, untilAborted } from "../../../support/clock.ts";
import { createKeyedQueue } from "../../../support/queues.ts";
import { createRecent } from "../../../support/recent.ts";
import { backoffMs, retry } from "../../../support/retry.ts";
import { snowflakeAt } from "../address.ts";
import type { ChannelActivity } from "../transport/gateway-events.ts";
import type { Shard } from "../transport/shards.ts";
import { isEdited } from "./message-changes.ts";
import { createGaps, searchedMs, type Gap, type GapOptions, type MissedMessage } from "./missed-gaps.ts";

/** When a session counts as known, if all that was found at its start is read by then. */
const knownAfterMs = 60_000;

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
   * Reads a channel again from a message on that was not accepted, once the store responds, although a later
   * one may be stored by then. Contract: must not throw.
   */
  lookAgain(channelId: string, messageId: string, guildId?: string): void;
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
  /** Since when something may have been missed. It is `undefined` until the store was searched. */
  since: number | undefined;
  /** Resolves when it is known what its conversations may have missed. */
  done: Promise<void>;
  readonly channels: Set<string>;
  others: number;
}

/** The options of {@link createMissedMessages}. */
interface MissedOptions extends GapOptions {
  /** Stores when the last session of a shard began. */
  readonly records: Pick<Records, "get" | "set">;
  readonly take: (message: MissedMessage) => void;
  /** Called with each edited message of a person. */
  readonly onEdited: (message: MissedMessage) => void;
  /**
   * Whether messages of a channel begin conversations elsewhere. In threads and direct messages they go on.
   */
  readonly holdsConversations: (channelId: string) => Promise<boolean>;
  /** Unix milliseconds. */
  readonly now: () => number;
  /** The default is the time of this process. */
  readonly clock?: Clock | undefined;
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
  /** The channels of messages that were not accepted, with their server. */
  const toReadAgain = new Map<string, string | undefined>();
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

  const markOf = ({ id }: Shard): string => `discord:session:${id}`;

  /** Reads the mark, and finds what was missed. With a new store this session is the mark at once. */
  async function search(session: Session, before: Session | undefined): Promise<readonly Gap[]> {
    const mark = await options.records.get(markOf(session.shard));
    const known = typeof mark === "number" ? mark : before?.startedAt;
    const { since, found } = await gaps.find(session, known);
    session.since = since;
    if (since === session.startedAt) await options.records.set(markOf(session.shard), since);
    return found;
  }

  /** Notes a session, once what was missed before it is read. Otherwise the next start reads it again. */
  async function noteKnown(session: Session): Promise<void> {
    await clock.sleep(knownAfterMs, signal);
    await session.done;
    await others.run("", () => Promise.resolve());
    await Promise.all([...reading.values()].map(({ work }) => work));
    if (session.since !== undefined && sessions.includes(session))
      await options.records.set(markOf(session.shard), session.startedAt);
  }

  function start(shard: Shard = onlyShard): void {
    const startedAt = now();
    const current: Session = {
      shard,
      startedAt,
      since: undefined,
      done: Promise.resolve(),
      channels: new Set(),
      others: 0,
    };
    const before = sessions.find(({ shard: { id } }) => id === shard.id);
    const first = search(current, before);
    let attempts = 0;
    current.done = untilDone(
      "conversations",
      () => (attempts++ === 0 ? first : search(current, before)),
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
    noteKnown(current).catch((error: unknown) => log.debug({ err: error }, "session not noted in the store"));
  }

  /** Reads the channels of messages that were not accepted, once the store responds. */
  function searchUnaccepted(): void {
    const again = untilDone("channels of messages not accepted", findUnaccepted, searchBackoff).then(
      (found = []) => {
        searches.delete(again);
        readGaps(found);
      },
    );
    searches.add(again);
  }

  async function findUnaccepted(): Promise<readonly Gap[]> {
    await options.records.get(markOf(onlyShard));
    const wanted = [...toReadAgain];
    const found = await Promise.all(
      wanted.map(async ([channelId, guildId]): Promise<readonly Gap[]> => {
        const first = unaccepted.get(channelId);
        if (first === undefined) return [];
        const isChannel = await options.holdsConversations(channelId);
        return [{ channelId, guildId, after: first - 1n, lastSeen: first - 1n, isChannel }];
      }),
    );
    for (const [channelId] of wanted) toReadAgain.delete(channelId);
    return found.flat();
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
    const earliest = snowflakeAt(current.startedAt - searchedMs);
    // This is done before the wait, since a large server's channels are not kept.
    const active = channels.filter(({ lastMessageId }) => BigInt(lastMessageId) > earliest);
    if (active.length === 0) return;
    await current.done;
    const after = snowflakeAt(current.since ?? current.startedAt);
    const recent = active
      .filter(({ id, lastMessageId }) => BigInt(lastMessageId) > after && !current.channels.has(id))
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
    lookAgain(channelId, messageId, guildId) {
      const id = BigInt(messageId);
      const before = unaccepted.get(channelId);
      unaccepted.set(channelId, before === undefined || id < before ? id : before);
      toReadAgain.set(channelId, guildId);
      if (searches.size === 0) searchUnaccepted();
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
