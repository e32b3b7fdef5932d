import {
  REST,
  Routes,
  type APIApplicationCommand,
  type APIChannel,
  type APIMessage,
  type APIThreadChannel,
  type RawFile,
  type RESTPatchAPIChannelMessageJSONBody,
  type RESTPostAPIChannelMessageJSONBody,
  type RESTPostAPIWebhookWithTokenJSONBody,
  type RESTOptions,
  type RESTPutAPIApplicationCommandsJSONBody,
} from "discord.js";
import { isParleyError } from "../../core/errors.ts";
import { errorCodes, discordCode, toParleyError } from "./errors.ts";

/** Default of `DISCORD_API_URL`. */
export const publicApiUrl = "https://discord.com/api";

/** Longer rate limits are errors for the caller; shorter ones are waited for. */
const maxRateLimitWaitMs = 10_000;

/** Authorizes requests about one interaction's messages. */
export interface InteractionToken {
  readonly applicationId: string;
  readonly token: string;
}

/** The requests that Parley makes. All reject with ParleyErrors that contain neither tokens nor user text. */
export interface DiscordApi {
  createMessage(
    channelId: string,
    body: RESTPostAPIChannelMessageJSONBody,
    files?: RawFile[],
  ): Promise<APIMessage>;
  editMessage(
    channelId: string,
    messageId: string,
    body: RESTPatchAPIChannelMessageJSONBody,
  ): Promise<APIMessage>;
  getMessage(channelId: string, messageId: string): Promise<APIMessage>;
  /** The first `limit` messages (1 to 100) after an id, newest first. */
  listMessages(
    channelId: string,
    options: { readonly after: string; readonly limit: number },
  ): Promise<APIMessage[]>;
  getChannel(channelId: string): Promise<APIChannel>;
  startThread(channelId: string, messageId: string | undefined, name: string): Promise<APIThreadChannel>;
  openDirectChannel(userId: string): Promise<APIChannel>;
  listCommands(applicationId: string): Promise<APIApplicationCommand[]>;
  putCommands(applicationId: string, commands: RESTPutAPIApplicationCommandsJSONBody): Promise<void>;
  /** Sends the response of an interaction; within 3 s of its creation. */
  respond(interactionId: string, token: string, body: unknown): Promise<void>;
  followUp(
    interaction: InteractionToken,
    body: RESTPostAPIWebhookWithTokenJSONBody,
    files?: RawFile[],
  ): Promise<APIMessage>;
  /** `messageId` may be `@original`. */
  editFollowUp(
    interaction: InteractionToken,
    messageId: string,
    body: RESTPatchAPIChannelMessageJSONBody,
  ): Promise<APIMessage>;
  getFollowUp(interaction: InteractionToken, messageId: string): Promise<APIMessage>;
  deleteFollowUp(interaction: InteractionToken, messageId: string): Promise<void>;
}

/**
 * Requests are independent of the gateway client, which drops its token on `destroy`. Interactions have a REST
 * instance of their own: Discord exempts them from the global rate limit, the library does not.
 */
export function createDiscordApi(options: {
  readonly token: string;
  readonly apiUrl: string;
  readonly agent: NonNullable<RESTOptions["agent"]>;
}): DiscordApi {
  const common = {
    version: "10",
    api: options.apiUrl,
    agent: options.agent,
    offset: options.apiUrl === publicApiUrl ? 50 : 0,
  };
  const rest = new REST({
    ...common,
    // Edits are not queued: the reply edits again with newer text. Other requests wait for short rate limits.
    rejectOnRateLimit: ({ method, timeToReset, retryAfter }) =>
      method === "PATCH" || Math.max(timeToReset, retryAfter) > maxRateLimitWaitMs,
  }).setToken(options.token);
  const interactions = new REST({
    ...common,
    globalRequestsPerSecond: 10_000,
    // These have no nonce: repeating a POST whose response was lost would post the message twice.
    retries: 0,
    rejectOnRateLimit: ({ method, timeToReset, retryAfter }) =>
      method === "PATCH" || Math.max(timeToReset, retryAfter) > maxRateLimitWaitMs,
  });
  const open = { auth: false } as const;

  async function send<T>(action: string, request: Promise<unknown>): Promise<T> {
    try {
      return (await request) as T;
    } catch (error) {
      throw toParleyError(error, action);
    }
  }

  return {
    createMessage: (channelId, body, files) =>
      send("post a message", rest.post(Routes.channelMessages(channelId), { body, ...withFiles(files) })),
    editMessage: (channelId, messageId, body) =>
      send("edit a message", rest.patch(Routes.channelMessage(channelId, messageId), { body })),
    getMessage: (channelId, messageId) =>
      send("read a message", rest.get(Routes.channelMessage(channelId, messageId))),
    listMessages: (channelId, { after, limit }) =>
      send(
        "read messages",
        rest.get(Routes.channelMessages(channelId), {
          query: new URLSearchParams({ after, limit: `${limit}` }),
        }),
      ),
    getChannel: (channelId) => send("read a channel", rest.get(Routes.channel(channelId))),
    startThread: (channelId, messageId, name) =>
      send(
        "open a thread",
        rest.post(Routes.threads(channelId, messageId), {
          // 11: a public thread; from a message it is public anyway and the field does not exist.
          body: { name, auto_archive_duration: 1440, ...(messageId === undefined ? { type: 11 } : {}) },
        }),
      ),
    openDirectChannel: (userId) =>
      send("open a direct message", rest.post(Routes.userChannels(), { body: { recipient_id: userId } })),
    listCommands: (applicationId) =>
      send("read the commands", rest.get(Routes.applicationCommands(applicationId))),
    putCommands: (applicationId, commands) =>
      send("register the commands", rest.put(Routes.applicationCommands(applicationId), { body: commands })),
    async respond(interactionId, token, body) {
      const post = (): Promise<void> =>
        send(
          "answer an interaction",
          interactions.post(Routes.interactionCallback(interactionId, token), { ...open, body }),
        );
      try {
        await post();
      } catch (error) {
        if (!isParleyError(error, "platform-unreachable")) throw error;
        // Maybe only the response was lost: then the second attempt is rejected as acknowledged, by us.
        await post().catch((second: unknown) => {
          if (discordCode(second) !== errorCodes.alreadyAcknowledged) throw second;
        });
      }
    },
    followUp: ({ applicationId, token }, body, files) =>
      send(
        "follow up on an interaction",
        interactions.post(Routes.webhook(applicationId, token), {
          ...open,
          query: new URLSearchParams({ wait: "true" }),
          body,
          ...withFiles(files),
        }),
      ),
    editFollowUp: ({ applicationId, token }, messageId, body) =>
      send(
        "edit an interaction's message",
        interactions.patch(Routes.webhookMessage(applicationId, token, messageId), { ...open, body }),
      ),
    getFollowUp: ({ applicationId, token }, messageId) =>
      send(
        "read an interaction's message",
        interactions.get(Routes.webhookMessage(applicationId, token, messageId), open),
      ),
    deleteFollowUp: ({ applicationId, token }, messageId) =>
      send(
        "delete an interaction's message",
        interactions.delete(Routes.webhookMessage(applicationId, token, messageId), open),
      ),
  };
}

function withFiles(files: RawFile[] | undefined): { files?: RawFile[] } {
  return files === undefined || files.length === 0 ? {} : { files };
}
