import { ApplicationIntegrationType, InteractionContextType } from "discord-api-types/v10";
import type { APIInteraction, APIMessage } from "discord.js";
import { LRUCache } from "lru-cache";
import type { Clock } from "../../core/clock.ts";
import { ParleyError } from "../../core/errors.ts";
import type { Origin } from "../../core/events.ts";
import { expiringBy } from "../../support/lru-time.ts";
import { sleepUnlessAborted } from "../../support/sleep.ts";
import {
  isDirectType,
  isThreadType,
  toChannelPlace,
  toGuildPlace,
  toRoleTerm,
  toUserTerm,
} from "./address.ts";
import type { DiscordApi } from "./api.ts";
import type { ChannelCache } from "./channel-cache.ts";
import { isManaging, isReadingHistory, type GuildDirectory } from "./guild-directory.ts";
import type { Memberships } from "./memberships.ts";

/** How long an interaction waits for Discord: its own deadline is three seconds. */
const interactionLookupMs = 1500;
/** The roles of people whose messages came without them. */
const rolesTtlMs = 60_000;
const maxMembers = 1000;

/** A message of the gateway, or one that was read later: that has neither server nor member. */
export type MessageWithMember = APIMessage & {
  readonly guild_id?: string;
  readonly member?: { readonly roles: readonly string[] };
};

/** Who asks and from where, in the terms of the access rules. */
export interface Origins {
  /** @throws ParleyError `platform-unreachable` in direct messages, where it cannot be looked up in 1.5 s */
  ofInteraction(interaction: APIInteraction): Promise<Origin>;
  /** @throws ParleyError of Discord, where what rules may name cannot be looked up: it must not be guessed */
  ofMessage(message: MessageWithMember, channelType: number): Promise<Origin>;
}

/** @see {@link Origins} */
export function createOrigins(options: {
  readonly api: Pick<DiscordApi, "getMember">;
  readonly channels: Pick<ChannelCache, "placeOf">;
  readonly memberships: Memberships;
  readonly clock: Clock;
  readonly guilds: Pick<GuildDirectory, "has" | "isManager" | "readsHistory">;
}): Origins {
  const { api, channels, memberships, guilds, clock } = options;
  const fetched = new LRUCache<string, { readonly roles: readonly string[] | undefined }>({
    max: maxMembers,
    ttl: rolesTtlMs,
    ...expiringBy(clock),
  });

  async function rolesOf(guildId: string, userId: string): Promise<readonly string[] | undefined> {
    const key = `${guildId} ${userId}`;
    const known = fetched.get(key);
    if (known !== undefined) return known.roles;
    const roles = (await api.getMember(guildId, userId))?.roles;
    fetched.set(key, { roles });
    return roles;
  }

  async function isMemberInDirectMessages(interaction: APIInteraction, userId: string): Promise<boolean> {
    const isByServer = interaction.authorizing_integration_owners[ApplicationIntegrationType.GuildInstall];
    // In other people's direct messages and group chats only an installation for the user works.
    if (interaction.context !== InteractionContextType.BotDM) return isByServer !== undefined;
    const found = new AbortController();
    const lookup = memberships.isMember(userId).finally(() => found.abort());
    const tooLate = sleepUnlessAborted(interactionLookupMs, found.signal, clock).then(() => {
      throw new ParleyError("platform-unreachable", "looking up the common servers took too long");
    });
    // Each may settle after the other.
    lookup.catch(() => undefined);
    tooLate.catch(() => undefined);
    try {
      return (await Promise.race([lookup, tooLate])) ?? isByServer !== undefined;
    } catch (error) {
      if (isByServer !== undefined) return true;
      throw error;
    }
  }

  return {
    async ofInteraction(interaction) {
      const { guild_id: guildId, member, channel } = interaction;
      const userId = (member?.user ?? interaction.user)?.id ?? "";
      const user = toUserTerm(userId);
      if (guildId === undefined || member === undefined)
        return { user, isMember: await isMemberInDirectMessages(interaction, userId), isManager: false };
      const installedIn = interaction.authorizing_integration_owners[ApplicationIntegrationType.GuildInstall];
      const isMember = installedIn === guildId || guilds.has(guildId);
      if (isMember) memberships.seen(userId, guildId);
      const parentId = channel !== undefined && "parent_id" in channel ? channel.parent_id : undefined;
      return {
        user,
        server: toGuildPlace(guildId),
        ...(channel === undefined ? {} : toPlace(channel.id, channel.type, parentId)),
        roles: member.roles.map(toRoleTerm),
        isMember,
        ...(isReadingHistory(member.permissions) ? {} : { readsHistory: false }),
        // Those in the channel; the owner has all.
        isManager: isMember && isManaging(member.permissions),
      };
    },
    async ofMessage(message, channelType) {
      const { id: userId } = message.author;
      const { channel_id: channelId } = message;
      const user = toUserTerm(userId);
      if (isDirectType(channelType))
        return { user, isMember: (await memberships.isMember(userId)) === true, isManager: false };
      const isIncomplete = message.guild_id === undefined || isThreadType(channelType);
      const place = isIncomplete ? await channels.placeOf(channelId) : {};
      const guildId = message.guild_id ?? place.guildId;
      if (guildId === undefined) throw new ParleyError("platform-rejected", "a channel without a server");
      // Absent in messages that were read later; whoever has left the server since is a stranger.
      const roles = message.member?.roles ?? (await rolesOf(guildId, userId));
      if (roles !== undefined) memberships.seen(userId, guildId);
      const readsHistory = guilds.readsHistory({
        guildId,
        channelId: isThreadType(channelType) ? (place.parentId ?? channelId) : channelId,
        userId,
        roleIds: roles ?? [],
      });
      return {
        user,
        server: toGuildPlace(guildId),
        ...(readsHistory ? {} : { readsHistory: false }),
        ...toPlace(channelId, channelType, place.parentId),
        roles: (roles ?? []).map(toRoleTerm),
        isMember: roles !== undefined,
        isManager: roles !== undefined && guilds.isManager(guildId, userId, roles),
      };
    },
  };
}

/** A thread counts as the channel that contains it; rules may name the thread too. */
function toPlace(
  channelId: string,
  channelType: number,
  parentId: string | null | undefined,
): Pick<Origin, "channel" | "thread"> {
  if (!isThreadType(channelType) || typeof parentId !== "string")
    return { channel: toChannelPlace(channelId) };
  return { channel: toChannelPlace(parentId), thread: toChannelPlace(channelId) };
}
