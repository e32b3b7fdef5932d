import type { APIMessage, GatewayMessageCreateDispatchData } from "discord.js";
import type { IncomingMessage } from "../../core/events.ts";
import type { MessageContent, PlaceSettings, Receiver } from "../../core/platform.ts";
import {
  isDirectType,
  isThreadable,
  isThreadType,
  toChannelPlace,
  toConversationId,
  toEnclosingPlaces,
  toEventKey,
  toGuildPlace,
  toReplyAddress,
  type DiscordAddress,
} from "./address.ts";
import type { ChannelCache } from "./channel-cache.ts";
import type { HiddenContentNotices } from "./hidden-content-notices.ts";
import { mentionsBot, quote, readMessage, toAuthor, toPlainText, type Names } from "./incoming.ts";
import type { Locales } from "./locales.ts";
import type { Origins } from "./origin.ts";
import type { ReplyChains } from "./reply-chains.ts";

/** Ordinary messages and replies; all other types are system messages. */
const personalTypes: ReadonlySet<number> = new Set([0, 19]);

/** Decides which messages are for the bot, and turns those into events. */
export interface MessageEvents {
  /**
   * The event of a message. `undefined`: it is not for the bot, or Discord hides what it says.
   * @throws ParleyError of the store or of Discord, where that cannot be decided
   */
  toEvent(message: GatewayMessageCreateDispatchData, names: Names): Promise<IncomingMessage | undefined>;
  /**
   * What an edited message says. `before`: what it said, which decides whether the message that it replies to is part of
   * it. `undefined`: Discord hides it.
   */
  contentOf(message: APIMessage, names: Names, before: MessageContent): MessageContent | undefined;
  /** Whether the bot opened a thread. */
  isOwnThread(channelId: string): Promise<boolean>;
}

