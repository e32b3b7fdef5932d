import {
  ApplicationIntegrationType,
  PermissionFlagsBits,
  PermissionsBitField,
  type APIInteraction,
  type APIMessage,
} from "discord.js";
import type { Clock } from "../../../core/clock.ts";
import { ParleyError } from "../../../core/errors.ts";
import type { Origin } from "../../../core/events.ts";
import { systemClock, inTime } from "../../../support/clock.ts";
import { createConcurrencyLimit } from "../../../support/queues.ts";
import {
  isDirectType,
  isThreadType,
  toChannelPlace,
  toGuildPlace,
  toRoleTerm,
  toUserTerm,
} from "../address.ts";
import type { DiscordApi } from "../transport/api.ts";
import type { Directory } from "../transport/directory.ts";
import { createRecent } from "../../../support/recent.ts";

/** How long an interaction waits for Discord. Its own deadline is three seconds. */
const interactionLookupMs = 1500;
/** How long the roles of people are kept whose messages came without them. */
const rolesTtlMs = 60_000;
const maxMembers = 1000;

/** A message of the gateway, or one that was read later and so has neither server nor member. */
type MessageWithMember = APIMessage & {
  readonly guild_id?: string;
  readonly member?: { readonly roles: readonly string[] };
};

/** Tells who asks and from where, in the terms of the access rules. */
export interface Origins {
  /** @throws ParleyError `platform-unreachable` in direct messages, where it cannot be looked up in 1.5 s */
  ofInteraction(interaction: APIInteraction): Promise<Origin>;
  /** @throws ParleyError of Discord where what rules may name cannot be looked up and must not be guessed */
  ofMessage(message: MessageWithMember, channelType: number): Promise<Origin>;
}

export function createOrigins(options: {
  readonly api: Pick<DiscordApi, "getMember">;
  readonly directory: Pick<Directory, "channel" | "hasGuild" | "isManager" | "readsHistory">;
  readonly memberships: Memberships;
  readonly clock: Clock;
}): Origins {
  const { api, directory, memberships, clock } = options;
  const fetched = createRecent<{ readonly roles: readonly string[] | undefined }>(
    maxMembers,
    rolesTtlMs,
    () => clock.monotonic(),
  );

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
    const lookup = memberships.isMember(userId).then((isMember) => ({ isMember }));
    try {
      const found = await inTime(lookup, interactionLookupMs, { clock });
      if (found !== undefined) return found.isMember ?? isByServer !== undefined;
      throw new ParleyError("platform-unreachable", "looking up the common servers took too long");
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
      const isMember = installedIn === guildId || directory.hasGuild(guildId);
      if (isMember) memberships.seen(userId, guildId);
      // These are the permissions in the channel. The owner has all.
      const permissions = new PermissionsBitField(BigInt(member.permissions));
      const parentId = channel !== undefined && "parent_id" in channel ? channel.parent_id : undefined;
      return {
        user,
        server: toGuildPlace(guildId),
        ...(channel === undefined ? {} : toPlace(channel.id, channel.type, parentId)),
        roles: member.roles.map(toRoleTerm),
        isMember,
        ...(permissions.has(PermissionFlagsBits.ReadMessageHistory) ? {} : { readsHistory: false }),
        isManager: isMember && permissions.has(PermissionFlagsBits.ManageGuild),
      };
    },
    async ofMessage(message, channelType) {
      const { id: userId } = message.author;
      const { channel_id: channelId } = message;
      const user = toUserTerm(userId);
      if (isDirectType(channelType))
        return { user, isMember: (await memberships.isMember(userId)) === true, isManager: false };
      const isIncomplete = message.guild_id === undefined || isThreadType(channelType);
      const place = isIncomplete ? await directory.channel(channelId) : undefined;
      const guildId = message.guild_id ?? place?.guildId;
      if (guildId === undefined) throw new ParleyError("platform-rejected", "a channel without a server");
      // Messages that were read later have no member. Whoever has left the server since is a stranger.
      const roles = message.member?.roles ?? (await rolesOf(guildId, userId));
      if (roles !== undefined) memberships.seen(userId, guildId);
      const readsHistory = directory.readsHistory({
        guildId,
        channelId: isThreadType(channelType) ? (place?.parentId ?? channelId) : channelId,
        userId,
        roleIds: roles ?? [],
      });
      return {
        user,
        server: toGuildPlace(guildId),
        ...(readsHistory ? {} : { readsHistory: false }),
        ...toPlace(channelId, channelType, place?.parentId),
        roles: (roles ?? []).map(toRoleTerm),
        isMember: roles !== undefined,
        isManager: roles !== undefined && directory.isManager(guildId, userId, roles),
      };
    },
  };
}

