import type { Json, ReplyAddress } from "../../core/events.ts";
import type { MessageRef } from "./web-api.ts";

/** Where a reply on Slack is shown. */
export interface SlackAddress {
  /** Key of the event it answers: the same for all addresses of one reply. */
  readonly key: string;
  readonly channel: string;
  readonly user: string;
  /** `ts` of the thread's root message; absent at the top level of the channel. */
  readonly thread?: string;
  /** The thread in which only `user` sees the reply. It has replies: Slack shows such messages in no other. */
  readonly privateThread?: string;
  /** Posts to the caller of a command; valid for 30 minutes. */
  readonly responseUrl?: string;
  /** Only `user` sees the reply. */
  readonly isPrivate?: boolean;
  /** The bot is not in the channel: the reply is posted through {@link responseUrl}, for all to see. */
  readonly isOutside?: boolean;
  /** The person has already been shown that the reply is in progress. */
  readonly isAnnounced?: boolean;
  /** Time of the event, in Unix milliseconds. */
  readonly since: number;
  /** Messages posted so far. */
  readonly refs?: readonly Json[];
  /** Files posted so far: as `ShownFiles`. */
  readonly files?: Json;
  /** Of a private reply, whose posts can be neither edited nor found. */
  readonly posting?: PostingMark;
}

/** How many pieces of a private reply's text were tried and shown. More tried than shown: one may have been shown. */
export interface PostingMark {
  readonly tried: number;
  readonly shown: number;
  /** The reply ended as failed: the next run, by Retry, begins anew. */
  readonly isFailed: boolean;
}

/** The address as JSON, without absent fields. */
export function toReplyAddress(address: SlackAddress): ReplyAddress {
  const entries = Object.entries(address).filter((entry): entry is [string, Json] => entry[1] !== undefined);
  return Object.fromEntries<Json>(entries);
}

/** Parses the JSON of {@link toReplyAddress}, which may come from an earlier process. */
export function parseAddress(address: ReplyAddress): SlackAddress {
  const text = (name: string) => {
    const value = address[name];
    return typeof value === "string" ? value : undefined;
  };
  const refs = address["refs"];
  const posting = parsePosting(address["posting"]);
  const files = address["files"];
  const since = address["since"];
  const thread = text("thread");
  const privateThread = text("privateThread");
  const responseUrl = text("responseUrl");
  return {
    key: text("key") ?? "",
    channel: text("channel") ?? "",
    user: text("user") ?? "",
    ...(thread === undefined ? {} : { thread }),
    ...(privateThread === undefined ? {} : { privateThread }),
    ...(responseUrl === undefined ? {} : { responseUrl }),
    isPrivate: address["isPrivate"] === true,
    ...(address["isOutside"] === true ? { isOutside: true } : {}),
    isAnnounced: address["isAnnounced"] === true,
    since: typeof since === "number" ? since : 0,
    ...(Array.isArray(refs) ? { refs: refs as readonly Json[] } : {}),
    ...(files === undefined ? {} : { files }),
    ...(posting === undefined ? {} : { posting }),
  };
}

function parsePosting(value: Json | undefined): PostingMark | undefined {
  if (typeof value !== "object" || value === null || Array.isArray(value)) return undefined;
  const { tried, shown, isFailed } = value as Partial<PostingMark>;
  return { tried: tried ?? 0, shown: shown ?? 0, isFailed: isFailed === true };
}

/** Parses one of {@link SlackAddress.refs}. */
export function parseMessageRef(ref: Json): MessageRef {
  const { channel, ts } = ref as { channel?: unknown; ts?: unknown };
  return { channel: String(channel), ts: String(ts) };
}

/**
 * The private counterpart of a message's address: the author's direct messages. A message there is private already.
 * `thread` is where an ephemeral message says so; it is kept only for a thread with replies, since Slack shows no
 * ephemeral messages in other threads.
 * @see https://docs.slack.dev/reference/methods/chat.postEphemeral
 */
export function toPrivateAddress(address: SlackAddress): SlackAddress {
  if (isDirectMessages(address.channel)) return address;
  const { thread, refs: _refs, ...rest } = address;
  const hasReplies = thread !== undefined && !address.key.endsWith(`:${thread}`);
  return { ...rest, ...(hasReplies ? { thread } : {}), isPrivate: true, isAnnounced: false };
}

/** Where the first answer in a newly opened thread goes. */
export function toThreadAddress({ key, channel, user, since }: SlackAddress, root: string): SlackAddress {
  return { key: `${key}/first`, channel, user, thread: root, since };
}

/** The workspace that a reply is shown in: its key, the key of an event there, names it. */
export function teamOfAddress({ key }: Pick<SlackAddress, "key">): string {
  return key.split(":", 2)[1] ?? "";
}

/** Event keys of the messages that the reply has posted. */
export function shownMessageKeys(address: SlackAddress): string[] {
  const { refs = [] } = address;
  const teamId = teamOfAddress(address);
  return refs.map((ref) => {
    const { channel, ts } = parseMessageRef(ref);
    return toMessageKey(teamId, channel, ts);
  });
}

/** The id of a thread's conversation; direct messages and channels have the same form. */
export function toConversationId(teamId: string, channel: string, root: string): string {
  return `slack:${teamId}:${channel}:${root}`;
}

/** The conversation of a channel whose messages are answered in the channel itself. */
export function toChannelConversationId(teamId: string, channel: string): string {
  return toConversationId(teamId, channel, "channel");
}