/** @see {@link MessageEvents} */
export function createMessageEvents(options: {
  readonly receiver: Pick<Receiver, "answersTo" | "knows" | "placeSettings">;
  readonly channels: ChannelCache;
  readonly origins: Pick<Origins, "ofMessage">;
  readonly chains: ReplyChains;
  readonly hiddenContent: HiddenContentNotices;
  readonly locales: Pick<Locales, "load" | "of">;
  /** The bot's user id. */
  readonly botId: () => string;
}): MessageEvents {
  const { receiver, channels, origins, chains, hiddenContent } = options;

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
      // Also of a known conversation: the run that was to store its places may have been killed.
      const parent = isThreadType(channelType) ? await channels.parentOf(message.channel_id) : undefined;
      const isOurs = isDirectType(channelType) || (await isAnsweredWhole(message, parent, isAddressed));
      if (!isAddressed && !isOurs) return undefined;
      await options.locales.load(message.author.id);
      if (isHidden(message, names, channelType)) return hiddenContent.tell(message);
      // In people's thread a reply says what is meant; only the bot's own answers are in the conversation for sure.
      const isKnown = isOurs ? await receiver.knows(conversationId) : repliesToBot(message, names);
      return withOrigin({
        ...toMessage(message, names, conversationId, address, isKnown),
        ...toEnclosingPlaces(message.guild_id, [message.channel_id, parent]),
        ...(isOurs ? {} : { inRoom: true }),
      });
    }
    const place = await settingsOf(message);
    if (!isAddressed && place.answerTo === "mentions") return undefined;
    await options.locales.load(message.author.id);
    if (isHidden(message, names, channelType)) return hiddenContent.tell(message);
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

  /**
   * Whether it arrived without its content: without the Message Content Intent only direct messages and those that
   * mention the bot itself have it. A mention of the bot's role does not count.
   */
  function isHidden(message: GatewayMessageCreateDispatchData, names: Names, channelType: number): boolean {
    if (isDirectType(channelType) || message.mentions.some(({ id }) => id === names.botId)) return false;
    if (message.content !== "") return false;
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
    const isKnown = repliesToBot(message, names);
    return toMessage(message, names, conversationId, { ...address, replyTo: message.id }, isKnown);
  }

  /** Whether every message in a thread is for the bot: the thread was given to it, or it opened the thread. */
  async function isAnsweredWhole(
    { channel_id: channelId, guild_id: guildId }: GatewayMessageCreateDispatchData,
    parent: string | undefined,
    isAddressed: boolean,
  ): Promise<boolean> {
    const answerTo = await receiver.answersTo(toConversationId(channelId), {
      ...(guildId === undefined ? {} : { server: toGuildPlace(guildId) }),
      ...(parent === undefined ? {} : { channel: toChannelPlace(parent) }),
    });
    if (answerTo !== undefined) return answerTo === "every-message";
    const [isOwn] = await Promise.allSettled([isOwnThread(channelId)]);
    if (isOwn.status === "fulfilled") return isOwn.value;
    // Who calls the bot is answered, whoever opened the thread.
    if (!isAddressed) throw isOwn.reason;
    return false;
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
    const title = toPlainText(message, names) || readMessage(message, names).text;
    return toMessage(
      message,
      names,
      toConversationId(message.id),
      {
        ...inChain,
        replyTo: message.id,
        ...(isThreadable(address.channelType) ? { thread: { title } } : {}),
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
    // The replied-to message is part of the question, unless the conversation contains it already.
    const { text, attachments } = toContent(message, names, !isKnown);
    return {
      kind: "message",
      key: toEventKey(message.id),
      platform: "discord",
      conversationId,
      author: toAuthor(
        message.author,
        message.member,
        options.locales.of(message.author.id, message.guild_id),
      ),
      sentAt: Date.parse(message.timestamp),
      address: toReplyAddress(address),
      ...toEnclosingPlaces(message.guild_id, [message.channel_id]),
      text: text === "" && attachments.length === 0 ? `@${names.botName}` : text,
      attachments,
      ...(isKnown ? toRepliedTo(message, names) : {}),
    };
  }

  async function isOwnThread(channelId: string): Promise<boolean> {
    return (await channels.ownerOf(channelId)) === options.botId();
  }

  function contentOf(message: APIMessage, names: Names, before: MessageContent): MessageContent | undefined {
    const replied = message.referenced_message ?? undefined;
    const quoted = replied === undefined ? "" : readReplied(replied, names).text;
    const content = toContent(message, names, quoted !== "" && before.text.startsWith(quoted));
    if (content.text !== "" || content.attachments.length > 0) return content;
    return mentionsBot(message, names) ? { ...content, text: `@${names.botName}` } : undefined;
  }

  return { toEvent, contentOf, isOwnThread };
}

/** The words and files of a message. `isQuoting`: with those of the message that it replies to. */
function toContent(message: APIMessage, names: Names, isQuoting: boolean): MessageContent {
  const { text, attachments } = readMessage(message, names);
  const replied = isQuoting ? (message.referenced_message ?? undefined) : undefined;
  const quoted = replied === undefined ? undefined : readReplied(replied, names);
  return {
    text: [quoted?.text ?? "", text].filter((part) => part !== "").join("\n\n"),
    attachments: [...attachments, ...(quoted?.attachments ?? [])],
  };
}

/** Whether a person wrote it: not a bot, a webhook or Discord itself. */
export function isFromPerson({ author, type, webhook_id: webhookId }: APIMessage): boolean {
  return author.bot !== true && author.system !== true && webhookId === undefined && personalTypes.has(type);
}

/** The bot's own message that it replies to: a picture there is the one that is meant. */
function toRepliedTo(message: APIMessage, names: Names): Pick<IncomingMessage, "repliesTo"> {
  const replied = message.referenced_message;
  if (replied === undefined || replied === null || !repliesToBot(message, names)) return {};
  const { attachments } = readMessage(replied, names);
  return { repliesTo: { key: toEventKey(replied.id), attachments } };
}

function repliesToBot({ referenced_message: replied }: APIMessage, { botId }: Names): boolean {
  return replied?.author.id === botId;
}

function readReplied(replied: APIMessage, names: Names) {
  const { text, attachments } = readMessage(replied, names);
  return { text: quote(`${toAuthor(replied.author).name} wrote`, text), attachments };
}
