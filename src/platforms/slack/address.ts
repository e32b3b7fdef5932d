import { z } from "zod";
import type { Json, ReplyAddress } from "../../core/events.ts";

const messageRefSchema = z.object({ channel: z.string(), ts: z.string() });

export type MessageRef = Readonly<z.infer<typeof messageRefSchema>>;

const addressSchema = z.object({
  /** This is the key of the event that the reply answers. It is the same for all addresses of one reply. */
  key: z.string(),
  channel: z.string(),
  user: z.string(),
  /** This is the `ts` of the thread's root message. It is absent at the top level of the channel. */
  thread: z.string().optional(),
  /** Only `user` sees the reply in this thread, which has replies: Slack shows such messages in no other. */
  privateThread: z.string().optional(),
  /** Posts to this URL reach the caller of a command, for 30 minutes. */
  responseUrl: z.string().optional(),
  /** Only `user` sees the reply. */
  isPrivate: z.boolean().optional(),
  /** The bot is not in the channel: the reply is posted through `responseUrl`, for all to see. */
  isOutside: z.boolean().optional(),
  /** The person has already been shown that the reply is in progress. */
  isAnnounced: z.boolean().optional(),
  /** This is the time of the event in Unix milliseconds. */
  since: z.number(),
  refs: z.array(messageRefSchema).readonly().optional(),
  /** These are the files that the reply has posted so far, as `ShownFiles`. */
  files: z.custom<Json>().optional(),
  /**
   * A private reply's posts can be neither edited nor found: so many pieces of its text were begun, the last
   * of which may not be shown, or all are shown. Retry begins anew.
   */
  begun: z.union([z.number(), z.literal("all")]).optional(),
});

/** Where a reply on Slack is shown. */
export type SlackAddress = Readonly<z.infer<typeof addressSchema>>;

/** Returns the address as JSON, without absent fields. */
export function toReplyAddress(address: SlackAddress): ReplyAddress {
  const entries = Object.entries(address).filter((entry): entry is [string, Json] => entry[1] !== undefined);
  return Object.fromEntries<Json>(entries);
}

/** Parses the JSON of {@link toReplyAddress}, which may come from an earlier process. */
export function parseAddress(address: ReplyAddress): SlackAddress {
  return addressSchema.parse(address);
}

export function parseMessageRef(ref: Json): MessageRef {
  return messageRefSchema.parse(ref);
}

/**
 * Returns the private counterpart of a message's address: the author's direct messages. A message there is
 * private already. The `thread` is where an ephemeral message points to it; it is kept only for a thread with
 * replies, since Slack shows no ephemeral messages in other threads.
 * @see https://docs.slack.dev/reference/methods/chat.postEphemeral says where they are shown.
 */
export function toPrivateAddress(address: SlackAddress): SlackAddress {
  if (isDirectMessages(address.channel)) return address;
  const { thread, refs: _refs, ...rest } = address;
  const hasReplies = thread !== undefined && !address.key.endsWith(`:${thread}`);
  return { ...rest, ...(hasReplies ? { thread } : {}), isPrivate: true, isAnnounced: false };
}

/** Returns where the first answer in a newly opened thread goes. */
export function toThreadAddress({ key, channel, user, since }: SlackAddress, root: string): SlackAddress {
  return { key: `${key}/first`, channel, user, thread: root, since };
}

/** Returns the workspace that a reply is shown in. The key of the reply's event names it. */
export function teamOfAddress({ key }: Pick<SlackAddress, "key">): string {
  return key.split(":", 2)[1] ?? "";
}

/** Returns the event keys of the messages that the reply has posted. */
export function shownMessageKeys(address: SlackAddress): string[] {
  const teamId = teamOfAddress(address);
  return (address.refs ?? []).map(({ channel, ts }) => toMessageKey(teamId, channel, ts));
}

/** Returns the id of a thread's conversation. Direct messages and channels have ids of the same form. */
export function toConversationId(teamId: string, channel: string, root: string): string {
  return `slack:${teamId}:${channel}:${root}`;
}

/** Returns the id of the conversation of a channel whose messages are answered in the channel itself. */
export function toChannelConversationId(teamId: string, channel: string): string {
  return toConversationId(teamId, channel, "channel");
}

/** Returns what the ids of all conversations in a channel begin with. */
export function toConversationPrefix(teamId: string, channel: string): string {
  return toConversationId(teamId, channel, "");
}

export function toMessageKey(teamId: string, channel: string, ts: string): string {
  return `slack:${teamId}:${channel}:${ts}`;
}

/** Returns the message of a key that {@link toMessageKey} made, and `undefined` for other keys. */
export function parseMessageKey(key: string): MessageRef | undefined {
  const [, channel, ts] = /^slack:\w+:([A-Z]\w+):(\d+\.\d+)$/.exec(key) ?? [];
  return channel === undefined || ts === undefined ? undefined : { channel, ts };
}

