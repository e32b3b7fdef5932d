import type { Clock } from "../../../core/clock.ts";
import { isParleyError } from "../../../core/errors.ts";
import type { Log } from "../../../core/telemetry.ts";
import { translate } from "../../../words/translate.ts";
import { type DiscordAddress, fromRef } from "../address.ts";
import type { DiscordApi } from "../transport/api.ts";
import type { Threads } from "./threads.ts";

/** The place where ordinary messages of a reply are posted. */
interface Destination {
  readonly channelId: string;
  /** The message that they reply to. */
  readonly replyTo?: string;
  /** Whether all of them reply to it, so that people can go on from any. The address has the default. */
  readonly isChain?: boolean;
  /** Tells people why the reply is not posted elsewhere. */
  readonly notices?: readonly string[];
}

/** Finds out where ordinary messages of a reply are posted, and opens its thread. */
interface DestinationFinder {
  /** Returns `undefined` until the destination is known. */
  known(): Destination | undefined;
  /** Finds it, and opens the thread on the first call. @throws ParleyError; the next call tries again */
  find(): Promise<Destination>;
  /**
   * Switches to the channel, where the first message is refused in the thread that was opened for it. Returns
   * whether there is such a thread.
   */
  leaveThread(error: unknown): boolean;
}

/** What the parts of one reply work with. */
export interface ReplyOptions {
  readonly api: DiscordApi;
  readonly address: DiscordAddress;
  /** Whether an earlier process may have posted messages of this reply. */
  readonly isResumed: boolean;
  readonly threads: Threads;
  readonly log: Log;
  /** Unix milliseconds. */
  readonly now: () => number;
  readonly clock: Clock;
}

/** Where a thread could only be opened later than this, the answer goes to the channel. */
const maxThreadWaitMs = 5000;

export function createDestinationFinder(options: ReplyOptions): DestinationFinder {
  const { api, address, threads, log } = options;
  const { channelId, replyTo, thread, interaction } = address;
  let destination = savedDestination();
  let finding: Promise<Destination> | undefined;

  function savedDestination(): Destination | undefined {
    const own = address.messages?.map(fromRef).findLast((ref) => ref.isOwn);
    return own === undefined ? undefined : toPosted(own.channelId);
  }

  /** Returns where earlier messages of the reply are. */
  function toPosted(where: string): Destination {
    const isInChannel = address.isChain === true && where === channelId && replyTo !== undefined;
    return { channelId: where, ...(isInChannel ? { replyTo } : {}) };
  }

  /** Uses the channel instead of a thread. The answer replies to the question, and can be replied to. */
  function toChannel(error: unknown): Destination {
    log.warn({ channel: channelId, err: error }, "no thread to be used: the answer goes to the channel");
    const permission = isParleyError(error) ? error.detail["permission"] : undefined;
    const why =
      permission === undefined
        ? translate("discord.no-thread")
        : translate("discord.no-thread.permission", { permission });
    return {
      channelId,
      ...(replyTo === undefined ? {} : { replyTo }),
      isChain: true,
      notices: [translate("discord.reply-to-go-on", { why })],
    };
  }

  async function open(): Promise<Destination> {
    if (interaction?.isPrivate === true) {
      // Everyone would see an ordinary message in the channel.
      const direct = await api.openDirectChannel(interaction.userId);
      return { channelId: direct.id };
    }
    if (thread === undefined || replyTo === undefined)
      return { channelId, ...(replyTo === undefined ? {} : { replyTo }) };
    return await openThread(replyTo, thread.title);
  }

  async function openThread(questionId: string, title: string): Promise<Destination> {
    const deadline = options.clock.monotonic() + maxThreadWaitMs;
    try {
      const id = await threads.fromMessage(channelId, questionId, title, { deadline });
      return { channelId: id };
    } catch (error) {
      const isLimited = isParleyError(error, "platform-unreachable") && error.retryAfterMs !== undefined;
      const isRefused =
        isParleyError(error, "platform-forbidden") || isParleyError(error, "platform-rejected");
      if (!isLimited && !isRefused) throw error;
      return toChannel(error);
    }
  }

  return {
    known: () => destination,
    find() {
      if (destination !== undefined) return Promise.resolve(destination);
      finding ??= open().then(
        (found) => (destination ??= found),
        (error: unknown) => {
          finding = undefined;
          throw error;
        },
      );
      return finding;
    },
    leaveThread(error) {
      if (thread === undefined || destination === undefined || destination.channelId === channelId)
        return false;
      destination = toChannel(error);
      return true;
    },
  };
}
