import type { Json, ReplyAddress } from "../../core/events.ts";

/** What all ids of this platform begin with. No other file makes or parses such ids. */
export const idPrefix = "discord:";

/** The interaction that a reply answers. Its token is used until `expiresAt`, in Unix milliseconds. */
export interface InteractionAddress {
  readonly id: string;
  readonly applicationId: string;
  readonly token: string;
  readonly expiresAt: number;
  readonly isPrivate: boolean;
  readonly userId: string;
  /** The bot is not a member of the server: it can post the interaction's own messages only. */
  readonly isGuest: boolean;
  readonly maxFileBytes: number;
}

/** Where a reply is posted on Discord. */
export interface DiscordAddress {
  readonly channelId: string;
  /** Discord's channel type of `channelId`. */
  readonly channelType: number;
  /** The event it answers. Nonces are derived from it, so that no message is posted twice. */
  readonly eventId?: string;
  /** The message that it replies to, where the answer stays in the channel. */
  readonly replyTo?: string;
  /** A thread is opened from `replyTo`, and the reply posted in it. */
  readonly thread?: { readonly title: string };
  /** Where it is in the channel, a reply to any of its messages goes on: all of them reply to `replyTo`. */
  readonly isChain?: boolean;
  readonly interaction?: InteractionAddress;
  /** The reply's own messages have later ids; set when it is first worked on. */
  readonly postedAfter?: string;
  /** References of the messages that show it. */
  readonly messages?: readonly Json[];
  /** How many messages were posted for it, those that were removed included. Default: those that show it. */
  readonly posts?: number;
  /** Files posted so far, in messages of their own: as `ShownFiles`. */
  readonly files?: Json;
}

/** The address as the core stores it. */
export function toReplyAddress(address: DiscordAddress): ReplyAddress {
  return address as unknown as ReplyAddress;
}

/** The inverse of {@link toReplyAddress}. */
export function fromReplyAddress(address: ReplyAddress): DiscordAddress {
  return address as unknown as DiscordAddress;
}

const directMessage = 1;
const groupMessage = 3;
const announcement = 5;
const announcementThread = 10;
const publicThread = 11;
/** Members of a private thread alone see what is in it. */
export const privateThread = 12;
const threadTypes: ReadonlySet<number> = new Set([announcementThread, publicThread, privateThread]);
/** Text and announcement channels. */
const threadableTypes: ReadonlySet<number> = new Set([0, announcement]);
/** Forums and media channels. */
const postTypes: ReadonlySet<number> = new Set([15, 16]);

/** Whether a channel type is a thread. */
export function isThreadType(type: number): boolean {
  return threadTypes.has(type);
}

/** Whether a channel type is a direct or group message channel. */
export function isDirectType(type: number): boolean {
  return type === directMessage || type === groupMessage;
}

/** Whether threads can be opened in a channel type. */
export function isThreadable(type: number): boolean {
  return threadableTypes.has(type);
}

/** Whether a channel type holds posts, which are threads, and no messages: forums and media channels. */
export function holdsPosts(type: number): boolean {
  return postTypes.has(type);
}

/** The type of the public threads of a channel type. */
export function threadTypeIn(type: number): number {
  return type === announcement ? announcementThread : publicThread;
}

/** The place of a server. */
export function toGuildPlace(guildId: string): string {
  return `${idPrefix}guild:${guildId}`;
}

/** The place of a channel that contains threads. */
export function toChannelPlace(channelId: string): string {
  return `${idPrefix}channel:${channelId}`;
}

/** The inverse of {@link toGuildPlace}; `undefined` for other places. */
export function parseGuildPlace(place: string): string | undefined {
  return /^discord:guild:(\d+)$/.exec(place)?.[1];
}

/** The inverse of {@link toChannelPlace}; `undefined` for other places. */
export function parseChannelPlace(place: string): string | undefined {
  return /^discord:channel:(\d+)$/.exec(place)?.[1];
}

/** A role as access rules name it. */
export function toRoleTerm(roleId: string): string {
  return `${idPrefix}role:${roleId}`;
}

/** A user as access rules name them. */
export function toUserTerm(userId: string): string {
  return `${idPrefix}user:${userId}`;
}

/** The `within` of an event; unknown channels are left out. None in direct messages. */
export function toEnclosingPlaces(
  guildId: string | undefined,
  channelIds: readonly (string | null | undefined)[],
): { readonly within?: readonly string[] } {
  if (guildId === undefined) return {};
  const channels = channelIds.flatMap((id) => (typeof id === "string" ? [toChannelPlace(id)] : []));
  return { within: [toGuildPlace(guildId), ...channels] };
}

/** What the keys of commands begin with, and the ids of the conversations of those outside of conversations. */
export const commandPrefix = `${idPrefix}command/`;

/** The event key of a command, and the id of its conversation where it is used outside of conversations. */
export function toCommandKey(interactionId: string): string {
  return `${commandPrefix}${interactionId}`;
}

/** The event key of a message. */
export function toEventKey(id: string): string {
  return `${idPrefix}${id}`;
}

/** The inverse of {@link toEventKey}; `undefined` for other keys, such as those of commands. */
export function parseEventKey(key: string): string | undefined {
  return /^discord:(\d+)$/.exec(key)?.[1];
}

/** The conversation in a thread or direct message channel. */
export function toConversationId(id: string): string {
  return `${idPrefix}${id}`;
}

/** The channel of a conversation; `undefined` for that of a command, which has none. */
export function parseConversationId(conversationId: string): string | undefined {
  return /^discord:(\d+)$/.exec(conversationId)?.[1];
}

/** The author id of a Discord user. */
export function toAuthorId(userId: string): string {
  return `${idPrefix}${userId}`;
}

const defaultFileBytes = 10 * 1024 * 1024;

/** Size of the largest file that Discord takes here, in bytes. */
export function maxFileBytesAt({ interaction }: DiscordAddress): number {
  return interaction?.maxFileBytes ?? defaultFileBytes;
}

/** One posted message of a reply, as saved in its address. `isOwn`: an ordinary message, not an interaction's. */
export interface MessageRef {
  readonly channelId: string;
  readonly messageId: string;
  readonly isOwn: boolean;
  /** The first response of its interaction: its token edits that one by `@original` alone. */
  readonly isOriginal?: boolean;
}

/** A saved reference. */
export function fromRef(ref: Json): MessageRef {
  return ref as unknown as MessageRef;
}

/** The inverse of {@link fromRef}. */
export function toRef(ref: MessageRef): Json {
  return ref as unknown as Json;
}

/** The event key of a posted message, by its saved reference. */
export function toRefKey(ref: Json): string {
  return toEventKey(fromRef(ref).messageId);
}

const discordEpochMs = 1_420_070_400_000;

/** The smallest id that Discord assigns at that time. @see https://docs.discord.com/developers/reference#snowflakes */
export function snowflakeAt(unixMs: number): bigint {
  return BigInt(Math.max(0, Math.floor(unixMs) - discordEpochMs)) << 22n;
}

/** When Discord assigned an id, in Unix milliseconds. */
export function snowflakeTime(id: string): number {
  return Number(BigInt(id) >> 22n) + discordEpochMs;
}