/** Returns the event key of a command call, by the trigger or view id that Slack gives it. */
export function toCallKey(teamId: string, source: "cmd" | "shortcut" | "view" | "press", id: string): string {
  return `slack:${teamId}:${source}:${id}`;
}

/** Returns whether an event key is that of a command call, or of what follows from it. */
export function isCommandKey(key: string): boolean {
  return /^slack:\w+:(?:cmd|shortcut|view|press):/.test(key);
}

/** Returns the {@link Author.id} of a person. */
export function toAuthorId(teamId: string, user: string): string {
  return `slack:${teamId}:${user}`;
}

/** Returns a channel as access rules name it. */
export function toChannelTerm(channel: string): string {
  return `slack:channel:${channel}`;
}

/** Returns a workspace as access rules name it. */
export function toTeamTerm(teamId: string): string {
  return `slack:team:${teamId}`;
}

/** Returns a user as access rules name them. */
export function toUserTerm(user: string): string {
  return `slack:user:${user}`;
}

/** Returns the name of a channel as a place that contains conversations. */
export function toChannelPlace(teamId: string, channel: string): string {
  return `slack:channel:${teamId}:${channel}`;
}

/** Returns the places around a conversation. Direct messages lie in the workspace alone. */
export function placesAround(teamId: string, channel: string): { readonly within: readonly string[] } {
  const team = toTeamTerm(teamId);
  return { within: isDirectMessages(channel) ? [team] : [toChannelPlace(teamId, channel), team] };
}

/** Returns whether the channel id is that of one person's direct messages with the bot. */
export function isDirectMessages(channel: string): boolean {
  return channel.startsWith("D");
}

/** Converts a `ts` such as `1699999999.000100` to Unix milliseconds. */
export function toUnixMs(ts: string): number {
  return Math.round(Number(ts) * 1000);
}

export const publicApiUrl = "https://slack.com/api/";

/** Slack sends events, commands and interactions to this path in HTTP mode. */
export const eventsPath = "/slack/events";

/** Slack sends the browser of the person who installs the app back to this path. */
export const redirectPath = "/slack/oauth_redirect";

/** A person begins to install the app in a workspace at this path. */
export const installPath = "/slack/install";

export interface SlackFileInfo {
  readonly id: string;
  readonly name?: string | null;
  readonly title?: string | null;
  readonly mimetype?: string;
  /** The mode is `hosted`, `snippet`, `external`, `quip` or `canvas` (a canvas), or `list`. */
  readonly mode?: string;
  readonly filetype?: string;
  /** This is the sender's description of a picture. */
  readonly alt_txt?: string;
  readonly size?: number;
  readonly duration_ms?: number;
  readonly url_private?: string;
  readonly url_private_download?: string;
  readonly file_access?: string;
  /** The ids of channels, private channels and direct messages say where the file is shown. */
  readonly channels?: readonly string[];
  readonly groups?: readonly string[];
  readonly ims?: readonly string[];
  /** These are the same channels, with the messages that show the file. */
  readonly shares?: Readonly<Partial<Record<"public" | "private", Readonly<Record<string, unknown>>>>>;
}

export interface SlackMessageInfo {
  readonly ts: string;
  readonly thread_ts?: string;
  /** A reply names the user who wrote the root of its thread. */
  readonly parent_user_id?: string;
  /** In histories, the root of a thread says when the last reply was written, and who wrote some. */
  readonly latest_reply?: string;
  readonly reply_users?: readonly string[];
  readonly user?: string;
  /** This is the author's workspace. Histories may lack it. */
  readonly team?: string;
  /** This is the author's workspace in channels that are shared with other workspaces. */
  readonly user_team?: string;
  readonly bot_id?: string;
  readonly text?: string;
  /** This is the author's last edit, to the second. */
  readonly edited?: { readonly ts: string };
  readonly subtype?: string;
  /** An app may post under this name. */
  readonly username?: string;
  readonly bot_profile?: { readonly name?: string };
  readonly files?: readonly SlackFileInfo[];
  /** Blocks hold what a message shows beside its text. In a person's message they repeat the text. */
  readonly blocks?: readonly unknown[];
  /** Attachments are forwarded messages, previews of links, and the content of older apps. */
  readonly attachments?: readonly unknown[];
  readonly metadata?: { readonly event_payload?: { readonly mark?: string } };
}

/** The window says which messages of a channel or thread are read. */
export interface MessageWindow {
  /** Neither of the messages with these `ts` is included, but the root of a thread always is. */
  readonly oldest?: string | undefined;
  readonly latest?: string | undefined;
  readonly limit: number;
  /** The cursor is that of the page before. It is empty for the first page. */
  readonly cursor: string;
}

/** A page is of a channel, newest first, or of a thread, oldest first. Its cursor is empty at the end. */
export interface MessagePage {
  readonly messages: readonly SlackMessageInfo[];
  readonly cursor: string;
}

/** Returns the workspace of a message's author, where the message names it. */
export function teamOf({ user_team: shared, team }: SlackMessageInfo): string | undefined {
  return shared ?? team;
}
