import { randomBytes } from "node:crypto";
import type { Clock } from "./clock.ts";

/** A JSON object of Slack's. */
export type Fields = Record<string, unknown>;

/** Returns a scalar as text, or `fallback` for anything else. */
export function toText(value: unknown, fallback = ""): string {
  if (typeof value === "string") return value;
  return typeof value === "number" || typeof value === "boolean" ? value.toString() : fallback;
}

/** A refused Web API call, which becomes `{ok: false, error, ...extra}`. */
export class SlackApiError extends Error {
  readonly error: string;
  readonly extra: Fields;

  constructor(error: string, extra: Fields = {}) {
    super(error);
    this.error = error;
    this.extra = extra;
  }
}

/** A person or the bot. */
export interface SlackUser {
  readonly id: string;
  readonly name: string;
  readonly isBot: boolean;
  /** The workspace of the person. It is another one for people who are there through a shared channel. */
  readonly teamId: string;
  /** The organisation of the workspace, and those of its workspaces that this person is in. */
  readonly enterprise?: { readonly id: string; readonly teams: readonly string[] };
  readonly isAdmin: boolean;
  readonly isOwner: boolean;
  /** Whether the person is a guest, who is limited to some channels. */
  readonly isGuest: boolean;
  /** The locale of the person's client. The default is `en-US`. */
  readonly locale?: string;
}

/** A channel or direct messages, with all messages. */
export interface SlackChannel {
  readonly id: string;
  readonly name: string;
  readonly kind: "channel" | "group" | "im" | "mpim";
  readonly members: Set<string>;
  readonly messages: SlackMessage[];
  isArchived: boolean;
}

/** A file, which exists from the request of its upload URL on. */
export interface SlackFile {
  readonly id: string;
  readonly name: string;
  readonly mediaType: string;
  readonly owner: string;
  altText: string | undefined;
  title: string;
  bytes: Uint8Array | undefined;
  readonly expectedBytes: number;
  readonly uploadSecret: string;
  isShared: boolean;
  /** Whether it was uploaded in a form of the app, so that it is in no channel. */
  readonly isForApp: boolean;
  isDeleted: boolean;
  readonly extra: Fields;
}

/** A message as the workspace stores it. */
export interface SlackMessage {
  readonly ts: string;
  readonly channel: string;
  readonly user: string;
  readonly threadTs: string | undefined;
  readonly files: SlackFile[];
  /** The id of the only person who sees it. */
  readonly ephemeralTo: string | undefined;
  text: string;
  /** The text that it was posted with, which its notification shows. */
  readonly firstText: string;
  blocks: Fields[];
  /** Whether Slack would fetch the pages that the text links to. */
  previewsLinks: boolean;
  edits: number;
  /** A person's last edit. Its `ts` is in whole seconds. */
  edited?: { readonly user: string; readonly ts: string };
  /** What forwarded messages, previews and older apps add. */
  attachments?: readonly Fields[];
  /** The name that another app posts under. */
  appName?: string;
  metadata?: unknown;
  stream?: { startedAt: number; open: boolean };
}

/** The state of the workspace. */
export interface Workspace {
  readonly teamId: string;
  readonly appId: string;
  /** The app that the bot token belongs to. It differs from `appId` if a person mixed up two apps. */
  botAppId: string;
  readonly botUserId: string;
  readonly botId: string;
  /** The current token. */
  botToken: string;
  /** Unix milliseconds. */
  tokenExpiresAt: number;
  /** Rotated tokens that are still accepted, with their expiry. */
  readonly olderTokens: Map<string, number>;
  /** The only refresh token that can be used, if the app has token rotation. */
  refreshToken: string | undefined;
  readonly appToken: string;
  /** The organisation for which the app was installed as a whole. */
  enterpriseId: string | undefined;
  readonly scopes: Set<string>;
  readonly users: Map<string, SlackUser>;
  readonly channels: Map<string, SlackChannel>;
  readonly files: Map<string, SlackFile>;
  id(prefix: string): string;
  nextTs(): string;
  addUser(name: string, more?: Partial<SlackUser>): SlackUser;
  addChannel(name: string, kind: SlackChannel["kind"], members: readonly string[]): SlackChannel;
  directMessagesOf(userId: string): SlackChannel;
  addFile(file: Partial<SlackFile> & Pick<SlackFile, "name" | "owner">): SlackFile;
  addMessage(message: Partial<SlackMessage> & Pick<SlackMessage, "channel" | "user">): SlackMessage;
  findMessage(channel: string, ts: string): SlackMessage | undefined;
}

/** No two messages have the same `ts`, also in different workspaces. */
const lastMicros = new WeakMap<Clock, number>();

/** The scopes of the generated manifest. */
const grantedScopes = [
  "app_mentions:read",
  "assistant:write",
  "channels:history",
  "channels:read",
  "chat:write",
  "commands",
  "files:read",
  "files:write",
  "groups:history",
  "groups:read",
  "im:history",
  "mpim:history",
  "users:read",
];

/** What a workspace shares with others. */
export interface WorkspaceOptions {
  readonly appId?: string;
  /** The organisation for which the app is installed as a whole. */
  readonly enterpriseId?: string;
}

