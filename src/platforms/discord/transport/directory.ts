import {
  PermissionFlagsBits,
  PermissionsBitField,
  type APIChannel,
  type Channel,
  type Client,
} from "discord.js";
import type { Clock } from "../../../core/clock.ts";
import { inTime } from "../../../support/clock.ts";
import { translate } from "../../../words/translate.ts";
import { toConversationId } from "../address.ts";
import type { Names } from "../intake/incoming.ts";
import type { DiscordApi } from "./api.ts";
import type { ShardPlan } from "./shards.ts";
import { createRecent } from "../../../support/recent.ts";

/** The facts about a channel that are used. */
interface KnownChannel {
  readonly type: number;
  readonly name: string | undefined;
  readonly guildId: string | undefined;
  /** The channel that contains a thread. */
  readonly parentId: string | undefined;
  /** The user who opened a thread. */
  readonly ownerId: string | undefined;
  readonly archiveMinutes: number | undefined;
}

/**
 * Knows names, roles and permissions of the bot's servers on this process's shards, and channels of any kind.
 * Servers are in the caches of the client. A channel that is not, such as an archived thread or direct
 * messages, is read from Discord.
 */
export interface Directory {
  /** Lists the servers of the bot, those in an outage included. */
  guildIds(): string[];
  hasGuild(guildId: string): boolean;
  guildName(guildId: string): string | undefined;
  /** Returns the locale that a server's managers have chosen. */
  guildLocale(guildId: string): string | undefined;
  /** Returns the bot's nickname in a server. */
  botNickname(guildId: string): string | undefined;
  /** Returns the role that the server has only for the bot. */
  botRoleId(guildId: string): string | undefined;
  /** Returns the name of a role, of that server alone where one is given. */
  roleName(roleId: string, guildId?: string): string | undefined;
  /** Returns the name of a server's channel in the client's cache. */
  channelName(channelId: string, guildId: string): string | undefined;
  /** Whether these roles, or the ownership, let a member manage the server. */
  isManager(guildId: string, userId: string, roleIds: readonly string[]): boolean;
  /** Whether a member may see earlier messages in a channel that is no thread. */
  readsHistory(member: {
    readonly guildId: string;
    readonly channelId: string;
    readonly userId: string;
    readonly roleIds: readonly string[];
  }): boolean;
  /** Returns Discord's type of the channel that a message was sent in. */
  typeOf(message: { readonly channel_id: string; readonly channel_type?: number }): Promise<number>;
  /** Returns what is known of a channel. @throws ParleyError where it cannot be read */
  channel(channelId: string): Promise<KnownChannel>;
  /** Works like {@link channel}, but returns `undefined` where the channel cannot be read. */
  channelIfReadable(channelId: string): Promise<KnownChannel | undefined>;
  /**
   * Returns after how many minutes new threads of a channel are hidden, as people have set it. Returns
   * `undefined` where nothing is set, or the channel cannot be read within a second.
   */
  archiveMinutesOf(channelId: string): Promise<number | undefined>;
  /** Notes that a conversation that needs no mention was accepted, before the store knows it. */
  open(conversationId: string): void;
  isOpen(conversationId: string): boolean;
  /** Drops what was read of a channel that was changed or deleted. */
  forget(channelId: string): void;
}

const maxEntries = 1000;
/** How long a thread waits for a setting of its channel. */
const maxLookupMs = 1000;

/**
 * Creates the {@link Directory}.
 * @param clients one for each shard that is heard here
 */
