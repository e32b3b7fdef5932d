import type { Json, ReplyAddress } from "../../core/events.ts";

/** All ids of this platform begin with this. No other file makes or parses such ids. */
export const idPrefix = "discord:";

/** The interaction that a reply answers. Its token is used until `expiresAt`, in Unix milliseconds. */
export interface InteractionAddress {
  readonly id: string;
  readonly applicationId: string;
  readonly token: string;
  readonly expiresAt: number;
  readonly isPrivate: boolean;
  /** Everybody sees its "thinking…", although the reply is private. */
  readonly hasPublicPlaceholder?: boolean;
  readonly userId: string;
  readonly maxFileBytes: number;
}

/** Where a reply is posted on Discord. */
export interface DiscordAddress {
  readonly channelId: string;
  /** Discord's channel type of `channelId`. */
  readonly channelType: number;
  /** The event that the reply answers. Nonces are derived from it, so that no message is posted twice. */
  readonly eventId?: string;
  /** The message that the reply refers to, where the answer stays in the channel. */
  readonly replyTo?: string;
  /** A thread is opened from `replyTo`, and the reply is posted in it. */
  readonly thread?: { readonly title: string };
  /** Whether all messages of the reply refer to `replyTo`, so that people can go on from any of them. */
  readonly isChain?: boolean;
  readonly interaction?: InteractionAddress;
  /** References of the messages that show the reply. */
  readonly messages?: readonly Json[];
  /** The number of posts for the reply, files and removed messages included. Default: that of `messages`. */
  readonly posts?: number;
  /** The files posted so far in messages of their own, as `ShownFiles`. */
  readonly files?: Json;
}

/** Converts an address to the form that the core stores. */
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
/** Only the members of a private thread see what is in it. */
const privateThread = 12;
const threadTypes: ReadonlySet<number> = new Set([announcementThread, publicThread, privateThread]);
/** These are text and announcement channels. */
const threadableTypes: ReadonlySet<number> = new Set([0, announcement]);
/** These are forums and media channels. */
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

/** Whether a channel type holds only posts, which are threads. Forums and media channels do. */
export function holdsPosts(type: number): boolean {
  return postTypes.has(type);
}

/** Returns the type of the public threads in a channel type. */
export function threadTypeIn(type: number): number {
  return type === announcement ? announcementThread : publicThread;
}

/** Returns the id of a server as a place. */
export function toGuildPlace(guildId: string): string {
  return `${idPrefix}guild:${guildId}`;
}

/** Returns the id, as a place, of a channel that contains threads. */
export function toChannelPlace(channelId: string): string {
  return `${idPrefix}channel:${channelId}`;
}

/** The inverse of {@link toGuildPlace}. Returns `undefined` for other places. */
export function parseGuildPlace(place: string): string | undefined {
  return /^discord:guild:(\d+)$/.exec(place)?.[1];
}

/** The inverse of {@link toChannelPlace}. Returns `undefined` for other places. */
export function parseChannelPlace(place: string): string | undefined {
  return /^discord:channel:(\d+)$/.exec(place)?.[1];
}

/** Returns a role as access rules name it. */
export function toRoleTerm(roleId: string): string {
  return `${idPrefix}role:${roleId}`;
}

/** Returns a user as access rules name them. */
export function toUserTerm(userId: string): string {
  return `${idPrefix}user:${userId}`;
}

/** Returns the `within` of an event, without unknown channels. A direct message has none. */
export function toEnclosingPlaces(
  guildId: string | undefined,
  channelIds: readonly (string | null | undefined)[],
): { readonly within?: readonly string[] } {
  if (guildId === undefined) return {};
  const channels = channelIds.flatMap((id) => (typeof id === "string" ? [toChannelPlace(id)] : []));
  return { within: [toGuildPlace(guildId), ...channels] };
}

/** The keys of commands begin with this, and the ids of conversations that consist of a command. */
export const commandPrefix = `${idPrefix}command/`;

/** Returns the event key of a command, which is also the id of its conversation where it has no other. */
export function toCommandKey(interactionId: string): string {
  return `${commandPrefix}${interactionId}`;
}

/** Returns the event key of a message. */
export function toEventKey(id: string): string {
  return `${idPrefix}${id}`;
}

/** The inverse of {@link toEventKey}. Returns `undefined` for other keys, such as those of commands. */
export function parseEventKey(key: string): string | undefined {
  return /^discord:(\d+)$/.exec(key)?.[1];
}

/** Returns the id of the conversation in a thread or direct message channel. */
export function toConversationId(id: string): string {
  return `${idPrefix}${id}`;
}

/** Returns the channel of a conversation, or `undefined` for a command's, which has no channel. */
export function parseConversationId(conversationId: string): string | undefined {
  return /^discord:(\d+)$/.exec(conversationId)?.[1];
}

/** Returns the author id of a Discord user. */
export function toAuthorId(userId: string): string {
  return `${idPrefix}${userId}`;
}

const defaultFileBytes = 10 * 1024 * 1024;

/** Returns the size of the largest file that Discord takes here, in bytes. */
export function maxFileBytesAt({ interaction }: DiscordAddress): number {
  return interaction?.maxFileBytes ?? defaultFileBytes;
}

/** One posted message of a reply, as saved. `isOwn` marks an ordinary message, not an interaction's. */
export interface MessageRef {
  readonly channelId: string;
  readonly messageId: string;
  readonly isOwn: boolean;
  /** Whether it is the first response of its interaction. The token can edit that one only as `@original`. */
  readonly isOriginal?: boolean;
}

/** Reads a saved reference. */
export function fromRef(ref: Json): MessageRef {
  return ref as unknown as MessageRef;
}

/** The inverse of {@link fromRef}. */
export function toRef(ref: MessageRef): Json {
  return ref as unknown as Json;
}

/** Returns the event key of a posted message, by its saved reference. */
export function toRefKey(ref: Json): string {
  return toEventKey(fromRef(ref).messageId);
}

const discordEpochMs = 1_420_070_400_000;

/** Returns the smallest id of that time. @see https://docs.discord.com/developers/reference#snowflakes */
export function snowflakeAt(unixMs: number): bigint {
  return BigInt(Math.max(0, Math.floor(unixMs) - discordEpochMs)) << 22n;
}

/** Returns when Discord assigned an id, in Unix milliseconds. */
export function snowflakeTime(id: string): number {
  return Number(BigInt(id) >> 22n) + discordEpochMs;
}
