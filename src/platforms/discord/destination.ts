import { isParleyError } from "../../core/errors.ts";
import type { Log } from "../../core/telemetry.ts";
import type { DeliveryScheduler, Reservation } from "../delivery/delivery-scheduler.ts";
import type { DiscordAddress } from "./address.ts";
import type { DiscordApi } from "./api.ts";
import { lanes } from "./delivery.ts";
import { findLostMessage } from "./lost-message.ts";
import { fromRef, type MessageRef } from "./message-ref.ts";
import type { OwnPosts } from "./own-posts.ts";
import type { Threads } from "./threads.ts";

/** Where ordinary messages of a reply are posted. */
export interface Destination {
  readonly channelId: string;
  /** What they reply to. */
  readonly replyTo?: string;
  /** A thread that the bot opened: without permission to post in it, the channel is used. */
  readonly isOptional?: boolean;
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
  /** From now on the channel: nothing can be posted in the thread. */
  useChannel(permission: string): void;
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
  readonly ownPosts: Pick<OwnPosts, "has">;
  /** The bot's user id. */
  readonly botId: () => string;
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
  const { channelId, replyTo, thread, interaction } = address;
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
      notices: [`${why} Reply to this message to go on.`],
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
    });
    if (found !== undefined) return { ...toPosted(found.channelId), found };
    if (thread === undefined || replyTo === undefined)
      return { channelId, ...(replyTo === undefined ? {} : { replyTo }) };
    const waitMs = scheduler.waitMs([lanes.threads(channelId)], "files");
    if (waitMs <= maxThreadWaitMs && scheduler.waitMs([lanes.global], "files") <= maxGlobalWaitMs)
      return openThread(replyTo, thread.title, maxThreadWaitMs);
    const reservation = scheduler.reserve(lanes.posts(channelId));
    if (reservation !== undefined) return { ...toChannel(crowded), reservation };
    return waitMs > channelWaitMs
      ? toChannel(crowded)
      : openThread(replyTo, thread.title, channelWaitMs + maxThreadWaitMs);
  }

  async function openThread(questionId: string, title: string, maxWaitMs: number): Promise<Destination> {
    const deadline = performance.now() + maxWaitMs;
    try {
      const id = await threads.fromMessage(channelId, questionId, title, { deadline });
      return { channelId: id, isOptional: true };
    } catch (error) {
      if (isParleyError(error, "platform-unreachable") && error.retryAfterMs !== undefined) {
        log.info({ channel: channelId, err: error }, "no room for a thread: posting in the channel");
        return toChannel(crowded);
      }
      if (!isParleyError(error, "platform-forbidden") && !isParleyError(error, "platform-rejected"))
        throw error;
      log.warn({ channel: channelId, err: error }, "thread not opened: posting in the channel");
      return toChannel(unusable(error.detail["permission"]));
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
    useChannel(permission) {
      destination = toChannel(unusable(permission));
    },
    moveTo(where) {
      destination = toPosted(where);
    },
    close: () => destination?.reservation?.release(),
  };
}

const crowded = "Discord limits new threads at the moment, so this answer is here.";

function unusable(permission: string | number | undefined): string {
  return `No thread could be used here${permission === undefined ? "" : ` (missing: ${permission})`}.`;
}
