import { randomBytes } from "node:crypto";
import type { SimModal } from "./modals.ts";

/** The bits of supported permissions, with Discord's names. */
export const permissionBits = {
  VIEW_CHANNEL: 1n << 10n,
  SEND_MESSAGES: 1n << 11n,
  EMBED_LINKS: 1n << 14n,
  ATTACH_FILES: 1n << 15n,
  READ_MESSAGE_HISTORY: 1n << 16n,
  MENTION_EVERYONE: 1n << 17n,
  CREATE_PUBLIC_THREADS: 1n << 35n,
  CREATE_PRIVATE_THREADS: 1n << 36n,
  SEND_MESSAGES_IN_THREADS: 1n << 38n,
} as const;

/** A supported permission. */
export type Permission = keyof typeof permissionBits;

/** The permissions of people that Parley reads. */
export const managerBits = { ADMINISTRATOR: 1n << 3n, MANAGE_GUILD: 1n << 5n } as const;

/** What @everyone has by default, as far as it is simulated, together with USE_APPLICATION_COMMANDS. */
const everyoneBits = Object.values(permissionBits).reduce((all, bit) => all | bit, 1n << 31n);

/** Discord's channel types. */
export const channelTypes = {
  text: 0,
  dm: 1,
  voice: 2,
  group: 3,
  announcement: 5,
  announcementThread: 10,
  publicThread: 11,
  privateThread: 12,
  stage: 13,
  forum: 15,
  media: 16,
} as const;

/** The types of threads, forum posts included. */
const threadTypes: ReadonlySet<number> = new Set([
  channelTypes.announcementThread,
  channelTypes.publicThread,
  channelTypes.privateThread,
]);

/** Discord's message flags. */
export const messageFlags = {
  suppressEmbeds: 1 << 2,
  hasThread: 1 << 5,
  ephemeral: 1 << 6,
  loading: 1 << 7,
  suppressNotifications: 1 << 12,
  voice: 1 << 13,
  componentsV2: 1 << 15,
} as const;

/** A message with one of these flags notifies nobody. */
const silentFlags = messageFlags.loading | messageFlags.suppressNotifications;

/** A user or bot. */
export interface SimUser {
  readonly id: string;
  readonly username: string;
  readonly globalName: string | null;
  readonly isBot: boolean;
  /** The locale of the person's client. The default is `en-US`. */
  readonly locale?: string;
}

/** A channel, direct message channel or thread. */
export interface SimChannel {
  readonly id: string;
  readonly type: number;
  readonly guildId: string | undefined;
  readonly parentId: string | undefined;
  name: string;
  readonly ownerId: string | undefined;
  readonly recipientId: string | undefined;
  archived: boolean;
  locked: boolean;
  /** The default that people set for a channel's threads. A thread has its own. */
  archiveMinutes: number | undefined;
  /** The users who were added to the thread, so that it is in their list. */
  readonly threadMembers: Set<string>;
  /** The permissions denied to the bot. Threads inherit those of their parent. */
  readonly denied: Set<Permission>;
  /** The permissions denied to members, by user. Threads inherit those of their parent. */
  readonly deniedTo: Map<string, Set<Permission>>;
  readonly messages: SimMessage[];
  /** The times of the bot's typing indicators. */
  readonly typing: number[];
  /** Until when the bot is shown as typing. */
  typingUntil: number;
}

/** An uploaded file. */
export interface SimAttachment {
  readonly id: string;
  readonly filename: string;
  readonly contentType: string | undefined;
  readonly bytes: Uint8Array;
  readonly description: string | undefined;
  readonly durationSecs: number | undefined;
  readonly waveform: string | undefined;
  /** Whether it belongs to a command. Such files have another path than those of messages. */
  readonly isEphemeral: boolean;
  readonly channelId: string;
}

/** A poll that a person makes. */
export interface SimPoll {
  readonly question: string;
  readonly answers: readonly string[];
}

