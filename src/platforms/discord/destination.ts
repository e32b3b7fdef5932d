import type { Clock } from "../../core/clock.ts";
import { isParleyError } from "../../core/errors.ts";
import type { Log } from "../../core/telemetry.ts";
import type { DeliveryScheduler, Reservation } from "../delivery/delivery-scheduler.ts";
import { isThreadType, privateThread, type DiscordAddress } from "./address.ts";
import type { DiscordApi } from "./api.ts";
import { lanes } from "./delivery.ts";
import { discordCode, errorCodes } from "./errors.ts";
import { findLostMessage } from "./lost-message.ts";
import { fromRef, type MessageRef } from "./message-ref.ts";
import type { OwnPosts } from "./own-posts.ts";
import type { Threads } from "./threads.ts";
import { translate } from "../../words/translate.ts";

/** Where ordinary messages of a reply are posted. */
export interface Destination {
  readonly channelId: string;
  /** What they reply to. */
  readonly replyTo?: string;
  /** Each of them replies to it, so that people can go on from any. Default: as the address says. */
  readonly isChain?: boolean;
  /** Shown to people: why it is not posted elsewhere. */
  readonly notices?: readonly string[];
  /** Room for its first message there. */
  readonly reservation?: Reservation;
  /** The reply's first message, which an earlier run posted and did not save. */
  readonly found?: MessageRef;
}

/** Finds out where ordinary messages of a reply are posted, and opens its thread. */
export interface DestinationFinder {
  /** `undefined` until it is known. */
  known(): Destination | undefined;
  /** Opens the thread on the first call. @throws ParleyError: the next call tries again */
  find(): Promise<Destination>;
  /**
   * From now on the channel that contains a thread, where nothing can be shown in the thread. Resolves to whether it is
   * used now: not where only some people see the thread, or where posts have no channel. Contract: must not throw.
   * @param error why the thread is not used
   */
  leaveThread(threadId: string, error: unknown): Promise<boolean>;
  /** From now on where a message of the reply was posted before. */
  moveTo(channelId: string): void;
  /** Gives back what it keeps. */
  close(): void;
}

/** Options of {@link createDestinationFinder}. */
export interface DestinationOptions {
  readonly api: DiscordApi;
  readonly scheduler: Pick<DeliveryScheduler, "reserve" | "waitMs">;
  readonly address: DiscordAddress;
  readonly threads: Threads;
  /** The channel that contains a thread. */
  readonly parentOf: (threadId: string) => Promise<string | undefined>;
  readonly ownPosts: Pick<OwnPosts, "has">;
  /** Which of these messages show other turns of the conversation. @throws ParleyError `store-unavailable` */
  readonly shownByOthers: (messageIds: readonly string[]) => Promise<readonly string[]>;
  /** The bot's user id. */
  readonly botId: () => string;
  readonly clock: Clock;
  readonly log: Log;
}

/** Where its thread would be opened later than that, the answer comes in the channel if that is sooner. */
const maxThreadWaitMs = 2000;
/** In a channel without room the answer waits about so long. */
const channelWaitMs = 5000;
/** Where all routes together make it wait so long, more urgent requests would overtake it again and again. */
const maxGlobalWaitMs = 250;

