import { LRUCache } from "lru-cache";
import type { APIMessage, GatewayMessageCreateDispatchData } from "discord.js";
import { isParleyError, isRefusal, ParleyError } from "../../core/errors.ts";
import type { IncomingMessage } from "../../core/events.ts";
import type { Log } from "../../core/telemetry.ts";
import type { PlaceSettings, Receiver } from "../../core/platform.ts";
import { createKeyedQueue } from "../../support/keyed-queue.ts";
import { sleep } from "../../support/sleep.ts";
import { refuseInTime } from "../delivery/refuse-in-time.ts";
import { receivePatiently } from "../delivery/receive-patiently.ts";
import {
  toConversationId,
  isDirectType,
  isThreadable,
  isThreadType,
  toChannelPlace,
  toEventKey,
  toEnclosingPlaces,
  toGuildPlace,
  toReplyAddress,
  type DiscordAddress,
} from "./address.ts";
import type { DiscordApi } from "./api.ts";
import type { ChannelCache } from "./channel-cache.ts";
import type { Origins } from "./origin.ts";
import { createOutageNotices } from "./outage-notices.ts";
import { createRefusalNotices } from "./refusal-notices.ts";
import type { ReplyChains } from "./reply-chains.ts";
import { mentionsBot, quote, readMessage, toAuthor, type Names } from "./incoming.ts";

/** Ordinary messages and replies; all other types are system messages. */
const personalTypes: ReadonlySet<number> = new Set([0, 19]);

/** What {@link createMessageIntake} works with. */
export interface MessageOptions {
  readonly api: DiscordApi;
  readonly receiver: Receiver;
  readonly channels: ChannelCache;
  readonly names: (guildId: string | undefined) => Names;
  readonly origins: Pick<Origins, "ofMessage">;
  readonly chains: ReplyChains;
  /** Looks for missed messages once the store is available. */
  readonly lookUpLater: () => void;
  /** Whether a look-up that waited for the store was made now: it has taken earlier messages of the channel. */
  readonly lookUpFirst: (channelId: string) => Promise<boolean>;
  /** Aborts when the platform stops. */
  readonly signal: AbortSignal;
  readonly log: Log;
}

/** Handles MESSAGE_CREATE events, those of one channel one after another. */
export interface MessageIntake {
  /**
   * `isMissed`: sent while the bot was offline, or earlier; a refusal of it is silent, since the person may have been
   * told before. Contract: must not throw.
   */
  take(message: GatewayMessageCreateDispatchData, options?: { readonly isMissed?: boolean }): void;
  /** Takes back a notice of an earlier run, or of another instance, that is not true. Contract: must not throw. */
  settleNotice(message: APIMessage): void;
  /** Resolves when the receiver has all messages of the channel that were taken before. */
  caughtUp(channelId: string): Promise<void>;
  /** Resolves when the receiver has all messages taken so far. */
  idle(): Promise<void>;
}

/** How long accepting a message is tried before its author is told: Discord has no deadline for it. */
const acceptForMs = 5000;
/** While this process stops: time for another instance to take a message, which answers it sooner. */
const keepAfterMs = 2000;
/** How often one person is told in one channel that the bot is busy. */
const busyNoticeIntervalMs = 30_000;