/** The parts of a message beside its text and files. */
export interface MessageExtras {
  readonly poll?: SimPoll;
  /** The names of stickers. */
  readonly stickers?: readonly string[];
  /** The embeds that Discord adds to links, and that apps add to their messages. */
  readonly embeds?: readonly Readonly<Record<string, unknown>>[];
  /** Only apps send components. */
  readonly components?: readonly unknown[];
  /** The message that this one forwards. */
  readonly forwards?: SimMessage;
}

export interface SimMessage {
  readonly id: string;
  readonly channelId: string;
  readonly author: SimUser;
  readonly webhookId: string | undefined;
  readonly type: number;
  content: string;
  /** The text of its notification, or `undefined` if it has none or only a placeholder was posted. */
  readonly notification: string | undefined;
  attachments: SimAttachment[];
  flags: number;
  components: unknown[];
  embeds: unknown[];
  readonly extras: MessageExtras;
  readonly createdAt: number;
  editedAt: number | undefined;
  /** The earlier texts, oldest first. */
  readonly history: string[];
  /** The ids of users and roles that were notified, or "everyone". */
  pings: string[];
  readonly referenceId: string | undefined;
  readonly nonce: string | undefined;
  readonly interactionId: string | undefined;
  /** The only user who sees it. */
  readonly ephemeralTo: string | undefined;
  isDeleted: boolean;
}

/** An interaction and the state of its response. */
export interface SimInteraction {
  readonly id: string;
  readonly token: string;
  readonly type: number;
  readonly user: SimUser;
  readonly channelId: string;
  readonly createdAt: number;
  readonly sourceMessageId: string | undefined;
  ackedAt: number | undefined;
  ackType: number | undefined;
  originalId: string | undefined;
  /** Whether the next follow-up replaces the placeholder of a defer. */
  isPlaceholderOpen: boolean;
  followUps: number;
  choices: readonly { readonly name: string; readonly value: string | number }[] | undefined;
  modal: SimModal | undefined;
  readonly commandName: string | undefined;
}

/** A role of the server. */
export interface SimRole {
  readonly id: string;
  readonly name: string;
  readonly permissions: bigint;
  /** The bot that Discord made the role for, if it is such a role. */
  readonly botId?: string;
}

export interface SimGuild {
  readonly id: string;
  readonly name: string;
  readonly ownerId: string;
  /** The first role is @everyone, which has the server's id. */
  readonly roles: Map<string, SimRole>;
  /** The roles of each member by their user id, without @everyone. */
  readonly members: Map<string, Set<string>>;
  /** It is false after the bot was removed. */
  hasBot: boolean;
  /** The default is `en-US`. */
  preferredLocale?: string;
  /** How many text channels it has that nobody writes in, besides those of the world. */
  readonly emptyChannels?: number;
}

/** A registered command with its id. */
export type RegisteredCommand = Readonly<Record<string, unknown>> & {
  readonly id: string;
  readonly name: string;
  readonly type: number;
};

/** The state of the simulated Discord. */
export interface World {
  readonly now: () => number;
  readonly nextId: () => string;
  readonly bot: SimUser;
  readonly applicationId: string;
  readonly guild: SimGuild;
  /** Further servers of the bot, by id. */
  readonly furtherGuilds: Map<string, SimGuild>;
  readonly users: Map<string, SimUser>;
  readonly channels: Map<string, SimChannel>;
  readonly interactions: Map<string, SimInteraction>;
  readonly attachments: Map<string, SimAttachment>;
  /** The bot's last message with each nonce. */
  readonly nonces: Map<string, SimMessage>;
  /** The users who take direct messages only from their friends. */
  readonly closedDirectMessages: Set<string>;
  commands: RegisteredCommand[];
  /** The portal's install link, if the application has one. */
  installParams: { readonly scopes: readonly string[]; readonly permissions: string } | undefined;
  /** Whether the Message Content Intent is on in the portal. */
  messageContentAllowed: boolean;
  readonly cdnSecret: string;
  /** `http://127.0.0.1:<port>`, which is set once the server listens. */
  origin: string;
}

