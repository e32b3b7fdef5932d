import { MessageType, type APIMessage, type GatewayMessageCreateDispatchData } from "discord.js";
import { toPieces, type SpokenMessage } from "../../../core/addressee.ts";
import { isParleyError } from "../../../core/errors.ts";
import type { IncomingMessage } from "../../../core/events.ts";
import type { Aside, MessageFacts, Place, Placement } from "../../../core/placement.ts";
import type { ConversationHistory, MessageContent, Receiver } from "../../../core/receiver.ts";
import type { Log } from "../../../core/telemetry.ts";
import { translate } from "../../../words/translate.ts";
import {
  toAuthorId,
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
import { toReplyOnce } from "../reply/content.ts";
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
   * Whether a message that was edited is to others as it is now: an aside in the bot's thread, or `ignored`
   * elsewhere. `undefined` where it is for the bot, or that cannot be known.
   * @throws ParleyError `store-unavailable`
   */
  asideOf(
    message: APIMessage & PlacedMessage,
    names: Names,
    wasAsked: boolean,
  ): Promise<Aside | "ignored" | undefined>;
  /** Whether the bot opened a thread. */
  isOwnThread(channelId: string): Promise<boolean>;
}

export function createMessageEvents(options: {
  readonly receiver: Pick<Receiver, "placeMessage" | "receive">;
  readonly history: Pick<ConversationHistory, "knows">;
  readonly channels: Directory;
  readonly origins: Pick<Origins, "ofMessage">;
  readonly chains: ReplyChains;
  readonly hintOfHidden: HiddenContentHint;
  readonly locales: Pick<Locales, "of">;
  /** The bot's user id. */
  readonly botId: () => string;
  /** Unix milliseconds. */
  readonly now: () => number;
}): MessageEvents {
  const { receiver, history, channels, origins, chains, hintOfHidden } = options;

  async function isOwnThread(channelId: string): Promise<boolean> {
    return (await channels.channel(channelId)).ownerId === options.botId();
  }

  async function parentOf({ channel_id: channelId }: PlacedMessage): Promise<string | undefined> {
    return (await channels.channelIfReadable(channelId))?.parentId;
  }

  /** Returns what decides what becomes of a message. */
  function toFacts(
    message: APIMessage & PlacedMessage,
    names: Names,
    { channelType, parent }: { readonly channelType: number; readonly parent: string | undefined },
  ): MessageFacts {
    const { channel_id: channelId, guild_id: guildId } = message;
    const conversationId = toConversationId(channelId);
    const inside = (channel: string | undefined): Place => ({
      ...(guildId === undefined ? {} : { server: toGuildPlace(guildId) }),
      ...(channel === undefined ? {} : { channel: toChannelPlace(channel) }),
    });
    const stands: MessageFacts["stands"] = isDirectType(channelType)
      ? { in: "direct", conversationId }
      : isThreadType(channelType)
        ? { in: "thread", conversationId, place: inside(parent), isOwn: () => isOwnThread(channelId) }
        : { in: "channel", conversationId, threadId: toConversationId(message.id), place: inside(channelId) };
    return {
      ...toSpoken(message, names, isDirectType(channelType)),
      authorId: toAuthorId(message.author.id),
      sentAt: Date.parse(message.timestamp),
      isEdited: typeof message.edited_timestamp === "string",
      stands,
    };
  }

  /** A known conversation needs its parent too: the run that was to store its places may have been killed. */
  async function whereOf(message: PlacedMessage) {
    const channelType = await channels.typeOf(message);
    return { channelType, parent: isThreadType(channelType) ? await parentOf(message) : undefined };
  }

  /** Returns the event of a message, or `undefined` where it is not for the bot. */
  async function toEvent(
    message: GatewayMessageCreateDispatchData,
    names: Names,
  ): Promise<IncomingMessage | undefined> {
    if (!isFromPerson(message) && !isFromApp(message, names.botId)) return undefined;
    const where = await whereOf(message);
    const { channelType, parent } = where;
    const facts = toFacts(message, names, where);
    if (facts.author === "app" && facts.stands.in !== "thread") return undefined;
    const placement = await receiver.placeMessage(facts);
    if (placement.kind === "aside") await receiver.receive(placement);
    if (placement.kind !== "question") return undefined;
    if (isHidden(message, names, channelType)) return hintOfHidden(message);
    const address = { channelId: message.channel_id, channelType, eventId: message.id };
    const event =
      facts.stands.in !== "channel"
        ? await toThreadEvent(message, names, { address, parent, facts, placement })
        : placement.where === "here"
          ? toMessageInChannel(message, names, address)
          : await toChannelEvent(message, names, address);
    return { ...event, origin: await origins.ofMessage(message, channelType) };
  }

  async function toThreadEvent(
    message: GatewayMessageCreateDispatchData,
    names: Names,
    given: {
      readonly address: DiscordAddress;
      readonly parent: string | undefined;
      readonly facts: MessageFacts;
      readonly placement: Extract<Placement, { readonly kind: "question" }>;
    },
  ): Promise<IncomingMessage> {
    const { facts, parent, address } = given;
    const { conversationId, inRoom } = given.placement;
    // A reply quotes what it means, unless that is surely stored: in the bot's thread what was said to the
    // bot.
    const isToOthers = facts.repliesTo === "person" || facts.repliesTo === "app";
    const isKnown = inRoom
      ? repliesToBot(message, names)
      : !isToOthers && (await history.knows(conversationId));
    const event = toMessage(message, names, conversationId, address, isKnown);
    const title = isFirstOfPost(message) ? (await channels.channelIfReadable(message.id))?.name : undefined;
    return {
      ...event,
      text: withPostTitle(title, event.text),
      ...toEnclosingPlaces(message.guild_id, [message.channel_id, parent]),
      ...(inRoom ? { inRoom } : {}),
    };
  }

  async function asideOf(
    message: APIMessage & PlacedMessage,
    names: Names,
    wasAsked: boolean,
  ): Promise<Aside | "ignored" | undefined> {
    if (!isFromPerson(message)) return undefined;
    try {
      const facts = toFacts(message, names, await whereOf(message));
      if (facts.isCall === true) return undefined;
      const placement = await receiver.placeMessage({ ...facts, wasAsked });
      if (placement.kind === "question") return undefined;
      return placement.kind === "aside" ? placement : "ignored";
    } catch (error) {
      if (isParleyError(error, "store-unavailable")) throw error;
      return undefined;
    }
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
              madeQuestion: true,
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
    asideOf,
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
    hasFiles: message.attachments.length > 0 || (message.message_snapshots ?? []).length > 0,
    repliesTo: toWhom(message, names),
    botNames: names.botNames,
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

/** Tells people that a message has arrived without its content. Contract: must not throw. */
type HiddenContentHint = (message: {
  readonly id: string;
  readonly channel_id: string;
}) => Promise<undefined>;

/**
 * Creates the hint, which is given once in each thread or channel where the application has no Message
 * Content Intent. The nonce keeps it from being given twice.
 */
export function createHiddenContentHint(options: {
  readonly api: Pick<DiscordApi, "createMessage">;
  /** Whether messages have their content, so that there was nothing to read in them. */
  readonly readsContents: () => boolean;
  readonly log: Log;
}): HiddenContentHint {
  const told = createRecent(maxChannels);
  return async ({ id, channel_id: channelId }) => {
    if (options.readsContents() || told.has(channelId)) return undefined;
    told.set(channelId, true);
    const hint = toReplyOnce(id, translate("notice.hidden-content"), `c${channelId}`);
    await options.api.createMessage(channelId, hint).catch((error: unknown) => {
      options.log.info({ channel: channelId, err: error }, "hint of hidden contents not delivered");
    });
    return undefined;
  };
}
