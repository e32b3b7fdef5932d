import { PermissionFlagsBits } from "discord-api-types/v10";
import type {
  APIOverwrite,
  APIRole,
  GatewayGuildCreateDispatchData,
  GatewayGuildUpdateDispatchData,
} from "discord.js";
import type { Shard } from "./shard-plan.ts";
import { createChannelIndex, type ChannelIndex, type IndexedChannel } from "./channel-index.ts";

interface Role {
  readonly name: string;
  readonly isManaging: boolean;
  readonly readsHistory: boolean;
  /** Has every permission, whatever a channel says. */
  readonly isAdministrator: boolean;
}

/** What a channel says of the history for a role or a member: the bit that is allowed or denied. */
export interface HistoryOverwrite {
  readonly id: string;
  readonly isAllowed: boolean;
}

interface Guild {
  name: string;
  locale: string | undefined;
  ownerId: string;
  botRoleId: string | undefined;
  readonly roles: Map<string, Role>;
  channels: ChannelIndex;
  /** By channel; those that say nothing of it, which are most, are left out. */
  readonly historyOverwrites: Map<string, readonly HistoryOverwrite[]>;
}

/**
 * What the gateway says of the bot's servers on this process's shards, as far as Parley uses it. A server of 1,000
 * channels takes about 30 kB, where the objects of a client's cache take megabytes.
 */
export interface GuildDirectory {
  /** Servers of the bot, those in an outage included. */
  ids(): string[];
  has(guildId: string): boolean;
  nameOf(guildId: string): string | undefined;
  /** The locale that its managers have chosen. */
  localeOf(guildId: string): string | undefined;
  /** The role that the server has for the bot alone. */
  botRoleId(guildId: string): string | undefined;
  roleName(roleId: string): string | undefined;
  channel(channelId: string): IndexedChannel | undefined;
  /** Whether these roles, or the ownership, let a member manage the server. */
  isManager(guildId: string, userId: string, roleIds: readonly string[]): boolean;
  /** Whether a member may see what was said before in a channel that is no thread. */
  readsHistory(member: {
    readonly guildId: string;
    readonly channelId: string;
    readonly userId: string;
    readonly roleIds: readonly string[];
  }): boolean;
}

/** Changes a {@link GuildDirectory}, by the gateway's events. */
export interface GuildRecorder extends GuildDirectory {
  /** A session of a shard has started: these are its servers now. */
  begin(guildIds: readonly string[], shard: Shard): void;
  add(guild: GatewayGuildCreateDispatchData, botId: string): void;
  update(guild: GatewayGuildUpdateDispatchData, botId: string): void;
  remove(guildId: string): void;
  setRole(guildId: string, role: APIRole, botId: string): void;
  removeRole(guildId: string, roleId: string): void;
  setChannel(guildId: string, channel: IndexedChannel, overwrites: readonly APIOverwrite[]): void;
  removeChannel(guildId: string, channelId: string): void;
}

const managing = PermissionFlagsBits.ManageGuild | PermissionFlagsBits.Administrator;
const readingHistory = PermissionFlagsBits.ReadMessageHistory | PermissionFlagsBits.Administrator;

/** Whether permissions, as Discord's decimal string, let somebody manage a server. */
export function isManaging(permissions: string): boolean {
  return (BigInt(permissions) & managing) !== 0n;
}

/** Whether permissions, as Discord's decimal string, let somebody see what was said before. */
export function isReadingHistory(permissions: string): boolean {
  return (BigInt(permissions) & readingHistory) !== 0n;
}

/** What a channel says of permissions; threads have nothing of their own. */
export function overwritesOf(channel: object): readonly APIOverwrite[] {
  const { permission_overwrites: overwrites } = channel as { permission_overwrites?: APIOverwrite[] };
  return overwrites ?? [];
}

function toHistoryOverwrites(overwrites: readonly APIOverwrite[]): HistoryOverwrite[] {
  const says = (bits: string): boolean => (BigInt(bits) & PermissionFlagsBits.ReadMessageHistory) !== 0n;
  return overwrites.flatMap(({ id, allow, deny }) =>
    says(allow) || says(deny) ? [{ id, isAllowed: says(allow) }] : [],
  );
}