/** Creates an empty workspace with the bot as its only user. */
export function createWorkspace(clock: Clock, options: WorkspaceOptions = {}): Workspace {
  let counter = 0;
  const unique = () => randomBytes(4).toString("hex").toUpperCase();
  const teamId = `T${unique()}`;
  const person = { teamId, isBot: false, isAdmin: false, isOwner: false, isGuest: false };
  const bot: SlackUser = { ...person, id: `U${unique()}B`, name: "Parley", isBot: true };

  const appId = options.appId ?? `A${unique()}`;
  const workspace: Workspace = {
    teamId,
    appId,
    botAppId: appId,
    botUserId: bot.id,
    botId: `B${unique()}`,
    botToken: `xoxb-${randomBytes(12).toString("hex")}`,
    tokenExpiresAt: Infinity,
    olderTokens: new Map(),
    refreshToken: undefined,
    enterpriseId: options.enterpriseId,
    appToken: `xapp-1-${appId}-${randomBytes(12).toString("hex")}`,
    scopes: new Set(grantedScopes),
    users: new Map([[bot.id, bot]]),
    channels: new Map(),
    files: new Map(),
    id: (prefix) => `${prefix}${(counter += 1).toString(36).toUpperCase().padStart(3, "0")}${unique()}`,
    nextTs() {
      const micros = Math.max((lastMicros.get(clock) ?? 0) + 1, Math.floor(clock.now() * 1000));
      lastMicros.set(clock, micros);
      return `${Math.floor(micros / 1e6)}.${String(micros % 1e6).padStart(6, "0")}`;
    },
    addUser(name, more = {}) {
      const user: SlackUser = { ...person, id: workspace.id("U"), name, ...more };
      workspace.users.set(user.id, user);
      return user;
    },
    addChannel(name, kind, members) {
      const prefix = kind === "im" ? "D" : kind === "channel" ? "C" : "G";
      const channel: SlackChannel = {
        id: workspace.id(prefix),
        name,
        kind,
        members: new Set(members),
        messages: [],
        isArchived: false,
      };
      workspace.channels.set(channel.id, channel);
      return channel;
    },
    directMessagesOf(userId) {
      for (const channel of workspace.channels.values()) {
        if (channel.kind === "im" && channel.members.has(userId) && channel.members.has(bot.id))
          return channel;
      }
      return workspace.addChannel(`dm-${userId}`, "im", [userId, bot.id]);
    },
    addFile(file) {
      const made: SlackFile = {
        id: workspace.id("F"),
        mediaType: "application/octet-stream",
        altText: undefined,
        title: file.name,
        bytes: undefined,
        expectedBytes: file.bytes?.length ?? 0,
        uploadSecret: unique(),
        isShared: false,
        isForApp: false,
        isDeleted: false,
        extra: {},
        ...file,
      };
      workspace.files.set(made.id, made);
      return made;
    },
    addMessage(message) {
      const made: SlackMessage = {
        ts: workspace.nextTs(),
        threadTs: undefined,
        files: [],
        ephemeralTo: undefined,
        text: "",
        blocks: [],
        previewsLinks: false,
        edits: 0,
        firstText: message.text ?? "",
        ...message,
      };
      workspace.channels.get(made.channel)?.messages.push(made);
      return made;
    },
    findMessage: (channel, ts) =>
      workspace.channels
        .get(channel)
        ?.messages.find((message) => message.ts === ts && message.ephemeralTo === undefined),
  };
  return workspace;
}

/** Returns what Slack says about a token, or `undefined` if it is none of this workspace's app. */
export function checkToken(
  workspace: Workspace,
  token: string,
  now: number,
): "valid" | "expired" | undefined {
  const expiresAt =
    token === workspace.botToken ? workspace.tokenExpiresAt : workspace.olderTokens.get(token);
  return expiresAt === undefined ? undefined : expiresAt > now ? "valid" : "expired";
}

/** Whether others see replies in a thread. */
export function hasReplies(
  { channels }: Pick<Workspace, "channels">,
  channel: string,
  thread: string,
): boolean {
  const messages = channels.get(channel)?.messages ?? [];
  return messages.some(({ threadTs, ephemeralTo }) => threadTs === thread && ephemeralTo === undefined);
}

/** Whether the bot may read a file: it is in a channel of the bot, its own, or was given in a form. */
export function botSees({ channels, botUserId }: Workspace, file: SlackFile): boolean {
  if (file.isForApp || file.owner === botUserId) return true;
  return [...channels.values()].some(
    ({ members, messages }) => members.has(botUserId) && messages.some(({ files }) => files.includes(file)),
  );
}

/** Returns a file as events and methods represent it. */
export function toFileJson(workspace: Workspace, file: SlackFile, origin: string): Fields {
  const extension = file.name.includes(".") ? (file.name.split(".").at(-1) ?? "") : "";
  return {
    id: file.id,
    created: 1_700_000_000,
    name: file.name,
    title: file.title,
    mimetype: file.mediaType,
    filetype: extension,
    user: file.owner,
    size: file.bytes?.length ?? 0,
    mode: "hosted",
    is_external: false,
    url_private: `${origin}/files-pri/${workspace.teamId}-${file.id}/${encodeURIComponent(file.name)}`,
    url_private_download: `${origin}/files-pri/${workspace.teamId}-${file.id}/download/${encodeURIComponent(file.name)}`,
    ...(file.altText === undefined ? {} : { alt_txt: file.altText }),
    ...file.extra,
  };
}
