import { MessageType, type APIMessage, type GatewayMessageCreateDispatchData } from "discord.js";
import { isAnswered, toPieces, type AnswerRule, type SpokenMessage } from "../../../core/addressee.ts";
import { isParleyError } from "../../../core/errors.ts";
import type { IncomingMessage } from "../../../core/events.ts";
import type { MessageContent, PlaceSettings, Receiver } from "../../../core/platform.ts";
import type { Log } from "../../../core/telemetry.ts";
import { inLanguage, translate } from "../../../words/translate.ts";
import { languages } from "../../../words/languages.ts";
import {
  toChannelPlace,
  toConversationId,
  isDirectType,
  isThreadable,
  isThreadType,
  toEnclosingPlaces,
  toEventKey,
  toGuildPlace,
  toReplyAddress,
  type DiscordAddress,
} from "../address.ts";
import type { DiscordApi } from "../transport/api.ts";
import type { Directory } from "../transport/directory.ts";
import { toReplyOnce, toSentence } from "../reply/content.ts";
import {
  isFirstOfPost,
  mentionsBot,
  postTitleOf,
  quote,
  readMessage,
  toAuthor,
  toPlainText,
  withPostTitle,
  type Names,
} from "./incoming.ts";
import type { Locales } from "./locales.ts";
import type { Origins } from "./origin.ts";
import type { ReplyChains } from "./reply-chains.ts";
import { createRecent } from "../../../support/recent.ts";

/** These are ordinary messages and replies. All other types are system messages. */
const personalTypes: ReadonlySet<number> = new Set([MessageType.Default, MessageType.Reply]);

/** Where a message is. */
type PlacedMessage = Pick<GatewayMessageCreateDispatchData, "channel_id" | "guild_id">;

/** Decides which messages are for the bot, and turns those into events. */
export interface MessageEvents {
  /**
   * Returns the event of a message, or `undefined` where it is not for the bot, or Discord hides its content.
   * @throws ParleyError of the store or of Discord, where that cannot be decided
   */
  toEvent(message: GatewayMessageCreateDispatchData, names: Names): Promise<IncomingMessage | undefined>;
  /**
   * Returns what an edited message says, or `undefined` where Discord hides it. `before` is what it said,
   * which decides whether the message that it replies to is part of it.
   */
  contentOf(message: APIMessage, names: Names, before: MessageContent): MessageContent | undefined;
  /**
   * Whether a message that was edited is not for the bot as it is now. `false` where that cannot be known.
   * @throws ParleyError `store-unavailable`
   */
  isToOthers(message: APIMessage & PlacedMessage, names: Names): Promise<boolean>;
  /** Has what is said to others in a thread read with the next question, if the thread is the bot's. */
  hearAside(message: APIMessage & PlacedMessage): Promise<void>;
  /** Whether the bot opened a thread. */
  isOwnThread(channelId: string): Promise<boolean>;
}

