import { ApiError, invalidForm, missingAccess, missingPermissions, unknownChannel } from "./api-error.ts";
import { intents, type Gateway } from "./gateway.ts";
import type { Route } from "./http.ts";
import { checkMaySend, createBotMessage, editBotMessage, requireMessage } from "./message-form.ts";
import { renderChannel, renderMember, renderMessage } from "./render.ts";
import { removeMessage } from "./deletions.ts";
import {
  addChannel,
  addMessage,
  botMay,
  channelTypes,
  messageFlags,
  type SimChannel,
  type SimMessage,
  type World,
} from "./world.ts";

/** How long typing is shown, unless the bot posts a message. */
const typingMs = 10_000;
const archiveMinutes = [60, 1440, 4320, 10_080];

/** Routes of channels, messages and threads. */
export function channelRoutes(world: World, gateway: () => Gateway): Route[] {
  const requireChannel = (id: string): SimChannel => {
    const channel = world.channels.get(id);
    if (channel === undefined) throw unknownChannel();
    if (!botMay(world, channel, "VIEW_CHANNEL")) throw missingAccess();
    return channel;
  };
  const visible = (channelId: string, messageId: string): SimMessage => {
    const message = requireMessage(world, channelId, messageId);
    if (message.ephemeralTo !== undefined) throw new ApiError(404, 10008, "Unknown Message");
    return message;
  };
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
      template: "/channels/{channel_id}/messages/{message_id}/threads",
      handle({ parameters, form }) {
        const channel = requireChannel(parameters["channel_id"] ?? "");
        const message = visible(channel.id, parameters["message_id"] ?? "");
        const name = checkThread(world, channel, form.json, "CREATE_PUBLIC_THREADS");
        if (world.channels.has(message.id))
          throw new ApiError(400, 160004, "A thread has already been created for this message");
        const thread = addChannel(world, {
          id: message.id,
          type: channelTypes.publicThread,
          name,
          guildId: channel.guildId,
          parentId: channel.id,
          ownerId: world.bot.id,
        });
        message.flags |= messageFlags.hasThread;
        const starter = addMessage(world, {
          channelId: thread.id,
          author: message.author,
          content: "",
          type: 21,
          referenceId: message.id,
        });
        dispatchThread(world, gateway(), thread);
        dispatchMessage(world, gateway(), "MESSAGE_UPDATE", message);
        dispatchMessage(world, gateway(), "MESSAGE_CREATE", starter);
        return { status: 201, body: renderChannel(world, thread) };
      },
    },
    {
      method: "POST",
      template: "/channels/{channel_id}/threads",
      handle({ parameters, form }) {
        const channel = requireChannel(parameters["channel_id"] ?? "");
        const type = Number(form.json["type"] ?? channelTypes.privateThread);
        const isPublic = type === channelTypes.publicThread;
        const name = checkThread(
          world,
          channel,
          form.json,
          isPublic ? "CREATE_PUBLIC_THREADS" : "CREATE_PRIVATE_THREADS",
        );
        const thread = addChannel(world, {
          type,
          name,
          guildId: channel.guildId,
          parentId: channel.id,
          ownerId: world.bot.id,
        });
        dispatchThread(world, gateway(), thread);
        if (isPublic) {
          const note = addMessage(world, {
            channelId: channel.id,
            author: world.bot,
            content: name,
            type: 18,
          });
          dispatchMessage(world, gateway(), "MESSAGE_CREATE", note);
        }
        return { status: 201, body: renderChannel(world, thread) };
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

/** The direct message channel of the bot and a user; created on first use. */
export function directChannel(world: World, userId: string): SimChannel {
  for (const channel of world.channels.values()) if (channel.recipientId === userId) return channel;
  return addChannel(world, { type: channelTypes.dm, name: "", recipientId: userId });
}

/** Who wrote to the bot gets its answers, unless they closed their direct messages. */
function checkRecipient(world: World, { type, recipientId = "", messages }: SimChannel): void {
  if (type !== channelTypes.dm) return;
  if (world.closedDirectMessages.has(recipientId))
    throw new ApiError(403, 50007, "Cannot send messages to this user");
  if (!world.guild.members.has(recipientId) && !messages.some(({ author }) => author.id === recipientId))
    throw new ApiError(403, 50278, "Cannot send messages to this user due to having no mutual guilds");
}

function checkThread(
  world: World,
  channel: SimChannel,
  json: Readonly<Record<string, unknown>>,
  permission: "CREATE_PUBLIC_THREADS" | "CREATE_PRIVATE_THREADS",
): string {
  if (channel.type !== channelTypes.text)
    throw new ApiError(400, 50024, "Cannot execute action on this channel type");
  if (!botMay(world, channel, permission)) throw missingPermissions();
  const { name, auto_archive_duration: minutes } = json;
  if (typeof name !== "string" || name.trim().length < 1 || name.length > 100)
    throw invalidForm("name", "BASE_TYPE_BAD_LENGTH", "Must be between 1 and 100 in length.");
  if (minutes !== undefined && !archiveMinutes.includes(Number(minutes)))
    throw invalidForm(
      "auto_archive_duration",
      "BASE_TYPE_CHOICES",
      "Value must be one of {60, 1440, 4320, 10080}.",
    );
  return name.trim();
}

function dispatchThread(world: World, gateway: Gateway, thread: SimChannel): void {
  gateway.dispatch("THREAD_CREATE", { ...renderChannel(world, thread), newly_created: true }, intents.guilds);
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
  gateway.dispatch(
    event,
    {
      ...renderMessage(world, message, { hideContent: !hasContent }),
      channel_type: channel.type,
      ...(channel.guildId === undefined ? {} : { guild_id: channel.guildId }),
      ...(channel.guildId !== undefined && world.guild.members.has(message.author.id)
        ? { member: renderMember(world, message.author.id) }
        : {}),
    },
    channel.type === channelTypes.dm ? intents.directMessages : intents.guildMessages,
  );
}
