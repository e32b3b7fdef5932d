import type { Json, ReplyAddress } from "../../core/events.ts";

/** The interaction a reply answers. Its token works for 15 minutes, in milliseconds until `expiresAt`. */
export interface InteractionAddress {
  readonly id: string;
  readonly applicationId: string;
  readonly token: string;
  readonly expiresAt: number;
  readonly isPrivate: boolean;
  readonly userId: string;
  /** Used where the bot itself is not a member: there is nothing but the interaction's own messages. */
  readonly isGuest: boolean;
  readonly maxFileBytes: number;
}

/** Where a reply stands on Discord. */
export interface DiscordAddress {
  readonly channelId: string;
  /** Discord's channel type of `channelId`. */
  readonly channelType: number;
  /** The event it answers; from it come the nonces that keep a message from being posted twice. */
  readonly eventId?: string;
  /** The message it replies to, where the answer stays in the channel. */
  readonly replyTo?: string;
  /** A thread is opened from `replyTo` first; the answer goes there. */
  readonly thread?: { readonly title: string };
  readonly interaction?: InteractionAddress;
  /** What the reply has posted so far. */
  readonly messages?: readonly Json[];
}

export function toReplyAddress(address: DiscordAddress): ReplyAddress {
  return address as unknown as ReplyAddress;
}

/** Reads an address this platform made. */
export function fromReplyAddress(address: ReplyAddress): DiscordAddress {
  return address as unknown as DiscordAddress;
}

const directMessage = 1;
const groupMessage = 3;
const threadTypes: ReadonlySet<number> = new Set([10, 11, 12]);
/** Text and announcement channels: where threads can be opened from a message. */
const threadableTypes: ReadonlySet<number> = new Set([0, 5]);

export function isThreadType(type: number): boolean {
  return threadTypes.has(type);
}

export function isDirectType(type: number): boolean {
  return type === directMessage || type === groupMessage;
}

export function isThreadable(type: number): boolean {
  return threadableTypes.has(type);
}

/** Names of the larger places that conversations lie in. */
export const guildPlace = (guildId: string): string => `discord:guild:${guildId}`;
export const channelPlace = (channelId: string): string => `discord:channel:${channelId}`;

/** The places around a conversation, as far as they are known; none in direct messages. */
export function placesAround(
  guildId: string | undefined,
  channelIds: readonly (string | null | undefined)[],
): { readonly within?: readonly string[] } {
  if (guildId === undefined) return {};
  const channels = channelIds.flatMap((id) => (typeof id === "string" ? [channelPlace(id)] : []));
  return { within: [guildPlace(guildId), ...channels] };
}

/** The event key of a message. */
export function keyOfMessage(messageId: string): string {
  return `discord:${messageId}`;
}

/** The id of the conversation that lives in a thread or direct message channel. */
export function conversationIdOf(channelId: string): string {
  return `discord:${channelId}`;
}