/** @see {@link MessageIntake} */
export function createMessageIntake(options: MessageOptions): MessageIntake {
  const { api, receiver, channels, origins, chains, log } = options;
  const refusals = createRefusalNotices(api, log);
  const notices = createOutageNotices({ api, receiver, signal: options.signal, log });
  const queue = createKeyedQueue();
  const busyNotices = new LRUCache<string, true>({ max: 1000, ttl: busyNoticeIntervalMs });

  /** The bot's last message that is no reply, by channel. */
  const lastAnswers = new LRUCache<string, string>({ max: 1000 });
  /** Messages that were refused: a later delivery must not answer what the person was told is not answered. */
  const refused = new LRUCache<string, ParleyError>({ max: 1000 });
  let enqueued = 0;
  /** How many were enqueued when missed messages of a channel were. */
  const lookedUpAt = new LRUCache<string, number>({ max: 1000 });
  /** Channels with messages that this process, which stops, has left to the next look-up. */
  const left = new Set<string>();

  async function handle(
    message: GatewayMessageCreateDispatchData,
    takenAt: number,
    isMissed: boolean,
  ): Promise<void> {
    const before = refused.get(message.id);
    if (before !== undefined) {
      // It may have been read as a missed one first.
      if (!isMissed) await refusals.tell(message, before);
      return;
    }
    const names = options.names(message.guild_id);
    const known = { isEvent: false };
    try {
      const isInOrder = async () => isMissed || !(await options.lookUpFirst(message.channel_id));
      await receivePatiently(
        async () => {
          if (await isInOrder()) return await accept(message, names, takenAt, known);
          noteLookUp(message.channel_id);
          enqueue(message, takenAt, isMissed);
          return "duplicate";
        },
        { forMs: acceptForMs },
      );
    } catch (error) {
      if (isRefusal(error)) return await refusePrivately(message, error, isMissed);
      log.error({ message: message.id, err: error }, "message not accepted");
      if (isParleyError(error, "store-unavailable") && receiver.isStopping()) {
        left.add(message.channel_id);
        // This process cannot learn any more whether it was accepted. Its next start, or another instance, looks it up.
        return log.info({ message: message.id }, "message left for the next look-up");
      }
      // Its author may have been told or answered long ago.
      if (isParleyError(error, "store-unavailable") && isMissed) return options.lookUpLater();
      const isForBot = known.isEvent ? true : await isCertainlyForBot(message, names);
      // Perhaps of a conversation that only the store knows.
      if (isForBot === undefined && isParleyError(error, "store-unavailable")) options.lookUpLater();
      if (isForBot !== true) return;
      // Only this instance's store is unavailable. If it is not an answer to this message, the look-up finds it.
      if (isParleyError(error, "store-unavailable") && isBeingAnswered(message)) options.lookUpLater();
      // Discord does not deliver it again, so that the person must be told.
      else await refuse(message, error);
    }
  }

  /** Missed messages may be in the queue by now: live ones that are before them have to go behind. */
  function noteLookUp(channelId: string): void {
    lookedUpAt.set(channelId, (enqueued += 1));
  }

  function enqueue(message: GatewayMessageCreateDispatchData, takenAt: number, isMissed: boolean): void {
    const position = (enqueued += 1);
    const handleInOrder = async (): Promise<void> => {
      const isBefore = position < (lookedUpAt.get(message.channel_id) ?? 0);
      if (isBefore && !isMissed) enqueue(message, takenAt, isMissed);
      else await handle(message, takenAt, isMissed);
    };
    void queue
      .run(message.channel_id, handleInOrder)
      .catch((error: unknown) => log.error({ message: message.id, err: error }, "message handling failed"));
  }

  /** While this process stops, another instance takes it first; otherwise the next start answers it. */
  async function accept(
    message: GatewayMessageCreateDispatchData,
    names: Names,
    takenAt: number,
    known: { isEvent: boolean },
  ): Promise<"accepted" | "duplicate"> {
    const event = await toEvent(message, names);
    if (event === undefined) return "duplicate";
    known.isEvent = true;
    // The next look-up must find it after those.
    if (left.has(message.channel_id)) throw new ParleyError("store-unavailable", "an earlier one was left");
    if (receiver.isStopping()) await sleep(Math.max(0, takenAt + keepAfterMs - performance.now()));
    const result = await (receiver.isStopping() ? receiver.keep(event) : receiver.receive(event));
    channels.open(event.conversationId);
    return result;
  }

  /** Tells the person why the message is not taken, and makes that true: it is not answered later. */
  async function refuse(message: GatewayMessageCreateDispatchData, error: unknown): Promise<void> {
    if (isParleyError(error, "busy")) {
      // The store is available: it says first whether another instance took the message.
      const outcome = await refuseInTime(receiver, toEventKey(message.id));
      if (outcome === "accepted" || !isFirstBusyNotice(message)) return;
    }
    try {
      await notices.tell(message, error);
    } catch (untold) {
      // Nothing was said, so that the message may still be answered.
      if (isParleyError(error, "store-unavailable")) options.lookUpLater();
      throw untold;
    }
  }

  /** What the rules refuse, they refuse whenever it is delivered; what was over a limit must not be answered later. */
  async function refusePrivately(
    message: GatewayMessageCreateDispatchData,
    error: ParleyError,
    isMissed: boolean,
  ): Promise<void> {
    const isForEver = isParleyError(error, "access-denied");
    if (!isForEver && (await refuseInTime(receiver, toEventKey(message.id))) === "accepted") return;
    log.info({ message: message.id, code: error.code }, "message refused");
    refused.set(message.id, error);
    // Who did not speak to the bot is told nothing.
    const isAddressed = (await isCertainlyForBot(message, options.names(message.guild_id))) !== false;
    if (!isMissed && isAddressed) await refusals.tell(message, error);
  }

  /** Whether another instance has posted an answer after the message. The notices of refusals are replies. */
  function isBeingAnswered({ id, channel_id: channelId }: GatewayMessageCreateDispatchData): boolean {
    // The thread that is opened for a message has its id.
    return [channelId, id].some((one) => BigInt(lastAnswers.get(one) ?? 0) > BigInt(id));
  }

  function noteAnswer(message: GatewayMessageCreateDispatchData): void {
    const isOwn = message.author.id === options.names(message.guild_id).botId;
    if (isOwn && message.message_reference === undefined) lastAnswers.set(message.channel_id, message.id);
  }

  function settleNotice(message: APIMessage): void {
    if (message.author.id === options.names(undefined).botId) notices.settle(message);
  }

  /** A person who sends very many messages is told once in a while, not once a message. */
  function isFirstBusyNotice({ author, channel_id: channelId }: GatewayMessageCreateDispatchData): boolean {
    const who = `${channelId} ${author.id}`;
    const isFirst = !busyNotices.has(who);
    if (isFirst) busyNotices.set(who, true);
    return isFirst;
  }

  /** Whether it is for the bot, as far as is known without the store. `undefined`: in a thread that people opened. */
  async function isCertainlyForBot(
    message: GatewayMessageCreateDispatchData,
    names: Names,
  ): Promise<boolean | undefined> {
    if (!isFromPerson(message)) return false;
    const channelId = message.channel_id;
    if (mentionsBot(message, names) || channels.isOpen(toConversationId(channelId))) return true;
    const type = await channels.typeOf(message);
    if (!isThreadType(type)) return isDirectType(type);
    return (await isOwnThread(channelId)) ? true : undefined;
  }

  async function isOwnThread(channelId: string): Promise<boolean> {
    return (await channels.ownerOf(channelId)) === options.names(undefined).botId;
  }

  /** The event of a message. `undefined`: it is not for the bot. */
  async function toEvent(
    message: GatewayMessageCreateDispatchData,
    names: Names,
  ): Promise<IncomingMessage | undefined> {
    if (!isFromPerson(message)) return undefined;
    const channelType = await channels.typeOf(message);
    const isAddressed = isDirectType(channelType) || mentionsBot(message, names);
    const address = { channelId: message.channel_id, channelType, eventId: message.id };
    const withOrigin = async (event: IncomingMessage): Promise<IncomingMessage> => ({
      ...event,
      origin: await origins.ofMessage(message, channelType),
    });
    if (isDirectType(channelType) || isThreadType(channelType)) {
      const conversationId = toConversationId(message.channel_id);
      if (!isAddressed && !(await isOurs(message.channel_id, conversationId))) return undefined;
      const isKnown = await receiver.knows(conversationId);
      // Also of a known conversation: the run that was to store its places may have been killed.
      const parent = isThreadType(channelType) ? await channels.parentOf(message.channel_id) : undefined;
      return withOrigin({
        ...toMessage(message, names, conversationId, address, isKnown),
        ...toEnclosingPlaces(message.guild_id, [message.channel_id, parent]),
      });
    }
    const place = await settingsOf(message);
    if (!isAddressed && (place.answerTo === "mentions" || isEmpty(message, names))) return undefined;
    const isInChannel = place.answerIn === "channel";
    return withOrigin(
      isInChannel
        ? toMessageInChannel(message, names, address)
        : await toChannelEvent(message, names, address),
    );
  }

  /** How the channel of a message is answered. Most messages of a server are for nobody: it is mostly in memory. */
  async function settingsOf(message: GatewayMessageCreateDispatchData): Promise<PlaceSettings> {
    const { guild_id: guildId, channel_id: channelId } = message;
    return receiver.placeSettings({
      ...(guildId === undefined ? {} : { server: toGuildPlace(guildId) }),
      channel: toChannelPlace(channelId),
    });
  }

  /** Without the Message Content Intent, messages that do not mention the bot arrive empty. */
  function isEmpty(message: GatewayMessageCreateDispatchData, names: Names): boolean {
    const { text, attachments } = readMessage(message, names);
    return text === "" && attachments.length === 0;
  }

  /** Answered in the channel, which is one conversation. */
  function toMessageInChannel(
    message: GatewayMessageCreateDispatchData,
    names: Names,
    address: DiscordAddress,
  ): IncomingMessage {
    const conversationId = toConversationId(message.channel_id);
    const isOwnAnswer = message.referenced_message?.author.id === names.botId;
    return toMessage(message, names, conversationId, { ...address, replyTo: message.id }, isOwnAnswer);
  }

  /** Whether every message in a thread is for the bot: a known conversation, or a thread that the bot opened. */
  async function isOurs(channelId: string, conversationId: string): Promise<boolean> {
    if (channels.isOpen(conversationId) || (await receiver.knows(conversationId))) return true;
    return isOwnThread(channelId);
  }

  /**
   * A mention in a channel opens a thread. A reply to an answer that was not posted in a thread continues its
   * conversation.
   */
  async function toChannelEvent(
    message: GatewayMessageCreateDispatchData,
    names: Names,
    address: DiscordAddress,
  ): Promise<IncomingMessage> {
    const inChain = { ...address, isChain: true };
    const replied = message.referenced_message ?? undefined;
    const conversationId = replied === undefined ? undefined : await chains.find(replied);
    if (conversationId !== undefined) {
      chains.note(message.id, conversationId);
      return toMessage(message, names, conversationId, { ...inChain, replyTo: message.id }, true);
    }
    const { text } = readMessage(message, names);
    return toMessage(
      message,
      names,
      toConversationId(message.id),
      {
        ...inChain,
        replyTo: message.id,
        ...(isThreadable(address.channelType) ? { thread: { title: text } } : {}),
      },
      false,
    );
  }

  function toMessage(
    message: GatewayMessageCreateDispatchData,
    names: Names,
    conversationId: string,
    address: DiscordAddress,
    isKnown: boolean,
  ): IncomingMessage {
    const { text, attachments } = readMessage(message, names);
    // The replied-to message is part of the question, unless the conversation contains it already.
    const replied = isKnown ? undefined : (message.referenced_message ?? undefined);
    const quoted = replied === undefined ? undefined : readReplied(replied, names);
    const whole = [quoted?.text ?? "", text].filter((part) => part !== "").join("\n\n");
    const files = [...attachments, ...(quoted?.attachments ?? [])];
    return {
      kind: "message",
      key: toEventKey(message.id),
      platform: "discord",
      conversationId,
      author: toAuthor(message.author, message.member),
      sentAt: Date.parse(message.timestamp),
      address: toReplyAddress(address),
      ...toEnclosingPlaces(message.guild_id, [message.channel_id]),
      text: whole === "" && files.length === 0 ? `@${names.botName}` : whole,
      attachments: files,
    };
  }

  return {
    take(message, { isMissed = false } = {}) {
      noteAnswer(message);
      settleNotice(message);
      if (isMissed) noteLookUp(message.channel_id);
      enqueue(message, performance.now(), isMissed);
    },
    settleNotice,
    caughtUp: (channelId) => queue.run(channelId, () => Promise.resolve()),
    idle: () => queue.idle(),
  };
}

function isFromPerson({ author, type, webhook_id: webhookId }: APIMessage): boolean {
  return author.bot !== true && author.system !== true && webhookId === undefined && personalTypes.has(type);
}

function readReplied(replied: APIMessage, names: Names) {
  const { text, attachments } = readMessage(replied, names);
  return { text: quote(`${toAuthor(replied.author).name} wrote`, text), attachments };
}
