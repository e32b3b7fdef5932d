import type { APIMessage } from "discord.js";
import type { ConversationHistory } from "../../core/platform.ts";
import type { Log } from "../../core/telemetry.ts";
import { createConcurrencyLimit } from "../../support/concurrency-limit.ts";
import { idPrefix, parseConversationId, parseEventKey } from "./address.ts";
import type { DiscordApi } from "./api.ts";

/** Older messages are not answered. */
const windowMs = 60 * 60_000;
/** At most so many messages of each conversation are read, the bot's own and known ones included. */
const maxMessages = 300;
const pageSize = 100;
/** Conversations that are read, the most recent first. */
const maxConversations = 100;
/** Concurrent requests: live messages come first. */
const maxConcurrent = 3;
const retryMs = 5000;
const maxAttempts = 25;

/** Catches up on what people wrote in known conversations while the bot was offline. */
export interface MissedMessages {
  /** Starts to catch up; at every new session, since Discord redelivers nothing. Contract: must not throw. */
  start(): void;
  /** Resolves when a channel is caught up; live messages of it wait for that. `undefined`: it is. */
  pending(channelId: string): Promise<void> | undefined;
}

interface Gap {
  readonly channelId: string;
  /** Messages after this id are read. */
  readonly after: bigint;
}

/**
 * Reads, in each conversation, the messages after the last one that the store has and passes them to `take`, oldest
 * first. The receiver recognises those it has accepted as duplicates.
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
  /** The run in progress: what it reads, by channel. */
  let running: Promise<ReadonlyMap<string, Promise<void>>> | undefined;
  let retryTimer: NodeJS.Timeout | undefined;
  signal.addEventListener("abort", () => clearTimeout(retryTimer), { once: true });

  /** Reads the gaps from the store, before anything new is accepted. */
  async function findGaps(): Promise<Gap[]> {
    const earliest = snowflakeAt(now() - windowMs);
    const gaps: Gap[] = [];
    for (const { conversationId } of (await history.conversations(idPrefix)).slice(0, maxConversations)) {
      const channelId = parseConversationId(conversationId);
      if (channelId === undefined) continue;
      const messages = await history.history(conversationId, { maxMessages: 20 });
      // A thread that people opened is known from the first mention on; earlier messages were not for the bot.
      const lastSeen = messages
        .map(({ turnKey }) => BigInt(parseEventKey(turnKey) ?? 0))
        .reduce((last, id) => (id > last ? id : last), BigInt(channelId));
      gaps.push({ channelId, after: lastSeen > earliest ? lastSeen : earliest });
    }
    return gaps;
  }

  async function readGap({ channelId, after }: Gap): Promise<void> {
    if (signal.aborted) return;
    try {
      let last = after.toString();
      for (let read = 0; read < maxMessages && !signal.aborted; read += pageSize) {
        const page = await api.listMessages(channelId, { after: last, limit: pageSize });
        const fromPeople = page.filter(({ author }) => author.bot !== true);
        if (fromPeople.length > 0)
          log.info({ channel: channelId, messages: fromPeople.length }, "read missed messages");
        for (const message of fromPeople.toReversed()) take(message);
        if (page.length < pageSize) return;
        last = page[0]?.id ?? last;
      }
    } catch (error) {
      // The conversation of a command, or a channel that was deleted or closed to the bot: nothing to answer.
      log.debug({ channel: channelId, err: error }, "missed messages not readable");
    }
  }

  function start(attempt = 1): void {
    clearTimeout(retryTimer);
    const mine = findGaps().then(
      (gaps) => {
        const limit = createConcurrencyLimit(maxConcurrent);
        return new Map(gaps.map((gap) => [gap.channelId, limit(() => readGap(gap))]));
      },
      (error: unknown) => {
        if (signal.aborted) return new Map<string, Promise<void>>();
        log.warn({ err: error, attempt }, "store unavailable: missed messages not read yet");
        if (attempt < maxAttempts) retryTimer = setTimeout(() => start(attempt + 1), retryMs).unref();
        return new Map<string, Promise<void>>();
      },
    );
    running = mine;
    void mine
      .then((reading) => Promise.all(reading.values()))
      .then(() => {
        if (running === mine) running = undefined;
      });
  }

  return {
    start: () => start(),
    pending: (channelId) => running?.then((reading) => reading.get(channelId)),
  };
}

/** The smallest id that Discord assigns at that time. @see https://docs.discord.com/developers/reference#snowflakes */
function snowflakeAt(unixMs: number): bigint {
  return BigInt(Math.max(0, unixMs - 1_420_070_400_000)) << 22n;
}