export function createDirectory(
  api: Pick<DiscordApi, "getChannel">,
  clients: () => readonly Client[],
  clock: Clock,
): Directory {
  const channelsRead = createRecent<Promise<KnownChannel>>(maxEntries);
  const conversations = createRecent(maxEntries);

  const guilds = () => clients().flatMap((client) => [...client.guilds.cache.values()]);
  const guildOf = (guildId: string) => first(clients(), ({ guilds: { cache } }) => cache.get(guildId));
  const cachedChannel = (channelId: string) =>
    first(clients(), ({ channels: { cache } }) => cache.get(channelId));

  function read(channelId: string): Promise<KnownChannel> {
    const cached = cachedChannel(channelId);
    if (cached !== undefined) return Promise.resolve(fromClient(cached));
    const known = channelsRead.get(channelId);
    if (known !== undefined) return known;
    const reading = api.getChannel(channelId).then(fromApi);
    channelsRead.set(channelId, reading);
    // Failures are not cached.
    reading.catch(() => channelsRead.delete(channelId));
    return reading;
  }

  async function readIfPossible(channelId: string): Promise<KnownChannel | undefined> {
    const [channel] = await Promise.allSettled([read(channelId)]);
    return channel.status === "fulfilled" ? channel.value : undefined;
  }

  return {
    guildIds: () => guilds().map(({ id }) => id),
    hasGuild: (guildId) => guildOf(guildId) !== undefined,
    guildName: (guildId) => guildOf(guildId)?.name,
    guildLocale: (guildId) => guildOf(guildId)?.preferredLocale,
    botNickname: (guildId) => guildOf(guildId)?.members.me?.nickname ?? undefined,
    botRoleId(guildId) {
      const guild = guildOf(guildId);
      const botId = guild?.client.user.id;
      return botId === undefined ? undefined : guild?.roles.botRoleFor(botId)?.id;
    },
    roleName: (roleId, guildId) =>
      (guildId === undefined ? guilds() : [guildOf(guildId)])
        .map((guild) => guild?.roles.cache.get(roleId)?.name)
        .find((name) => name !== undefined),
    channelName(channelId, guildId) {
      const channel = cachedChannel(channelId);
      if (channel === undefined) return undefined;
      const known = fromClient(channel);
      return known.guildId === guildId ? known.name : undefined;
    },
    isManager(guildId, userId, roleIds) {
      const guild = guildOf(guildId);
      return (
        guild !== undefined &&
        toPermissions(guild, undefined, userId, roleIds).has(PermissionFlagsBits.ManageGuild)
      );
    },
    readsHistory({ guildId, channelId, userId, roleIds }) {
      const guild = guildOf(guildId);
      if (guild === undefined) return false;
      const channel = guild.channels.cache.get(channelId);
      const overwrites =
        channel !== undefined && "permissionOverwrites" in channel
          ? channel.permissionOverwrites.cache
          : undefined;
      return toPermissions(guild, overwrites, userId, roleIds).has(PermissionFlagsBits.ReadMessageHistory);
    },
    async typeOf({ channel_id: id, channel_type: type }) {
      return type ?? (await read(id)).type;
    },
    channel: read,
    channelIfReadable: readIfPossible,
    archiveMinutesOf: (channelId) =>
      inTime(
        readIfPossible(channelId).then((channel) => channel?.archiveMinutes),
        maxLookupMs,
        { clock },
      ),
    open(conversationId) {
      conversations.set(conversationId, true);
    },
    isOpen: (conversationId) => conversations.get(conversationId) === true,
    forget(channelId) {
      channelsRead.delete(channelId);
      conversations.delete(toConversationId(channelId));
    },
  };
}

/** Returns the first of what the clients have. */
function first<T>(clients: readonly Client[], look: (client: Client) => T | undefined): T | undefined {
  for (const client of clients) {
    const found = look(client);
    if (found !== undefined) return found;
  }
  return undefined;
}

function fromClient(channel: Channel): KnownChannel {
  return {
    type: channel.type,
    name: "name" in channel ? (channel.name ?? undefined) : undefined,
    guildId: "guildId" in channel ? channel.guildId : undefined,
    parentId: "parentId" in channel ? (channel.parentId ?? undefined) : undefined,
    ownerId: "ownerId" in channel ? (channel.ownerId ?? undefined) : undefined,
    archiveMinutes:
      "defaultAutoArchiveDuration" in channel ? (channel.defaultAutoArchiveDuration ?? undefined) : undefined,
  };
}

function fromApi(channel: APIChannel): KnownChannel {
  return {
    type: channel.type,
    name: channel.name ?? undefined,
    guildId: "guild_id" in channel ? channel.guild_id : undefined,
    parentId: "parent_id" in channel ? (channel.parent_id ?? undefined) : undefined,
    ownerId: "owner_id" in channel ? channel.owner_id : undefined,
    archiveMinutes:
      "default_auto_archive_duration" in channel ? channel.default_auto_archive_duration : undefined,
  };
}

/** The bot on Discord, and what it knows by name, as far as the gateway has told it. */
export interface Bot {
  /** Returns the bot's user id. It is empty before the bot is connected. */
  readonly id: () => string;
  /** Returns the names in a server. */
  readonly names: (guildId: string | undefined) => Names;
  /** Returns the name of a person, role, server or channel, by its place or term. */
  readonly nameOf: (id: string) => Promise<string | undefined>;
  /** Whether messages that do not mention the bot have their content. */
  readonly readsContents: () => boolean;
  /** Returns the notes on fields of forms that do not work with this connection. */
  readonly notes: () => Readonly<Record<string, string>>;
}

/** What a connection to Discord tells of the bot. */
interface BotConnection {
  identity():
    | { readonly botId: string; readonly botName: string; readonly botNames: readonly string[] }
    | undefined;
  readsContents(): boolean;
}