const discordEpoch = 1_420_070_400_000n;

/** Creates a world with one server and a bot in it. Ids are ascending snowflakes of the world's clock. */
export function createWorld(options: { now: () => number; messageContentAllowed: boolean }): World {
  let counter = 0n;
  const nextId = (): string => {
    counter += 1n;
    return (((BigInt(Math.floor(options.now())) - discordEpoch) << 22n) + (counter & 0x3fffffn)).toString();
  };
  const bot: SimUser = { id: nextId(), username: "parley", globalName: null, isBot: true };
  const owner: SimUser = { id: nextId(), username: "owner", globalName: "Owner", isBot: false };
  const guildId = nextId();
  return {
    now: options.now,
    nextId,
    bot,
    applicationId: bot.id,
    guild: {
      id: guildId,
      name: "Guild",
      ownerId: owner.id,
      roles: new Map([[guildId, { id: guildId, name: "@everyone", permissions: everyoneBits }]]),
      members: new Map([
        [bot.id, new Set()],
        [owner.id, new Set()],
      ]),
      hasBot: true,
    },
    furtherGuilds: new Map(),
    users: new Map([
      [bot.id, bot],
      [owner.id, owner],
    ]),
    channels: new Map(),
    interactions: new Map(),
    attachments: new Map(),
    nonces: new Map(),
    closedDirectMessages: new Set(),
    commands: [],
    installParams: undefined,
    messageContentAllowed: options.messageContentAllowed,
    cdnSecret: randomBytes(16).toString("hex"),
    origin: "",
  };
}

/** Adds a channel to the world. */
export function addChannel(
  world: World,
  channel: Pick<SimChannel, "type" | "name"> & Partial<SimChannel>,
): SimChannel {
  const made: SimChannel = {
    id: world.nextId(),
    guildId: undefined,
    parentId: undefined,
    ownerId: undefined,
    recipientId: undefined,
    archived: false,
    locked: false,
    archiveMinutes: undefined,
    threadMembers: new Set(),
    denied: new Set(),
    deniedTo: new Map(),
    messages: [],
    typing: [],
    typingUntil: 0,
    ...channel,
  };
  world.channels.set(made.id, made);
  return made;
}

/** Adds a message to its channel. Omitted fields are empty. */
export function addMessage(
  world: World,
  message: Pick<SimMessage, "channelId" | "author" | "content"> & Partial<SimMessage>,
): SimMessage {
  const made: SimMessage = {
    id: world.nextId(),
    webhookId: undefined,
    type: 0,
    notification: ((message.flags ?? 0) & silentFlags) === 0 ? message.content : undefined,
    attachments: [],
    flags: 0,
    components: [],
    embeds: [],
    extras: {},
    createdAt: world.now(),
    editedAt: undefined,
    history: [],
    pings: [],
    referenceId: undefined,
    nonce: undefined,
    interactionId: undefined,
    ephemeralTo: undefined,
    isDeleted: false,
    ...message,
  };
  const channel = world.channels.get(made.channelId);
  if (channel === undefined) throw new Error(`no channel ${made.channelId}`);
  channel.messages.push(made);
  if (made.author === world.bot) channel.typingUntil = 0;
  if (isThread(channel) && !channel.locked) channel.archived = false;
  return made;
}

export function isThread(channel: SimChannel): boolean {
  return threadTypes.has(channel.type);
}

/** Whether a channel is a forum or media channel, which holds threads and no messages. */
export function holdsPosts({ type }: SimChannel): boolean {
  return type === channelTypes.forum || type === channelTypes.media;
}

/** Whether the channel is in a server that the bot is not a member of. */
export function isElsewhere(world: World, { guildId }: SimChannel): boolean {
  return guildId !== undefined && findGuild(world, guildId) === undefined;
}