/** @see {@link DestinationFinder} */
export function createDestinationFinder(options: DestinationOptions): DestinationFinder {
  const { api, scheduler, address, threads, log } = options;
  const { channelId, channelType, replyTo, thread, interaction } = address;
  let destination = savedDestination();
  let finding: Promise<Destination> | undefined;

  function savedDestination(): Destination | undefined {
    const own = address.messages?.map(fromRef).findLast((ref) => ref.isOwn);
    return own === undefined ? undefined : toPosted(own.channelId);
  }

  /** Where earlier messages of the reply are. */
  function toPosted(where: string): Destination {
    const isInChannel = address.isChain === true && where === channelId && replyTo !== undefined;
    return { channelId: where, ...(isInChannel ? { replyTo } : {}) };
  }

  /** The channel instead of a thread: the answer replies to the question; a reply to the answer continues. */
  function toChannel(why: string): Destination {
    return {
      channelId,
      ...(replyTo === undefined ? {} : { replyTo }),
      isChain: true,
      notices: [translate("discord.reply-to-go-on", { why })],
    };
  }

  async function open(): Promise<Destination> {
    if (interaction?.isPrivate === true || interaction?.isGuest === true) {
      // An ordinary message in the channel would be seen by everyone.
      const direct = await api.openDirectChannel(interaction.userId);
      return { channelId: direct.id };
    }
    const found = await findLostMessage(api, address, {
      isOther: ({ id, author }) => author.id !== options.botId() || options.ownPosts.has(id),
      shownByOthers: options.shownByOthers,
    });
    if (found !== undefined) return { ...toPosted(found.channelId), found };
    if (thread === undefined || replyTo === undefined)
      return { channelId, ...(replyTo === undefined ? {} : { replyTo }) };
    // Asked with each question, Discord would refuse each, and the answer would wait for that.
    if (threads.isFull(channelId)) return toChannel(translate("discord.threads-full"));
    const waitMs = scheduler.waitMs([lanes.threads(channelId)], "files");
    if (waitMs <= maxThreadWaitMs && scheduler.waitMs([lanes.global], "files") <= maxGlobalWaitMs)
      return openThread(replyTo, thread.title, maxThreadWaitMs);
    const reservation = scheduler.reserve(lanes.posts(channelId));
    if (reservation !== undefined) return { ...toChannel(translate("discord.threads-limited")), reservation };
    return waitMs > channelWaitMs
      ? toChannel(translate("discord.threads-limited"))
      : openThread(replyTo, thread.title, channelWaitMs + maxThreadWaitMs);
  }

  async function openThread(questionId: string, title: string, maxWaitMs: number): Promise<Destination> {
    const deadline = options.clock.monotonic() + maxWaitMs;
    try {
      const id = await threads.fromMessage(channelId, questionId, title, { deadline });
      return { channelId: id };
    } catch (error) {
      if (isParleyError(error, "platform-unreachable") && error.retryAfterMs !== undefined) {
        log.info({ channel: channelId, err: error }, "no room for a thread: posting in the channel");
        return toChannel(translate("discord.threads-limited"));
      }
      if (!isParleyError(error, "platform-forbidden") && !isParleyError(error, "platform-rejected"))
        throw error;
      log.warn({ channel: channelId, err: error }, "thread not opened: posting in the channel");
      return toChannel(
        discordCode(error) === errorCodes.tooManyThreads
          ? translate("discord.threads-full")
          : unusable(error.detail["permission"]),
      );
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
    async leaveThread(threadId, error) {
      if (destination !== undefined && destination.channelId !== threadId) return true;
      const why =
        discordCode(error) === errorCodes.threadLocked
          ? translate("discord.thread-locked")
          : unusable(isParleyError(error) ? error.detail["permission"] : undefined);
      if (threadId !== channelId) {
        if (thread === undefined) return false;
        destination = toChannel(why);
      } else {
        if (!isThreadType(channelType) || channelType === privateThread) return false;
        const parentId = await options.parentOf(threadId);
        if (parentId === undefined) return false;
        // The message that a thread was opened from has its id.
        destination = { ...toChannel(why), channelId: parentId, replyTo: threadId };
      }
      log.warn(
        { channel: threadId, to: destination.channelId, err: error },
        "thread not usable: the answer goes to the channel",
      );
      return true;
    },
    moveTo(where) {
      destination = toPosted(where);
    },
    close: () => destination?.reservation?.release(),
  };
}

function unusable(permission: string | number | undefined): string {
  return permission === undefined
    ? translate("discord.no-thread")
    : translate("discord.no-thread.permission", { permission });
}