export function createMessageEvents(options: {
  readonly receiver: Pick<Receiver, "answersTo" | "heardAside" | "knows" | "placeSettings">;
  readonly channels: Directory;
  readonly origins: Pick<Origins, "ofMessage">;
  readonly chains: ReplyChains;
  readonly hiddenContent: HiddenContentNotices;
  readonly locales: Pick<Locales, "load" | "of">;
  /** The bot's user id. */
  readonly botId: () => string;
  /** Unix milliseconds. */
  readonly now: () => number;
}): MessageEvents {
  const { receiver, channels, origins, chains, hiddenContent } = options;

  /** Returns how the channel of a message is answered. It is one read of the store, for most messages. */
  function ruleInChannel({
    guild_id: guildId,
    channel_id: channelId,
  }: PlacedMessage): Promise<PlaceSettings> {
    return receiver.placeSettings({
      ...(guildId === undefined ? {} : { server: toGuildPlace(guildId) }),
      channel: toChannelPlace(channelId),
    });
  }

  /**
   * Returns how a thread or direct messages are answered. By default people talk to the bot in a thread that
   * it was given, or opened. @param isCall whether the message calls the bot
   */
  async function ruleInThread(
    { channel_id: channelId, guild_id: guildId }: PlacedMessage,
    parent: string | undefined,
    channelType: number,
    isCall: boolean,
  ): Promise<AnswerRule> {
    if (isDirectType(channelType)) return { answerTo: "every-message" };
    const rule = await receiver.answersTo(toConversationId(channelId), {
      ...(guildId === undefined ? {} : { server: toGuildPlace(guildId) }),
      ...(parent === undefined ? {} : { channel: toChannelPlace(parent) }),
    });
    if (rule !== undefined) return rule;
    const [isOwn] = await Promise.allSettled([isOwnThread(channelId)]);
    // Whoever calls the bot is answered, whoever opened the thread.
    if (isOwn.status === "rejected" && !isCall) throw isOwn.reason;
    const isOurs = isOwn.status === "fulfilled" && isOwn.value;
    return { answerTo: isOurs ? "addressed" : "mentions", isDefault: true };
  }

  async function ruleOf(message: PlacedMessage, channelType: number, isCall: boolean): Promise<AnswerRule> {
    if (!isThreadType(channelType) && !isDirectType(channelType)) return ruleInChannel(message);
    const parent = isThreadType(channelType) ? await parentOf(message) : undefined;
    return ruleInThread(message, parent, channelType, isCall);
  }

  async function isOwnThread(channelId: string): Promise<boolean> {
    return (await channels.channel(channelId)).ownerId === options.botId();
  }

  async function parentOf({ channel_id: channelId }: PlacedMessage): Promise<string | undefined> {
    return (await channels.channelIfReadable(channelId))?.parentId;
  }

  /** Returns the event of a message, or `undefined` where it is not for the bot. */
  async function toEvent(
    message: GatewayMessageCreateDispatchData,
    names: Names,
  ): Promise<IncomingMessage | undefined> {
    if (!isFromPerson(message) && !isFromApp(message, names.botId)) return undefined;
    const channelType = await channels.typeOf(message);
    const spoken = toSpoken(message, names, isDirectType(channelType));
    if (spoken.author === "app" && !isThreadType(channelType)) return undefined;
    const address = { channelId: message.channel_id, channelType, eventId: message.id };
    const withOrigin = async (event: IncomingMessage): Promise<IncomingMessage> => ({
      ...event,
      origin: await origins.ofMessage(message, channelType),
    });
    if (isDirectType(channelType) || isThreadType(channelType)) {
      const conversationId = toConversationId(message.channel_id);
      // A known conversation needs this too, since the run that was to store its places may have been killed.
      const parent = isThreadType(channelType) ? await parentOf(message) : undefined;
      const rule = await ruleInThread(message, parent, channelType, spoken.isCall === true);
      const isOurs = rule.answerTo !== "mentions";
      if (!isAnswered(spoken, rule)) {
        if (isOurs) await receiver.heardAside(conversationId, Date.parse(message.timestamp));
        return undefined;
      }
      await options.locales.load(message.author.id);
      if (isHidden(message, names, channelType)) return hiddenContent.tell(message);
      // A reply quotes what it means, unless that is surely stored: in the bot's thread what was said to the
      // bot.
      const isToOthers = spoken.repliesTo === "person" || spoken.repliesTo === "app";
      const isKnown = isOurs
        ? !isToOthers && (await receiver.knows(conversationId))
        : repliesToBot(message, names);
      const event = toMessage(message, names, conversationId, address, isKnown);
      const title = isFirstOfPost(message) ? (await channels.channelIfReadable(message.id))?.name : undefined;
      return withOrigin({
        ...event,
        text: withPostTitle(title, event.text),
        ...toEnclosingPlaces(message.guild_id, [message.channel_id, parent]),
        ...(isOurs ? {} : { inRoom: true }),
      });
    }
    const place = await ruleInChannel(message);
    if (!isAnswered(spoken, place)) return undefined;
    await options.locales.load(message.author.id);
    if (isHidden(message, names, channelType)) return hiddenContent.tell(message);
    const isInChannel = place.answerIn === "channel";
    return withOrigin(
      isInChannel
        ? toMessageInChannel(message, names, address)
        : await toChannelEvent(message, names, address),
    );
  }

  async function isToOthers(message: APIMessage & PlacedMessage, names: Names): Promise<boolean> {
    if (!isFromPerson(message)) return false;
    try {
      const channelType = await channels.typeOf(message);
      const spoken = toSpoken(message, names, isDirectType(channelType));
      return spoken.isCall !== true && !isAnswered(spoken, await ruleOf(message, channelType, false));
    } catch (error) {
      if (isParleyError(error, "store-unavailable")) throw error;
      return false;
    }
  }

  async function hearAside(message: APIMessage & PlacedMessage): Promise<void> {
    const channelType = await channels.typeOf(message);
    if (!isThreadType(channelType)) return;
    const { answerTo } = await ruleOf(message, channelType, true);
    if (answerTo !== "mentions")
      await receiver.heardAside(toConversationId(message.channel_id), Date.parse(message.timestamp));
  }

  /**
   * Whether the message arrived without its content. Without the Message Content Intent, only direct messages
   * and those that mention the bot itself have it. A mention of the bot's role does not count.
   */
  function isHidden(message: GatewayMessageCreateDispatchData, names: Names, channelType: number): boolean {
    if (isDirectType(channelType) || message.mentions.some(({ id }) => id === names.botId)) return false;
    if (message.content !== "") return false;
    const { text, attachments } = readMessage(message, names);
    return text === "" && attachments.length === 0;
  }

  /** Makes the event of a message that is answered in the channel, which is one conversation. */
  function toMessageInChannel(
    message: GatewayMessageCreateDispatchData,
    names: Names,
    address: DiscordAddress,
  ): IncomingMessage {
    const conversationId = toConversationId(message.channel_id);
    const isKnown = repliesToBot(message, names);
    return toMessage(message, names, conversationId, { ...address, replyTo: message.id }, isKnown);
  }

  /**
   * Makes the event of a message in a channel. A mention opens a thread. A reply to an answer that was not
   * posted in a thread continues its conversation.
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
      ...(typeof message.edited_timestamp === "string"
        ? {
            edit: {
              at: Date.parse(message.edited_timestamp),
              takenAt: options.now(),
              count: 0,
              attemptsBefore: 0,
            },
          }
        : {}),
      address: toReplyAddress(address),
      ...toEnclosingPlaces(message.guild_id, [message.channel_id]),
      text: text === "" && attachments.length === 0 ? `@${names.botName}` : text,
      attachments,
      ...(isKnown ? toRepliedTo(message, names) : {}),
    };
  }

  function contentOf(message: APIMessage, names: Names, before: MessageContent): MessageContent | undefined {
    const replied = message.referenced_message ?? undefined;
    const quoted = replied === undefined ? "" : readReplied(replied, names).text;
    const content = toContent(message, names, quoted !== "" && before.text.startsWith(quoted));
    if (content.text !== "" || content.attachments.length > 0)
      return {
        ...content,
        text: withPostTitle(isFirstOfPost(message) ? postTitleOf(before.text) : undefined, content.text),
      };
    return mentionsBot(message, names) ? { ...content, text: `@${names.botName}` } : undefined;
  }

  return {
    toEvent,
    contentOf,
    isToOthers,
    hearAside,
    isOwnThread,
  };
}

/** Returns the words and files of a message. `isQuoting` adds those of the message that it replies to. */
function toContent(message: APIMessage, names: Names, isQuoting: boolean): MessageContent {
  const { text, attachments } = readMessage(message, names);
  const replied = isQuoting ? (message.referenced_message ?? undefined) : undefined;
  const quoted = replied === undefined ? undefined : readReplied(replied, names);
  return {
    text: [quoted?.text ?? "", text].filter((part) => part !== "").join("\n\n"),
    attachments: [...attachments, ...(quoted?.attachments ?? [])],
  };
}

/** Whether a person wrote it, and not a bot, a webhook or Discord itself. */
export function isFromPerson({ author, type, webhook_id: webhookId }: APIMessage): boolean {
  return author.bot !== true && author.system !== true && webhookId === undefined && personalTypes.has(type);
}

/** Whether another bot or a webhook posted it. */
export function isFromApp({ author, webhook_id: webhookId }: APIMessage, botId: string): boolean {
  return (author.bot === true || webhookId !== undefined) && author.id !== botId;
}

/** Mentions of people, roles and everybody. */
const anyMention = /<@[!&]?\d+>|@(?:everyone|here)\b/g;

/** Returns what decides whether a message is for the bot. */
export function toSpoken(message: APIMessage, names: Names, isDirect: boolean): SpokenMessage {
  const ofBot = new Set([`<@${names.botId}>`, `<@!${names.botId}>`, `<@&${names.botRoleId}>`]);
  return {
    author: isFromPerson(message) ? "person" : "app",
    pieces: toPieces(message.content.replaceAll(/<a?(:\w+:)\d+>/g, "$1"), anyMention, (one) =>
      ofBot.has(one),
    ),
    isCall: isDirect || mentionsBot(message, names),
    repliesTo: toWhom(message, names),
    botName: names.botName,
  };
}

/** Whom a message replies to. A forwarded message refers to another one too, and so do threads and pins. */
function toWhom(message: APIMessage, names: Names): SpokenMessage["repliesTo"] {
  const replied = message.type === MessageType.Reply ? message.referenced_message : undefined;
  if (replied === undefined || replied === null) return undefined;
  if (repliesToBot(message, names)) return "bot";
  if (isFromApp(replied, names.botId)) return "app";
  return replied.author.id === message.author.id ? "self" : "person";
}

/** Returns the bot's own message that it replies to. A picture there is the one that is meant. */
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

const maxChannels = 5000;
/** How many messages are searched for a notice of an earlier run. */
const maxRead = 50;

/** A message that arrived without its content. */
interface HiddenMessage {
  readonly id: string;
  readonly channel_id: string;
}

/** Tells people that their messages cannot be read. */
interface HiddenContentNotices {
  /**
   * Replies once in each thread or channel, where the application has no Message Content Intent. Resolves
   * when that is done. Contract: must not throw.
   */
  tell(message: HiddenMessage): Promise<undefined>;
}

/**
 * Creates the notices. A notice of an earlier run is found among the last messages, and the nonce keeps
 * several instances from telling it twice.
 */
export function createHiddenContentNotices(options: {
  readonly api: Pick<DiscordApi, "createMessage" | "listMessages">;
  /** Whether messages have their content, so that there was nothing to read in them. */
  readonly readsContents: () => boolean;
  readonly botId: () => string;
  readonly log: Log;
}): HiddenContentNotices {
  const { api, log } = options;
  const told = createRecent(maxChannels);

  async function isTold(channelId: string): Promise<boolean> {
    const messages = await api.listMessages(channelId, { limit: maxRead });
    const notices = languages.map((language) => inLanguage(language, toNotice)).map(toSentence);
    return messages.some(
      ({ author, content }) =>
        author.id === options.botId() && notices.some((notice) => notice.content === content),
    );
  }

  return {
    async tell({ id, channel_id: channelId }) {
      if (options.readsContents() || told.has(channelId)) return undefined;
      told.set(channelId, true);
      log.warn({ channel: channelId }, "message not readable: the Message Content Intent is off");
      try {
        if (await isTold(channelId)) return undefined;
        await api.createMessage(channelId, toReplyOnce(id, toNotice(), `c${channelId}`));
      } catch (error) {
        log.info({ channel: channelId, err: error }, "notice of hidden contents not delivered");
      }
      return undefined;
    },
  };
}

function toNotice(): string {
  return translate("notice.hidden-content");
}