/** What the ids of all conversations in a channel begin with. */
export function toConversationPrefix(teamId: string, channel: string): string {
  return toConversationId(teamId, channel, "");
}

/** The event key of a message. */
export function toMessageKey(teamId: string, channel: string, ts: string): string {
  return `slack:${teamId}:${channel}:${ts}`;
}

/** The inverse of {@link toMessageKey}; `undefined` for other keys. */
export function parseMessageKey(key: string): MessageRef | undefined {
  const [, channel, ts] = /^slack:\w+:([A-Z]\w+):(\d+\.\d+)$/.exec(key) ?? [];
  return channel === undefined || ts === undefined ? undefined : { channel, ts };
}

/** The event key of a command call, by the trigger or view id that Slack gives it. */
export function toCallKey(teamId: string, source: "cmd" | "shortcut" | "view" | "press", id: string): string {
  return `slack:${teamId}:${source}:${id}`;
}

/** Whether an event key is that of a command call, or of what follows from it. */
export function isCommandKey(key: string): boolean {
  return /^slack:\w+:(?:cmd|shortcut|view|press):/.test(key);
}

/** {@link Author.id} of a person. */
export function toAuthorId(teamId: string, user: string): string {
  return `slack:${teamId}:${user}`;
}

/** A channel as access rules name it. */
export function toChannelTerm(channel: string): string {
  return `slack:channel:${channel}`;
}

/** A workspace as access rules name it. */
export function toTeamTerm(teamId: string): string {
  return `slack:team:${teamId}`;
}

/** A user as access rules name them. */
export function toUserTerm(user: string): string {
  return `slack:user:${user}`;
}

/** The name of a channel as a place that contains conversations. */
export function toChannelPlace(teamId: string, channel: string): string {
  return `slack:channel:${teamId}:${channel}`;
}

/** The places around a conversation. Direct messages lie in the workspace alone: they cannot be deleted by themselves. */
export function placesAround(teamId: string, channel: string): { readonly within: readonly string[] } {
  const team = toTeamTerm(teamId);
  return { within: isDirectMessages(channel) ? [team] : [toChannelPlace(teamId, channel), team] };
}

/** Whether the channel id is that of one person's direct messages with the bot. */
export function isDirectMessages(channel: string): boolean {
  return channel.startsWith("D");
}

/** `1699999999.000100` as Unix milliseconds. */
export function toUnixMs(ts: string): number {
  return Math.round(Number(ts) * 1000);
}

/** Where Slack sends events, commands and interactions in HTTP mode. */
export const eventsPath = "/slack/events";

/** Where Slack sends that person's browser back. */
export const redirectPath = "/slack/oauth_redirect";

/** Where a person begins to install the app in a workspace. */
export const installPath = "/slack/install";

/** A file as Slack describes it. */
export interface SlackFileInfo {
  readonly id: string;
  readonly name?: string | null;
  readonly title?: string | null;
  readonly mimetype?: string;
  /** `hosted`, `snippet`, `external`; `quip` or `canvas`: a canvas; `list`: a list. */
  readonly mode?: string;
  readonly filetype?: string;
  /** The sender's description of a picture. */
  readonly alt_txt?: string;
  readonly size?: number;
  readonly duration_ms?: number;
  readonly url_private?: string;
  readonly url_private_download?: string;
  readonly file_access?: string;
  /** Where it is shown: ids of channels, private channels and direct messages. */
  readonly channels?: readonly string[];
  readonly groups?: readonly string[];
  readonly ims?: readonly string[];
  /** The same by channel, with the messages. */
  readonly shares?: Readonly<Partial<Record<"public" | "private", Readonly<Record<string, unknown>>>>>;
}

/** A message as events and histories describe it. */
export interface SlackMessageInfo {
  readonly ts: string;
  readonly thread_ts?: string;
  /** Of a reply: who wrote the root of its thread. */
  readonly parent_user_id?: string;
  readonly user?: string;
  /** The author's workspace. Histories need not have it. */
  readonly team?: string;
  /** The same in channels that are shared with other workspaces. */
  readonly user_team?: string;
  readonly bot_id?: string;
  readonly text?: string;
  readonly subtype?: string;
  /** The name that an app posts under. */
  readonly username?: string;
  readonly bot_profile?: { readonly name?: string };
  readonly files?: readonly SlackFileInfo[];
  /** What a message holds beside its text. Of a person's message they repeat the text. */
  readonly blocks?: readonly unknown[];
  /** Forwarded messages, previews of links, and the content of older apps. */
  readonly attachments?: readonly unknown[];
  readonly metadata?: { readonly event_payload?: { readonly mark?: string; readonly replaces?: string } };
}

/** Which messages of a channel or thread are read. */
export interface MessageWindow {
  /** `ts` bounds; neither message is included. The root of a thread always is. */
  readonly oldest?: string | undefined;
  readonly latest?: string | undefined;
  readonly limit: number;
  /** Of the page before; empty: the first page. */
  readonly cursor: string;
}

/** Messages of a channel, newest first, or of a thread, oldest first. An empty cursor: there are no more. */
export interface MessagePage {
  readonly messages: readonly SlackMessageInfo[];
  readonly cursor: string;
}

/** The workspace of a message's author, where the message says it. */
export function teamOf({ user_team: shared, team }: SlackMessageInfo): string | undefined {
  return shared ?? team;
}