export function createBot(directory: Directory, connection: () => BotConnection | undefined): Bot {
  const botId = (): string => connection()?.identity()?.botId ?? "";

  /** Without the Message Content Intent, messages that do not mention the bot arrive empty. */
  const readsContents = (): boolean => connection()?.readsContents() ?? true;

  return {
    id: botId,
    names: (guildId) => ({
      botId: botId(),
      botName: connection()?.identity()?.botName ?? "bot",
      botNames: [
        ...(connection()?.identity()?.botNames ?? []),
        ...(guildId === undefined ? [] : [directory.botNickname(guildId) ?? ""]),
      ],
      botRoleId: guildId === undefined ? undefined : directory.botRoleId(guildId),
      // What stands in another server is not shown here, nor in direct messages.
      roleName: (id) => (guildId === undefined ? undefined : directory.roleName(id, guildId)),
      channelName: (id) => (guildId === undefined ? undefined : directory.channelName(id, guildId)),
    }),
    async nameOf(id) {
      const channelId = /^discord:channel:(\d+)$/.exec(id)?.[1];
      if (channelId !== undefined) {
        const name = (await directory.channelIfReadable(channelId))?.name;
        return name === undefined ? undefined : `#${name}`;
      }
      const roleId = /^discord:role:(\d+)$/.exec(id)?.[1];
      if (roleId !== undefined) return directory.roleName(roleId);
      const guildId = /^discord:guild:(\d+)$/.exec(id)?.[1];
      if (guildId !== undefined) return directory.guildName(guildId);
      const userId = /^discord:(?:user:)?(\d+)$/.exec(id)?.[1];
      return userId === botId() ? connection()?.identity()?.botName : undefined;
    },
    readsContents,
    notes: () => (readsContents() ? {} : { "answer-to": translate("discord.mentions-only") }),
  };
}

/** The part of a server that permissions are computed from. */
interface PermissionSource {
  /** The role of everybody has the same id. */
  readonly id: string;
  readonly ownerId: string;
  readonly roles: { readonly cache: ById<{ readonly permissions: Readonly<PermissionsBitField> }> };
}

/** What a channel allows and denies, by role or member. */
type Overwrites = ById<{
  readonly allow: Readonly<PermissionsBitField>;
  readonly deny: Readonly<PermissionsBitField>;
}>;

interface ById<T> {
  get(id: string): T | undefined;
}

/**
 * Returns a member's permissions, with the overwrites of a channel. The client could compute them only for
 * members in its cache. That cache is empty, but messages name their author's roles.
 * @see https://docs.discord.com/developers/topics/permissions#permission-overwrites
 */
export function toPermissions(
  { id: guildId, ownerId, roles }: PermissionSource,
  overwrites: Overwrites | undefined,
  userId: string,
  roleIds: readonly string[],
): PermissionsBitField {
  const ofRoles = [guildId, ...roleIds].flatMap((id) => roles.cache.get(id)?.permissions ?? []);
  const permissions = new PermissionsBitField(ofRoles);
  if (userId === ownerId || permissions.has(PermissionFlagsBits.Administrator))
    return new PermissionsBitField(PermissionsBitField.All);
  // Overwrites for the member win over those for roles, and these over those for everybody.
  for (const ids of [[guildId], roleIds, [userId]]) {
    const said = ids.flatMap((id) => overwrites?.get(id) ?? []);
    permissions.remove(said.map(({ deny }) => deny)).add(said.map(({ allow }) => allow));
  }
  return permissions;
}

/**
 * Drops servers that the bot was removed from while a shard had no session, since the client keeps them.
 * @param present the servers that a session of the shard starts with
 */
export function dropLeftGuilds(
  { guilds, channels }: Client,
  shardId: number,
  present: ReadonlySet<string>,
): void {
  for (const guild of guilds.cache.values()) {
    if (guild.shardId !== shardId || present.has(guild.id)) continue;
    for (const channelId of guild.channels.cache.keys()) channels.cache.delete(channelId);
    guilds.cache.delete(guild.id);
  }
}

/** The most servers that Discord lists at once. */
const pageSize = 200;
/** One page more than anybody looks at, so that it shows whether there are more. */
const maxPages = 2;

/**
 * Lists the servers of the bot. Where this process runs all shards, they come from the client. Otherwise
 * Discord lists them, at most 400.
 * @returns a function that throws ParleyError `platform-unreachable` where Discord does not answer
 */
export function createOwnGuilds(
  api: Pick<DiscordApi, "listGuilds">,
  directory: Pick<Directory, "guildIds">,
  plan: () => ShardPlan | undefined,
): () => Promise<readonly string[]> {
  async function read(): Promise<readonly string[]> {
    const ids: string[] = [];
    for (let page = 0; page < maxPages; page++) {
      const found = await api.listGuilds({ after: ids.at(-1), limit: pageSize });
      ids.push(...found.map(({ id }) => id));
      if (found.length < pageSize) break;
    }
    return ids;
  }

  return async () => {
    const shards = plan();
    if (shards === undefined) return [];
    return shards.ids.length === shards.count ? directory.guildIds() : read();
  };
}
