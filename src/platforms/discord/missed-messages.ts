import type { APIMessage } from "discord.js";
import type { Log } from "../../core/telemetry.ts";
import type { ConversationHistory } from "../../core/platform.ts";
import type { DiscordApi } from "./api.ts";

/** Older messages are not answered late, in milliseconds. */
const windowMs = 60 * 60_000;
/** At most so many messages of each conversation are looked through, the bot's own and known ones included. */
const maxMessages = 300;
const pageSize = 100;
/** Conversations that are looked at, the last spoken in first. */
const maxConversations = 100;
/** Requests at the same time: people who write now come first. */
const atOnce = 3;
const retryMs = 5000;
const maxTries = 24;

/** What people wrote in known conversations while nobody listened. */
export interface MissedMessages {
  /** Looks for it once more; at every new session, since Discord delivers nothing again. Contract: must not throw. */
  look(): void;
  /** While it is looked for in a channel: when to go on with what is said there now. `undefined`: at once. */
  pending(channelId: string): Promise<void> | undefined;
}

/**
 * Fetches, in each conversation, what came after the last message that the store knows of, and hands it to `take`,
 * oldest first. What was accepted already is noticed there as a duplicate.
 */
export function createMissedMessages(options: {
  readonly api: Pick<DiscordApi, "listMessages">;
  readonly history: Pick<ConversationHistory, "conversations" | "history">;
  readonly take: (message: APIMessage) => void;
  readonly now: () => number;
  readonly signal: AbortSignal;
  readonly log: Log;
}): MissedMessages {
  const { api, history, take, now, signal, log } = options;
  let looking: Promise<ReadonlyMap<string, Promise<void>>> | undefined;
  let retry: NodeJS.Timeout | undefined;
  signal.addEventListener("abort", () => clearTimeout(retry), { once: true });

  /** Where to look and after which message, as the store knows it before anything new is taken in. */
  async function readPlaces(): Promise<{ channelId: string; after: bigint }[]> {
    const earliest = snowflakeAt(now() - windowMs);
    const places: { channelId: string; after: bigint }[] = [];
    for (const { conversationId } of (await history.conversations("discord:")).slice(0, maxConversations)) {
      const channelId = /^discord:(\d+)$/.exec(conversationId)?.[1];
      if (channelId === undefined) continue;
      const messages = await history.history(conversationId, { maxMessages: 20 });
      // A thread of others is known from the first call on; what they said before was not for the bot.
      const lastSeen = messages
        .map(({ turnKey }) => BigInt(/^discord:(\d+)$/.exec(turnKey)?.[1] ?? 0))
        .reduce((last, id) => (id > last ? id : last), BigInt(channelId));
      places.push({ channelId, after: lastSeen > earliest ? lastSeen : earliest });
    }
    return places;
  }

  async function fetchFrom({ channelId, after }: { channelId: string; after: bigint }): Promise<void> {
    if (signal.aborted) return;
    try {
      let last = after.toString();
      for (let read = 0; read < maxMessages && !signal.aborted; read += pageSize) {
        const page = await api.listMessages(channelId, { after: last, limit: pageSize });
        const people = page.filter(({ author }) => author.bot !== true);
        if (people.length > 0)
          log.info({ channel: channelId, messages: people.length }, "read what was missed");
        for (const message of people.toReversed()) take(message);
        if (page.length < pageSize) return;
        last = page[0]?.id ?? last;
      }
    } catch (error) {
      // A command's own conversation, a channel that is gone or closed to the bot: there is nothing to answer.
      log.debug({ channel: channelId, err: error }, "a conversation could not be looked through");
    }
  }

  function look(tries = 0): void {
    clearTimeout(retry);
    const mine = readPlaces().then(
      (places) => {
        const limit = createLimit(atOnce);
        return new Map(places.map((place) => [place.channelId, limit(() => fetchFrom(place))]));
      },
      (error: unknown) => {
        if (signal.aborted) return new Map<string, Promise<void>>();
        log.warn({ err: error }, "what was missed could not be looked for yet");
        if (tries < maxTries) retry = setTimeout(() => look(tries + 1), retryMs).unref();
        return new Map<string, Promise<void>>();
      },
    );
    looking = mine;
    void mine
      .then((fetching) => Promise.all(fetching.values()))
      .then(() => {
        if (looking === mine) looking = undefined;
      });
  }

  return {
    look,
    pending: (channelId) => looking?.then((fetching) => fetching.get(channelId)),
  };
}

/** The smallest id that Discord gives at that time. @see https://docs.discord.com/developers/reference#snowflakes */
function snowflakeAt(unixMs: number): bigint {
  return BigInt(Math.max(0, unixMs - 1_420_070_400_000)) << 22n;
}

/** Runs at most `max` at the same time, in the order they come. */
function createLimit(max: number): (work: () => Promise<void>) => Promise<void> {
  const waiting: (() => void)[] = [];
  let running = 0;
  return async (work) => {
    if (running >= max) await new Promise<void>((resolve) => waiting.push(resolve));
    running += 1;
    try {
      await work();
    } finally {
      running -= 1;
      waiting.shift()?.();
    }
  };
}