/** @see {@link GuildRecorder} */
export function createGuildDirectory(): GuildRecorder {
  const guilds = new Map<string, Guild>();

  function guildOf(id: string): Guild {
    let guild = guilds.get(id);
    if (guild === undefined) {
      guild = {
        name: "",
        locale: undefined,
        ownerId: "",
        botRoleId: undefined,
        roles: new Map(),
        channels: createChannelIndex([]),
        historyOverwrites: new Map(),
      };
      guilds.set(id, guild);
    }
    return guild;
  }

  function setRole(guild: Guild, { id, name, permissions, tags }: APIRole, botId: string): void {
    guild.roles.set(id, {
      name,
      isManaging: isManaging(permissions),
      readsHistory: isReadingHistory(permissions),
      isAdministrator: (BigInt(permissions) & PermissionFlagsBits.Administrator) !== 0n,
    });
    if (tags?.bot_id === botId) guild.botRoleId = id;
  }

  function setOverwrites(guild: Guild, channelId: string, overwrites: readonly APIOverwrite[]): void {
    const history = toHistoryOverwrites(overwrites);
    if (history.length > 0) guild.historyOverwrites.set(channelId, history);
    else guild.historyOverwrites.delete(channelId);
  }

  function update(given: GatewayGuildUpdateDispatchData, botId: string): Guild {
    const guild = guildOf(given.id);
    guild.name = given.name;
    guild.locale = given.preferred_locale;
    guild.ownerId = given.owner_id;
    guild.roles.clear();
    for (const role of given.roles) setRole(guild, role, botId);
    return guild;
  }

  return {
    ids: () => [...guilds.keys()],
    has: (guildId) => guilds.has(guildId),
    nameOf: (guildId) => guilds.get(guildId)?.name,
    localeOf: (guildId) => guilds.get(guildId)?.locale,
    botRoleId: (guildId) => guilds.get(guildId)?.botRoleId,
    roleName(roleId) {
      for (const { roles } of guilds.values()) {
        const role = roles.get(roleId);
        if (role !== undefined) return role.name;
      }
      return undefined;
    },
    channel(channelId) {
      for (const { channels } of guilds.values()) {
        const channel = channels.get(channelId);
        if (channel !== undefined) return channel;
      }
      return undefined;
    },
    isManager(guildId, userId, roleIds) {
      const guild = guilds.get(guildId);
      if (guild === undefined) return false;
      if (guild.ownerId === userId) return true;
      // The role of everybody has the id of the server.
      return [guildId, ...roleIds].some((id) => guild.roles.get(id)?.isManaging === true);
    },
    readsHistory({ guildId, channelId, userId, roleIds }) {
      const guild = guilds.get(guildId);
      if (guild === undefined) return false;
      // The role of everybody has the id of the server.
      const roles = [guildId, ...roleIds].map((id) => guild.roles.get(id));
      if (guild.ownerId === userId || roles.some((role) => role?.isAdministrator === true)) return true;
      const overwrites = guild.historyOverwrites.get(channelId) ?? [];
      const said = (ids: readonly string[]): boolean | undefined => {
        const own = overwrites.filter(({ id }) => ids.includes(id));
        return own.length === 0 ? undefined : own.some(({ isAllowed }) => isAllowed);
      };
      const ofServer = roles.some((role) => role?.readsHistory === true);
      // What is said of the member wins over the roles, and they over the role of everybody.
      return said([userId]) ?? said(roleIds) ?? said([guildId]) ?? ofServer;
    },
    begin(guildIds, shard) {
      const present = new Set(guildIds);
      for (const id of guilds.keys()) if (shard.has(id) && !present.has(id)) guilds.delete(id);
      for (const id of guildIds) guildOf(id);
    },
    add(guild, botId) {
      const kept = update(guild, botId);
      kept.channels = createChannelIndex(
        guild.channels.map(({ id, type, name }) => ({ id, type, name: name ?? "" })),
      );
      kept.historyOverwrites.clear();
      for (const channel of guild.channels) setOverwrites(kept, channel.id, overwritesOf(channel));
    },
    update: (guild, botId) => void update(guild, botId),
    remove: (guildId) => void guilds.delete(guildId),
    setRole: (guildId, role, botId) => setRole(guildOf(guildId), role, botId),
    removeRole(guildId, roleId) {
      const guild = guilds.get(guildId);
      guild?.roles.delete(roleId);
      if (guild?.botRoleId === roleId) guild.botRoleId = undefined;
    },
    setChannel(guildId, channel, overwrites) {
      const guild = guildOf(guildId);
      setOverwrites(guild, channel.id, overwrites);
      guild.channels = guild.channels.with(channel);
    },
    removeChannel(guildId, channelId) {
      const guild = guilds.get(guildId);
      if (guild === undefined) return;
      guild.channels = guild.channels.without(channelId);
      guild.historyOverwrites.delete(channelId);
    },
  };
}