/** Returns the place of a message. A thread counts as its channel, but rules may name the thread too. */
function toPlace(
  channelId: string,
  channelType: number,
  parentId: string | null | undefined,
): Pick<Origin, "channel" | "thread"> {
  if (!isThreadType(channelType) || typeof parentId !== "string")
    return { channel: toChannelPlace(channelId) };
  return { channel: toChannelPlace(parentId), thread: toChannelPlace(channelId) };
}

const maxPeople = 5000;
/** Somebody who leaves the last common server keeps direct messages for this long. */
const memberTtlMs = 10 * 60_000;
/** Somebody who joins a server is a stranger in direct messages for this long. */
const strangerTtlMs = 60_000;
/** How many servers are looked at for one person. */
const maxGuilds = 200;
/** The number of concurrent requests for all people. */
const maxConcurrent = 5;

/** Knows whether people share a server with the bot. Discord does not say it in direct messages. */
interface Memberships {
  /** Notes that somebody was seen in a server of the bot. */
  seen(userId: string, guildId: string): void;
  /**
   * Answers from memory (10 minutes for members, one for strangers), else from Discord. It begins with the
   * server that they were last seen in and asks at most 200 servers. Returns `undefined` where the bot is in
   * more servers, and the person is in none of those asked.
   * @throws ParleyError `platform-unreachable` where Discord did not answer for every server
   */
  isMember(userId: string): Promise<boolean | undefined>;
  /** Drops what is known, because the bot has left a server. */
  clear(): void;
}

/**
 * Creates an empty {@link Memberships}.
 * @param guildIds the servers of the bot, of all its shards; more than 200 need not be complete
 */
export function createMemberships(
  api: Pick<DiscordApi, "getMember">,
  guildIds: () => readonly string[] | Promise<readonly string[]>,
  clock: Clock = systemClock,
): Memberships {
  const limit = createConcurrencyLimit(maxConcurrent);
  /** The results, and the look-ups that are not done. */
  const known = createRecent<Promise<boolean | undefined>>(maxPeople, strangerTtlMs, () => clock.monotonic());
  /** The servers that people were seen in. One request is enough as long as they stay there. */
  const lastGuilds = createRecent<string>(maxPeople);

  function note(userId: string, isMember: boolean): void {
    known.set(userId, Promise.resolve(isMember), { ttl: isMember ? memberTtlMs : strangerTtlMs });
  }

  async function lookUp(userId: string): Promise<boolean | undefined> {
    const all = await guildIds();
    const last = all.find((id) => id === lastGuilds.get(userId));
    const others = all.filter((id) => id !== last).slice(0, last === undefined ? maxGuilds : maxGuilds - 1);
    const groups = last === undefined ? [] : [[last]];
    for (let first = 0; first < others.length; first += maxConcurrent)
      groups.push(others.slice(first, first + maxConcurrent));
    let failure: unknown;
    for (const ids of groups) {
      const members = await Promise.allSettled(ids.map((id) => limit(() => api.getMember(id, userId))));
      for (const [index, member] of members.entries()) {
        if (member.status === "rejected") failure ??= member.reason;
        else if (member.value !== undefined) {
          lastGuilds.set(userId, ids[index] ?? "");
          return true;
        }
      }
    }
    if (failure !== undefined) throw failure;
    return all.length > maxGuilds ? undefined : false;
  }

  return {
    seen(userId, guildId) {
      lastGuilds.set(userId, guildId);
      note(userId, true);
    },
    async isMember(userId) {
      const before = known.get(userId);
      if (before !== undefined) return before;
      const looking = lookUp(userId);
      known.set(userId, looking);
      try {
        const isMember = await looking;
        if (isMember === undefined) known.delete(userId);
        else note(userId, isMember);
        return isMember;
      } catch (error) {
        known.delete(userId);
        throw error;
      }
    },
    clear: () => known.clear(),
  };
}
