import { ApiError, invalidForm, missingPermissions } from "./api-error.ts";
import { intents, type Gateway } from "./gateway.ts";
import type { Route } from "./http.ts";
import { renderChannel } from "./render.ts";
import { dispatchMessage, requireVisible, requireVisibleChannel } from "./routes-channels.ts";
import {
  addChannel,
  addMessage,
  botMay,
  channelTypes,
  isThread,
  messageFlags,
  type SimChannel,
  type World,
} from "./world.ts";

const archiveMinutes = [60, 1440, 4320, 10_080];
/** Used if a request names none. A channel's default is only for Discord's clients. */
const usualArchiveMinutes = 1440;

/**
 * Creates the routes that open threads, change them and add people.
 * @see https://docs.discord.com/developers/topics/threads
 */
export function threadRoutes(world: World, gateway: () => Gateway, maxActiveThreads: number): Route[] {
  const open = (parent: SimChannel, thread: Pick<SimChannel, "type" | "name"> & Partial<SimChannel>) => {
    const active = [...world.channels.values()].filter(
      (one) => isThread(one) && !one.archived && one.guildId === parent.guildId,
    );
    if (active.length >= maxActiveThreads)
      throw new ApiError(400, 160006, "Maximum number of active threads reached");
    return addChannel(world, {
      guildId: parent.guildId,
      parentId: parent.id,
      ownerId: world.bot.id,
      ...thread,
    });
  };

  return [
    {
      method: "POST",
      template: "/channels/{channel_id}/messages/{message_id}/threads",
      handle({ parameters, form }) {
        const channel = requireVisibleChannel(world, parameters["channel_id"] ?? "");
        const message = requireVisible(world, channel.id, parameters["message_id"] ?? "");
        const type = threadTypeIn(channel);
        if (type === undefined) throw wrongType();
        if (!botMay(world, channel, "CREATE_PUBLIC_THREADS")) throw missingPermissions();
        const given = readThread(form.json);
        if (world.channels.has(message.id))
          throw new ApiError(400, 160004, "A thread has already been created for this message");
        const thread = open(channel, { id: message.id, type, ...given });
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
        const channel = requireVisibleChannel(world, parameters["channel_id"] ?? "");
        const type = Number(form.json["type"] ?? channelTypes.privateThread);
        const isPublic = type === threadTypeIn(channel);
        const isPrivate = type === channelTypes.privateThread && channel.type === channelTypes.text;
        // A forum's post begins with a message, which this simulator's requests do not have.
        if (!isPublic && !isPrivate) throw wrongType();
        if (!botMay(world, channel, isPublic ? "CREATE_PUBLIC_THREADS" : "CREATE_PRIVATE_THREADS"))
          throw missingPermissions();
        const thread = open(channel, { type, ...readThread(form.json) });
        dispatchThread(world, gateway(), thread);
        if (isPublic) {
          const note = addMessage(world, {
            channelId: channel.id,
            author: world.bot,
            content: thread.name,
            type: 18,
          });
          dispatchMessage(world, gateway(), "MESSAGE_CREATE", note);
        }
        return { status: 201, body: renderChannel(world, thread) };
      },
    },
    {
      method: "PATCH",
      template: "/channels/{channel_id}",
      handle({ parameters, form }) {
        const thread = requireVisibleChannel(world, parameters["channel_id"] ?? "");
        const isUnarchiving = form.json["archived"] === false && Object.keys(form.json).length === 1;
        // Everything else needs permissions that the bot does not ask for. A locked thread needs them too.
        if (!isThread(thread) || !isUnarchiving || thread.locked) throw missingPermissions();
        if (!botMay(world, thread, "SEND_MESSAGES_IN_THREADS")) throw missingPermissions();
        thread.archived = false;
        gateway().dispatch("THREAD_UPDATE", renderChannel(world, thread), intents.guilds);
        return { status: 200, body: renderChannel(world, thread) };
      },
    },
    {
      method: "PUT",
      template: "/channels/{channel_id}/thread-members/{user_id}",
      handle({ parameters }) {
        const thread = requireVisibleChannel(world, parameters["channel_id"] ?? "");
        if (!isThread(thread)) throw wrongType();
        if (!botMay(world, thread, "SEND_MESSAGES_IN_THREADS")) throw missingPermissions();
        if (thread.archived) throw new ApiError(400, 50083, "Thread is archived");
        const userId = parameters["user_id"] ?? "";
        if (!world.users.has(userId)) throw new ApiError(404, 10013, "Unknown User");
        thread.threadMembers.add(userId);
        return { status: 204 };
      },
    },
  ];
}

/** Returns the type of a channel's public threads, or `undefined` if it has none or only posts. */
function threadTypeIn({ type }: SimChannel): number | undefined {
  if (type === channelTypes.text) return channelTypes.publicThread;
  return type === channelTypes.announcement ? channelTypes.announcementThread : undefined;
}

const wrongType = (): ApiError => new ApiError(400, 50024, "Cannot execute action on this channel type");

function readThread(json: Readonly<Record<string, unknown>>): Pick<SimChannel, "name" | "archiveMinutes"> {
  const { name, auto_archive_duration: minutes = usualArchiveMinutes } = json;
  if (typeof name !== "string" || name.trim().length < 1 || name.length > 100)
    throw invalidForm("name", "BASE_TYPE_BAD_LENGTH", "Must be between 1 and 100 in length.");
  if (!archiveMinutes.includes(Number(minutes)))
    throw invalidForm(
      "auto_archive_duration",
      "BASE_TYPE_CHOICES",
      "Value must be one of {60, 1440, 4320, 10080}.",
    );
  return { name: name.trim(), archiveMinutes: Number(minutes) };
}

function dispatchThread(world: World, gateway: Gateway, thread: SimChannel): void {
  gateway.dispatch("THREAD_CREATE", { ...renderChannel(world, thread), newly_created: true }, intents.guilds);
}
