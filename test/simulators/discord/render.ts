import { renderAttachment } from "./render-attachment.ts";
import { mentionedRoles, renderExtras } from "./message-extras.ts";
import {
  botMay,
  botPermissions,
  permissionBits,
  channelTypes,
  findMessage,
  holdsPosts,
  isElsewhere,
  isThread,
  sharesGuild,
  type SimChannel,
  type SimGuild,
  type SimInteraction,
  type SimMessage,
  type SimRole,
  type SimUser,
  type World,
} from "./world.ts";

/** Renders a user as Discord's JSON. */
export function renderUser(user: SimUser): Record<string, unknown> {
  return {
    id: user.id,
    username: user.username,
    discriminator: user.isBot ? "0001" : "0",
    global_name: user.globalName,
    avatar: null,
    avatar_decoration_data: null,
    banner: null,
    accent_color: null,
    collectibles: null,
    primary_guild: null,
    clan: null,
    flags: 0,
    public_flags: 0,
    ...(user.isBot ? { bot: true } : {}),
  };
}

/** Renders a user's membership in the server, without the user. */
export function renderMember(world: World, userId: string, guild = world.guild): Record<string, unknown> {
  return {
    avatar: null,
    avatar_decoration_data: null,
    banner: null,
    collectibles: null,
    communication_disabled_until: null,
    flags: 0,
    joined_at: new Date(world.now() - 1_000_000).toISOString(),
    nick: null,
    pending: false,
    premium_since: null,
    roles: [...(guild.members.get(userId) ?? [])],
    mute: false,
    deaf: false,
  };
}

/** Returns the existing users that a text mentions. */
function mentionedUsers(world: World, content: string): SimUser[] {
  const ids = [...content.matchAll(/<@!?(\d{17,20})>/g)].map((match) => match[1] ?? "");
  return [...new Set(ids)].flatMap((id) => world.users.get(id) ?? []);
}

function interactionMetadata(
  world: World,
  interaction: SimInteraction,
  channel: SimChannel,
): Record<string, unknown> {
  return {
    id: interaction.id,
    type: interaction.type,
    user: renderUser(interaction.user),
    authorizing_integration_owners: owners(world, interaction, channel),
    name: interaction.commandName ?? "modal",
    ...(interaction.type === 3 && interaction.sourceMessageId !== undefined
      ? { interacted_message_id: interaction.sourceMessageId }
      : {}),
    ...(interaction.type === 5
      ? {
          triggering_interaction_metadata: {
            id: interaction.id,
            type: 2,
            user: renderUser(interaction.user),
            authorizing_integration_owners: {},
            name: "modal",
          },
        }
      : {}),
  };
}

/**
 * Returns the `authorizing_integration_owners` of an interaction. In direct messages with the bot this is the
 * server installation, as server 0, if the person shares a server with it. Otherwise it is the person's own.
 */
export function owners(
  world: World,
  interaction: Pick<SimInteraction, "user">,
  channel: SimChannel,
): Record<string, string> {
  const isStranger =
    isElsewhere(world, channel) ||
    channel.type === channelTypes.group ||
    (channel.type === channelTypes.dm && !sharesGuild(world, interaction.user.id));
  if (isStranger) return { "1": interaction.user.id };
  return { "0": channel.type === channelTypes.dm ? "0" : (channel.guildId ?? world.guild.id) };
}

/**
 * Renders a message in the API's form. With `hideContent`, a message that {@link hidesContent} names has no
 * content, because the application lacks the MESSAGE_CONTENT intent.
 */