/** Returns the servers of the bot. */
export function guildsOf(world: World): SimGuild[] {
  return [world.guild, ...world.furtherGuilds.values()].filter(({ hasBot }) => hasBot);
}

/** Whether a person is in a server of the bot. */
export function sharesGuild(world: World, userId: string): boolean {
  return guildsOf(world).some(({ members }) => members.has(userId));
}

/** Returns a server of the bot. */
export function findGuild(world: World, id: string | undefined): SimGuild | undefined {
  return id === world.guild.id ? world.guild : world.furtherGuilds.get(id ?? "");
}

/**
 * Adds a server. Its id decides its shard, so that servers are spread over the shards in turn.
 * @param emptyChannels how many text channels it has in which nobody writes
 */
export function addGuild(world: World, name: string, emptyChannels = 0): SimGuild {
  const index = BigInt(world.furtherGuilds.size);
  const yearMs = 365n * 24n * 60n * 60_000n;
  const madeAt =
    (BigInt(Math.floor(world.now() / 10_000_000)) * 10_000_000n - discordEpoch - yearMs) & ~1023n;
  const id = ((madeAt + index) << 22n).toString();
  const guild: SimGuild = {
    id,
    name,
    ownerId: world.guild.ownerId,
    roles: new Map([[id, { id, name: "@everyone", permissions: everyoneBits }]]),
    members: new Map([[world.bot.id, new Set()]]),
    hasBot: true,
    emptyChannels,
  };
  world.furtherGuilds.set(id, guild);
  return guild;
}

/** Returns the permissions of a member in the server. The owner and administrators have all. */
export function memberPermissions(world: World, userId: string, guild = world.guild): bigint {
  const everything = (1n << 49n) - 1n;
  if (userId === guild.ownerId) return everything;
  const roles = [guild.id, ...(guild.members.get(userId) ?? [])];
  const bits = roles.reduce((all, id) => all | (guild.roles.get(id)?.permissions ?? 0n), 0n);
  return (bits & managerBits.ADMINISTRATOR) === 0n ? bits : everything;
}

/** Returns the permissions of a member in a channel, as Discord's decimal string. */
export function memberPermissionsIn(
  world: World,
  userId: string,
  channel: SimChannel,
  guild: SimGuild | undefined,
): string {
  const bits = memberPermissions(world, userId, guild);
  const all = (1n << 49n) - 1n;
  const parent = isThread(channel) ? world.channels.get(channel.parentId ?? "") : channel;
  const denied = [...(parent?.deniedTo.get(userId) ?? [])].reduce(
    (sum, name) => sum | permissionBits[name],
    0n,
  );
  return (bits === all ? bits : bits & ~denied).toString();
}

/** Whether the bot has a permission in a channel. In direct messages it has all of them. */
export function botMay(world: World, channel: SimChannel, permission: Permission): boolean {
  if (channel.type === channelTypes.dm) return true;
  // Bots are in no group chats.
  if (channel.type === channelTypes.group) return false;
  if (isElsewhere(world, channel)) return false;
  if (channel.denied.has(permission)) return false;
  const parent = channel.parentId === undefined ? undefined : world.channels.get(channel.parentId);
  return parent === undefined || !isThread(channel) || !parent.denied.has(permission);
}

/** Returns the bot's permissions in the channel as Discord's decimal string. */
export function botPermissions(world: World, channel: SimChannel): string {
  let bits = 0n;
  for (const [name, bit] of Object.entries(permissionBits)) {
    if (botMay(world, channel, name as Permission)) bits |= bit;
  }
  return bits.toString();
}

/** Returns a message that is not deleted. */
export function findMessage(world: World, channelId: string, messageId: string): SimMessage | undefined {
  return world.channels
    .get(channelId)
    ?.messages.find((message) => message.id === messageId && !message.isDeleted);
}
