import { ApiError, invalidForm, missingAccess, missingPermissions, unknownChannel } from "./api-error.ts";
import { intents, type Gateway } from "./gateway.ts";
import type { Route } from "./http.ts";
import { checkMaySend, createBotMessage, editBotMessage, requireMessage } from "./message-form.ts";
import { renderChannel, renderMember, renderMessage } from "./render.ts";
import { removeMessage } from "./deletions.ts";
import {
  addChannel,
  botMay,
  channelTypes,
  findGuild,
  sharesGuild,
  type SimChannel,
  type SimMessage,
  type World,
} from "./world.ts";

/** How long typing is shown, unless the bot posts a message. */
const typingMs = 10_000;

/** Creates the routes of channels and messages. */
export function channelRoutes(world: World, gateway: () => Gateway): Route[] {
  const requireChannel = (id: string) => requireVisibleChannel(world, id);
  const visible = (channelId: string, messageId: string) => requireVisible(world, channelId, messageId);
  const shown = (message: SimMessage) =>
    renderMessage(world, message, { hideContent: !world.messageContentAllowed });

  return [
    {
      method: "GET",
      template: "/channels/{channel_id}",
      handle: ({ parameters }) => ({
        status: 200,
        body: renderChannel(world, requireChannel(parameters["channel_id"] ?? "")),
      }),
    },
    {
      method: "GET",
      template: "/channels/{channel_id}/messages",
      handle({ parameters, query }) {
        const channel = requireChannel(parameters["channel_id"] ?? "");
        const limit = Number(query.get("limit") ?? 50);
        if (!Number.isInteger(limit) || limit < 1 || limit > 100)
          throw invalidForm("limit", "NUMBER_TYPE_MAX", "int value should be between 1 and 100.");
        if (!botMay(world, channel, "VIEW_CHANNEL")) throw missingAccess();
        if (!botMay(world, channel, "READ_MESSAGE_HISTORY")) return { status: 200, body: [] };
        const after = query.get("after");
        const before = query.get("before");
        const fitting = channel.messages.filter(
          (message) =>
            !message.isDeleted &&
            message.ephemeralTo === undefined &&
            (after === null || BigInt(message.id) > BigInt(after)) &&
            (before === null || BigInt(message.id) < BigInt(before)),
        );
        const page = after === null ? fitting.slice(-limit) : fitting.slice(0, limit);
        return { status: 200, body: page.toReversed().map(shown) };
      },
    },
    {
      method: "GET",
      template: "/channels/{channel_id}/messages/{message_id}",
      handle({ parameters }) {
        const channel = requireChannel(parameters["channel_id"] ?? "");
        if (!botMay(world, channel, "READ_MESSAGE_HISTORY")) throw missingAccess();
        return { status: 200, body: shown(visible(channel.id, parameters["message_id"] ?? "")) };
      },
    },
    {
      method: "POST",
      template: "/channels/{channel_id}/messages",
      handle({ parameters, form }) {
        const channel = requireChannel(parameters["channel_id"] ?? "");
        checkRecipient(world, channel);
        const before = channel.messages.length;
        const message = createBotMessage({ world, channel, form });
        if (channel.messages.length > before) dispatchMessage(world, gateway(), "MESSAGE_CREATE", message);
        return { status: 200, body: shown(message) };
      },
    },
    {
      method: "PATCH",
      template: "/channels/{channel_id}/messages/{message_id}",
      handle({ parameters, form }) {
        const channel = requireChannel(parameters["channel_id"] ?? "");
        const message = visible(channel.id, parameters["message_id"] ?? "");
        editBotMessage({ world, channel, form }, message);
        dispatchMessage(world, gateway(), "MESSAGE_UPDATE", message);
        return { status: 200, body: shown(message) };
      },
    },
    {
      method: "DELETE",
      template: "/channels/{channel_id}/messages/{message_id}",
      handle({ parameters }) {
        const channel = requireChannel(parameters["channel_id"] ?? "");
        const message = visible(channel.id, parameters["message_id"] ?? "");
        if (message.author !== world.bot) throw missingPermissions();
        removeMessage(world, gateway(), message);
        return { status: 204 };
      },
    },
    {
      method: "POST",
      template: "/channels/{channel_id}/typing",
      handle({ parameters }) {
        const channel = requireChannel(parameters["channel_id"] ?? "");
        checkMaySend(world, channel);
        channel.typing.push(world.now());
        channel.typingUntil = world.now() + typingMs;
        return { status: 204 };
      },
    },
    {
      method: "POST",
      template: "/users/@me/channels",
      handle({ form }) {
        const user = world.users.get(String(form.json["recipient_id"]));
        if (user === undefined)
          throw invalidForm("recipient_id", "BASE_TYPE_REQUIRED", "This field is required");
        return { status: 200, body: renderChannel(world, directChannel(world, user.id)) };
      },
    },
  ];
}

/** Returns a channel that the bot may view. @throws ApiError 10003 or 50001 if there is none */
export function requireVisibleChannel(world: World, id: string): SimChannel {
  const channel = world.channels.get(id);
  if (channel === undefined) throw unknownChannel();
  if (!botMay(world, channel, "VIEW_CHANNEL")) throw missingAccess();
  return channel;
}

/** Returns a message that everybody sees. @throws ApiError 10008 if there is none */
export function requireVisible(world: World, channelId: string, messageId: string): SimMessage {
  const message = requireMessage(world, channelId, messageId);
  if (message.ephemeralTo !== undefined) throw new ApiError(404, 10008, "Unknown Message");
  return message;
}

/** Returns the direct message channel of the bot and a user, which is created on first use. */
export function directChannel(world: World, userId: string): SimChannel {
  for (const channel of world.channels.values()) if (channel.recipientId === userId) return channel;
  return addChannel(world, { type: channelTypes.dm, name: "", recipientId: userId });
}

/** Checks that a person gets direct messages. A person who wrote to the bot does, unless they closed them. */
function checkRecipient(world: World, { type, recipientId = "", messages }: SimChannel): void {
  if (type !== channelTypes.dm) return;
  if (world.closedDirectMessages.has(recipientId))
    throw new ApiError(403, 50007, "Cannot send messages to this user");
  if (!sharesGuild(world, recipientId) && !messages.some(({ author }) => author.id === recipientId))
    throw new ApiError(403, 50278, "Cannot send messages to this user due to having no mutual guilds");
}

/** Dispatches a message event with the gateway's additional fields: guild, member and channel type. */
export function dispatchMessage(
  world: World,
  gateway: Gateway,
  event: "MESSAGE_CREATE" | "MESSAGE_UPDATE",
  message: SimMessage,
): void {
  const channel = world.channels.get(message.channelId);
  if (channel === undefined || message.ephemeralTo !== undefined) return;
  if (!botMay(world, channel, "VIEW_CHANNEL")) return;
  const hasContent = (gateway.identifiedIntents() & intents.messageContent) !== 0;
  const guild = findGuild(world, channel.guildId);
  gateway.dispatch(
    event,
    {
      ...renderMessage(world, message, { hideContent: !hasContent }),
      channel_type: channel.type,
      ...(channel.guildId === undefined ? {} : { guild_id: channel.guildId }),
      ...(guild?.members.has(message.author.id) === true
        ? { member: renderMember(world, message.author.id, guild) }
        : {}),
    },
    channel.type === channelTypes.dm ? intents.directMessages : intents.guildMessages,
  );
}