export function renderMessage(
  world: World,
  message: SimMessage,
  viewer: { hideContent: boolean; withReference?: boolean },
): Record<string, unknown> {
  const channel = world.channels.get(message.channelId);
  if (channel === undefined) throw new Error(`no channel ${message.channelId}`);
  const interaction =
    message.interactionId === undefined ? undefined : world.interactions.get(message.interactionId);
  const isHidden = viewer.hideContent && hidesContent(world, channel, message);
  const reference =
    message.referenceId === undefined
      ? undefined
      : findMessage(
          world,
          message.type === 21 ? (channel.parentId ?? channel.id) : channel.id,
          message.referenceId,
        );
  const thread = world.channels.get(message.id);
  return {
    id: message.id,
    type: message.type,
    channel_id: channel.id,
    content: isHidden ? "" : message.content,
    author: renderUser(message.author),
    attachments: isHidden ? [] : message.attachments.map((attachment) => renderAttachment(world, attachment)),
    embeds: isHidden ? [] : message.embeds,
    components: isHidden ? [] : message.components,
    mentions: mentionedUsers(world, message.content)
      .concat(
        reference !== undefined && message.pings.includes(reference.author.id) ? [reference.author] : [],
      )
      .filter((user, index, all) => all.indexOf(user) === index)
      .map(renderUser),
    mention_roles: mentionedRoles(world, message.content),
    mention_everyone: message.pings.includes("everyone"),
    pinned: false,
    tts: false,
    timestamp: new Date(message.createdAt).toISOString(),
    edited_timestamp: message.editedAt === undefined ? null : new Date(message.editedAt).toISOString(),
    flags: message.flags,
    ...(message.nonce === undefined ? {} : { nonce: message.nonce }),
    ...(message.webhookId === undefined
      ? {}
      : { webhook_id: message.webhookId, application_id: world.applicationId }),
    ...(interaction === undefined
      ? {}
      : { interaction_metadata: interactionMetadata(world, interaction, channel) }),
    ...(message.referenceId === undefined
      ? {}
      : {
          message_reference: {
            type: 0,
            channel_id: reference?.channelId ?? channel.id,
            message_id: message.referenceId,
            ...(channel.guildId === undefined ? {} : { guild_id: channel.guildId }),
          },
        }),
    ...(message.referenceId !== undefined &&
    viewer.withReference !== false &&
    (message.type === 19 || message.type === 21)
      ? {
          referenced_message:
            reference === undefined
              ? null
              : renderMessage(world, reference, { hideContent: viewer.hideContent, withReference: false }),
        }
      : {}),
    ...renderExtras(world, message, isHidden),
    ...(thread !== undefined && isThread(thread) ? { thread: renderChannel(world, thread) } : {}),
  };
}

/** Whether a message needs the intent. Direct messages, the bot's own and those that mention it do not. */
function hidesContent(world: World, channel: SimChannel, message: SimMessage): boolean {
  if (channel.type === channelTypes.dm || message.author.id === world.bot.id) return false;
  if (message.pings.includes(world.bot.id)) return false;
  return !mentionedUsers(world, message.content).includes(world.bot);
}

/** The fields that only forums have. */
const forumFields = {
  available_tags: [],
  default_reaction_emoji: null,
  default_sort_order: null,
  default_forum_layout: 0,
  default_tag_setting: "match_some",
};

/** Renders a channel or thread. */
export function renderChannel(world: World, channel: SimChannel): Record<string, unknown> {
  const last = channel.messages.at(-1)?.id ?? null;
  if (channel.type === channelTypes.dm) {
    const recipient = world.users.get(channel.recipientId ?? "");
    return {
      id: channel.id,
      type: channel.type,
      flags: 0,
      last_message_id: last,
      recipients: recipient === undefined ? [] : [renderUser(recipient)],
    };
  }
  if (channel.type === channelTypes.group)
    return {
      id: channel.id,
      type: channel.type,
      flags: 0,
      last_message_id: last,
      name: channel.name,
      icon: null,
    };
  const base = {
    id: channel.id,
    type: channel.type,
    flags: 0,
    last_message_id: last,
    guild_id: channel.guildId,
    name: channel.name,
    parent_id: channel.parentId ?? null,
    rate_limit_per_user: 0,
    permissions: botPermissions(world, channel),
  };
  if (!isThread(channel)) {
    const denied = BigInt(botPermissions(world, { ...channel, denied: new Set() }));
    return {
      ...base,
      position: 0,
      topic: null,
      nsfw: false,
      ...(channel.archiveMinutes === undefined
        ? {}
        : { default_auto_archive_duration: channel.archiveMinutes }),
      ...(holdsPosts(channel) ? forumFields : {}),
      permission_overwrites: [
        ...(channel.denied.size === 0
          ? []
          : [toOverwrite(world.bot.id, denied - BigInt(botPermissions(world, channel)))]),
        ...Array.from(channel.deniedTo, ([id, names]) =>
          toOverwrite(
            id,
            [...names].reduce((sum, name) => sum | permissionBits[name], 0n),
          ),
        ),
      ],
    };
  }
  return {
    ...base,
    owner_id: channel.ownerId,
    message_count: channel.messages.length,
    total_message_sent: channel.messages.length,
    member_count: 1,
    thread_metadata: {
      archived: channel.archived,
      auto_archive_duration: channel.archiveMinutes ?? 1440,
      archive_timestamp: new Date(world.now()).toISOString(),
      locked: channel.locked,
      create_timestamp: new Date(world.now()).toISOString(),
    },
  };
}

