import { ComponentType, type APIMessage } from "discord.js";
import type { Clock } from "../../../core/clock.ts";
import { isParleyError } from "../../../core/errors.ts";
import type { Log } from "../../../core/telemetry.ts";
import { translate } from "../../../words/translate.ts";
import { type DiscordAddress, type MessageRef, commandPrefix, fromRef } from "../address.ts";
import type { DiscordApi } from "../transport/api.ts";
import { discordCode, errorCodes } from "../errors.ts";
import type { Threads } from "./threads.ts";
import { createRecent } from "../../../support/recent.ts";

/** The place where ordinary messages of a reply are posted. */
interface Destination {
  readonly channelId: string;
  /** The message that they reply to. */
  readonly replyTo?: string;
  /** Whether all of them reply to it, so that people can go on from any. The address has the default. */
  readonly isChain?: boolean;
  /** Tells people why the reply is not posted elsewhere. */
  readonly notices?: readonly string[];
  /** The reply's first message, which an earlier run posted and did not save. */
  readonly found?: MessageRef;
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
  readonly ownPosts: OwnPosts;
  /** Tells which of these messages show other turns. @throws ParleyError `store-unavailable` */
  readonly shownByOthers: (messageIds: readonly string[]) => Promise<readonly string[]>;
  /** Returns the bot's user id. */
  readonly botId: () => string;
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
    const found = await findLostMessage(api, address, {
      isOther: ({ id, author }) =>
        author.id !== options.botId() || options.ownPosts.isOfOther(id, address.eventId),
      shownByOthers: options.shownByOthers,
    });
    if (found !== undefined) return { ...toPosted(found.channelId), found };
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

/** How many messages of a channel are read. */
const maxMessages = 50;
const unreadable: ReadonlySet<number> = new Set([
  errorCodes.unknownChannel,
  errorCodes.missingAccess,
  errorCodes.missingPermissions,
]);

/**
 * Finds the first message of a reply that an earlier run posted without saving it. Nonces find it too, but
 * only for a few minutes. In the channel it replies to the question. In a thread or direct messages, where
 * turns run one after another, it is the bot's first message since the run began.
 * @param isOther whether a message is not the bot's, or belongs to another reply of this process
 * @param shownByOthers which of these messages show other turns, of whichever process
 */
async function findLostMessage(
  api: Pick<DiscordApi, "listMessages">,
  { channelId, replyTo, thread, postedAfter, messages = [], interaction }: DiscordAddress,
  {
    isOther,
    shownByOthers,
  }: {
    readonly isOther: (message: APIMessage) => boolean;
    readonly shownByOthers: (messageIds: readonly string[]) => Promise<readonly string[]>;
  },
): Promise<MessageRef | undefined> {
  if (postedAfter === undefined || messages.length > 0 || interaction !== undefined) return undefined;

  async function find(where: string, isOurs: (message: APIMessage) => boolean) {
    const read = await readMessages(api, where, postedAfter ?? "0");
    const candidates = read.filter((message) => !isOther(message) && isOurs(message)).map(({ id }) => id);
    const others = candidates.length === 0 ? [] : await shownByOthers(candidates);
    const found = candidates.findLast((id) => !others.includes(id));
    return found === undefined ? undefined : { channelId: where, messageId: found, isOwn: true };
  }

  if (replyTo === undefined) return find(channelId, isPlain);
  return (
    (await find(channelId, (message) => message.message_reference?.message_id === replyTo)) ??
    // The thread of a message has its id.
    (thread === undefined ? undefined : await find(replyTo, isPlain))
  );
}

/** Reads the first 50 messages after an id, latest first. Returns none where the bot cannot read them. */
export async function readMessages(
  api: Pick<DiscordApi, "listMessages">,
  channelId: string,
  after: string,
): Promise<APIMessage[]> {
  try {
    return await api.listMessages(channelId, { after, limit: maxMessages });
  } catch (error) {
    if (unreadable.has(discordCode(error) ?? 0)) return [];
    throw error;
  }
}

/** Excludes a refusal, which is a reply, a command's message, and a message with files. */
function isPlain(message: APIMessage): boolean {
  return (
    message.message_reference === undefined &&
    message.webhook_id === undefined &&
    message.attachments.length === 0 &&
    !answersCommand(message)
  );
}

/** A key of a command. That of the message which `/chat` begins a conversation with is another one. */
const commandKey = new RegExp(String.raw`${commandPrefix}\d+(?!\d|/first)`);

/** Whether a button says that this is a command's answer, as an ordinary message for want of its token. */
function answersCommand({ components = [] }: APIMessage): boolean {
  return components.some(
    (row) =>
      row.type === ComponentType.ActionRow &&
      row.components.some((button) => "custom_id" in button && commandKey.test(button.custom_id)),
  );
}

const maxOwnPosts = 5000;
const maxChannels = 2000;

/** The ordinary messages that this process has posted, each for the event that its reply answers. */
interface OwnPosts {
  add(channelId: string, messageId: string, eventId: string | undefined): void;
  /** Whether this process has posted the message for another event. */
  isOfOther(messageId: string, eventId: string | undefined): boolean;
  /** Returns the last one in a channel. */
  lastIn(channelId: string): string | undefined;
}

/** Remembers the last 5,000 messages. */
export function createOwnPosts(): OwnPosts {
  const events = createRecent<string>(maxOwnPosts);
  const channels = createRecent<string>(maxChannels);
  return {
    add(channelId, messageId, eventId = "") {
      events.set(messageId, eventId);
      channels.set(channelId, messageId);
    },
    isOfOther: (messageId, eventId) => (events.get(messageId) ?? eventId) !== eventId,
    lastIn: (channelId) => channels.get(channelId),
  };
}
