import { MessageType, type APIMessage } from "discord.js";
import { ParleyError } from "../../../core/errors.ts";
import type { Platform } from "../../../core/platform.ts";
import type { RoomMessage, RoomQuery, RoomReading } from "../../../core/room.ts";
import {
  isDirectType,
  fromReplyAddress,
  parseEventKey,
  toEventKey,
  type DiscordAddress,
  snowflakeAt,
} from "../address.ts";
import type { DiscordApi } from "../transport/api.ts";
import type { Directory } from "../transport/directory.ts";
import { toParleyError, withPermission } from "../errors.ts";
import { isFirstOfPost, readMessage, toAuthor, type Names, withPostTitle } from "./incoming.ts";

const pageSize = 100;
/** The most pages of one reading. */
const maxPages = 11;

/** These messages have content. All other types are Discord's own notes. */
const contentTypes: ReadonlySet<number> = new Set([
  MessageType.Default,
  MessageType.Reply,
  MessageType.ChatInputCommand,
  MessageType.ContextMenuCommand,
]);

export interface RoomReaderOptions {
  readonly api: Pick<DiscordApi, "listMessages" | "getChannel">;
  readonly names: (channelId: string) => Promise<Names>;
  /** Returns the title of a post in a forum or media channel, and `undefined` for other threads. */
  readonly postTitle: (channelId: string) => Promise<string | undefined>;
  /** Whether messages that do not mention the bot have their content. */
  readonly readsContents: () => boolean;
}

/** Returns {@link Platform.readRoom} for Discord's threads and channels. */
export function createRoomReader(options: RoomReaderOptions): Platform["readRoom"] {
  const { api, names, readsContents } = options;

  /** Reads at most `maxMessages` that fit the query and one more, newest first. */
  async function collect(channelId: string, query: RoomQuery, botNames: Names): Promise<APIMessage[]> {
    const lowest = lowestId(query);
    const beforeId = query.before === undefined ? undefined : parseEventKey(query.before);
    const toWanted = (message: APIMessage): APIMessage[] => {
      if (beforeId !== undefined && BigInt(message.id) >= BigInt(beforeId)) return [];
      const content = toContent(message);
      return content !== undefined && isWanted(content, channelId, query, botNames) ? [content] : [];
    };
    if (query.after !== undefined) {
      const messages = await api.listMessages(channelId, { after: lowest.toString(), limit: pageSize });
      // An empty page says nothing, as explained below. A full one lacks the newest.
      if (messages.length > 0 && messages.length < pageSize)
        return messages.flatMap(toWanted).slice(0, query.maxMessages + 1);
    }
    query.signal.throwIfAborted();
    // The question is in the first page, as without the permission Discord returns no messages and no error.
    let before = beforeId === undefined ? undefined : (BigInt(beforeId) + 1n).toString();
    const found: APIMessage[] = [];
    for (let page = 0; page < maxPages; page += 1) {
      query.signal.throwIfAborted();
      const messages = await api.listMessages(channelId, { before, limit: pageSize });
      if (messages.length === 0 && page === 0 && (before !== undefined || (await isNotEmpty(channelId))))
        throw lacking("Read Message History");
      for (const message of messages) {
        if (BigInt(message.id) <= lowest) return found;
        found.push(...toWanted(message));
        if (found.length > query.maxMessages) return found;
      }
      const last = messages.at(-1);
      if (last === undefined || messages.length < pageSize) return found;
      before = last.id;
    }
    return found;
  }

  async function isNotEmpty(channelId: string): Promise<boolean> {
    const channel = await api.getChannel(channelId);
    return "last_message_id" in channel && typeof channel.last_message_id === "string";
  }

  async function read(address: DiscordAddress, query: RoomQuery): Promise<RoomReading> {
    const botNames = await names(address.channelId);
    const found = await collect(address.channelId, query, botNames);
    const shown = found.slice(0, query.maxMessages);
    const messages = shown.map((message) => toRoomMessage(message, botNames)).toReversed();
    const [first] = messages;
    const hasOlder = found.length > query.maxMessages;
    // A long post is read without its first message, and its title may hold the question.
    if (first !== undefined && (isFirstOfPost(shown.at(-1)!) || (hasOlder && query.after === undefined)))
      messages[0] = { ...first, text: withPostTitle(await options.postTitle(address.channelId), first.text) };
    const readable = messages.filter(({ text, attachments }) => text !== "" || attachments.length > 0);
    const isHidden = readable.length < messages.length && !readsContents();
    return {
      messages: readable,
      hasOlder,
      ...(isHidden ? { failure: lacking("the Message Content Intent") } : {}),
    };
  }

  return async (given, query) => {
    const address = fromReplyAddress(given);
    if (isDirectType(address.channelType)) return "alone";
    try {
      return await read(address, query);
    } catch (error) {
      const failure = withPermission(error, "Read Message History");
      return { messages: [], hasOlder: false, failure: toParleyError(failure, "read messages") };
    }
  };
}

/** Returns {@link Platform.linksTo}. */
export function createMessageLinks(directory: Pick<Directory, "channelIfReadable">): Platform["linksTo"] {
  return async (given, keys) => {
    const { channelId, channelType } = fromReplyAddress(given);
    const { guildId, parentId } = (await directory.channelIfReadable(channelId)) ?? {};
    if (guildId === undefined && !isDirectType(channelType)) return new Map();
    return new Map(
      keys.flatMap((key) => {
        const id = parseEventKey(key);
        if (id === undefined) return [];
        // The message that began a thread has the thread's id, and stands in the channel around it.
        const channel = id === channelId && parentId !== undefined ? parentId : channelId;
        return [[key, `https://discord.com/channels/${guildId ?? "@me"}/${channel}/${id}`]];
      }),
    );
  };
}

function lowestId({ after, since }: RoomQuery): bigint {
  const ids = [
    ...(after === undefined ? [] : [BigInt(parseEventKey(after) ?? 0)]),
    ...(since === undefined ? [] : [snowflakeAt(since) - 1n]),
  ];
  return ids.reduce((highest, id) => (id > highest ? id : highest), 0n);
}

/** Returns the message, or for a thread's first entry, which refers to one, that message. */
function toContent(message: APIMessage): APIMessage | undefined {
  if (message.type === MessageType.ThreadStarterMessage) return message.referenced_message ?? undefined;
  return contentTypes.has(message.type) ? message : undefined;
}

/** Whether the query wants a message. The message that began a thread has the thread's id. */
function isWanted(message: APIMessage, channelId: string, query: RoomQuery, { botId }: Names): boolean {
  return query.includesOwn === true || message.author.id !== botId || message.id === channelId;
}

function toRoomMessage(message: APIMessage, names: Names): RoomMessage {
  const content = readMessage(message, names);
  const { author, webhook_id: webhookId } = message;
  return {
    key: toEventKey(message.id),
    author: toAuthor(author),
    isApp: author.bot === true || webhookId !== undefined,
    ...content,
    sentAt: Date.parse(message.timestamp),
  };
}

function lacking(permission: string): ParleyError {
  return new ParleyError("platform-forbidden", `messages cannot be read: ${permission} is missing`, {
    detail: { permission },
  });
}