/** Renders an overwrite that denies permissions to a member. */
function toOverwrite(id: string, deny: bigint) {
  return { id, type: 1, allow: "0", deny: deny.toString() };
}

export function renderRole({ id, name, permissions, botId }: SimRole): Record<string, unknown> {
  return {
    id,
    name,
    color: 0,
    colors: { primary_color: 0, secondary_color: null, tertiary_color: null },
    hoist: false,
    position: name === "@everyone" ? 0 : 1,
    permissions: permissions.toString(),
    managed: botId !== undefined,
    ...(botId === undefined ? {} : { tags: { bot_id: botId } }),
    mentionable: false,
    flags: 0,
    icon: null,
    unicode_emoji: null,
  };
}

/** Renders text channels of an old server, which have topics and overwrites. */
function renderEmptyChannels({ id, emptyChannels = 0 }: SimGuild): Record<string, unknown>[] {
  return Array.from({ length: emptyChannels }, (_, index) => {
    const channelId = (BigInt(id) + BigInt(index + 1)).toString();
    return {
      id: channelId,
      type: channelTypes.text,
      guild_id: id,
      name: `channel-${index}`,
      position: index,
      topic: `What channel ${index} is for, in a sentence or two as people write them.`,
      nsfw: false,
      parent_id: null,
      last_message_id: channelId,
      rate_limit_per_user: 0,
      flags: 0,
      permission_overwrites: [id, channelId].map((overwritten) => ({
        id: overwritten,
        type: 0,
        allow: "0",
        deny: "0",
      })),
    };
  });
}

/** Renders the data of GUILD_CREATE. */
export function renderGuild(world: World, guild = world.guild): Record<string, unknown> {
  const channels = [...world.channels.values()].filter(
    (channel) => channel.guildId === guild.id && botMay(world, channel, "VIEW_CHANNEL"),
  );
  return {
    id: guild.id,
    name: guild.name,
    owner_id: guild.ownerId,
    icon: null,
    splash: null,
    discovery_splash: null,
    description: null,
    banner: null,
    region: "rotterdam",
    afk_channel_id: null,
    afk_timeout: 300,
    system_channel_id: null,
    system_channel_flags: 0,
    rules_channel_id: null,
    public_updates_channel_id: null,
    safety_alerts_channel_id: null,
    application_id: null,
    vanity_url_code: null,
    verification_level: 0,
    default_message_notifications: 0,
    explicit_content_filter: 0,
    mfa_level: 0,
    nsfw_level: 0,
    premium_tier: 0,
    premium_progress_bar_enabled: false,
    preferred_locale: guild.preferredLocale ?? "en-US",
    features: [],
    emojis: [],
    stickers: [],
    roles: [...guild.roles.values()].map((role) => renderRole(role)),
    joined_at: new Date(world.now() - 1_000_000).toISOString(),
    large: false,
    unavailable: false,
    member_count: world.users.size,
    voice_states: [],
    members: [{ ...renderMember(world, world.bot.id, guild), user: renderUser(world.bot) }],
    channels: channels
      .filter((channel) => !isThread(channel))
      .map((channel) => renderChannel(world, channel))
      .concat(renderEmptyChannels(guild)),
    threads: channels
      .filter((channel) => isThread(channel) && !channel.archived)
      .map((channel) => renderChannel(world, channel)),
    presences: [],
    stage_instances: [],
    guild_scheduled_events: [],
    soundboard_sounds: [],
  };
}
