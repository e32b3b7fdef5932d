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
import { codes, discordCode, toParleyError } from "./errors.ts";

export const publicApiUrl = "https://discord.com/api";

/** Longer waits than this are told to the caller instead of being sat out, in milliseconds. */
const longestWaitMs = 10_000;

/** Whose interaction a request belongs to. */
export interface InteractionToken {
  readonly applicationId: string;
  readonly token: string;
}

/** The requests Parley makes. All throw ParleyErrors; `doing` texts name neither tokens nor what people wrote. */
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
  /** The first `limit` messages (1 to 100) after that id, the newest of them first. */
  listMessages(
    channelId: string,
    options: { readonly after: string; readonly limit: number },
  ): Promise<APIMessage[]>;
  getChannel(channelId: string): Promise<APIChannel>;
  startThread(channelId: string, messageId: string | undefined, name: string): Promise<APIThreadChannel>;
  openDirectChannel(userId: string): Promise<APIChannel>;
  listCommands(applicationId: string): Promise<APIApplicationCommand[]>;
  putCommands(applicationId: string, commands: RESTPutAPIApplicationCommandsJSONBody): Promise<void>;
  /** Answers an interaction; within 3 s of its creation. */
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
 * Requests outside the client, so that they live until Parley lets go of them: the client forgets its token on
 * `destroy`. Interactions have a REST instance of their own: Discord exempts them from the global limit, the
 * library does not.
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
    // An edit is worth nothing late: the reply's own pace follows the limit. Other requests sit out short waits.
    rejectOnRateLimit: ({ method, timeToReset, retryAfter }) =>
      method === "PATCH" || Math.max(timeToReset, retryAfter) > longestWaitMs,
  }).setToken(options.token);
  const interactions = new REST({
    ...common,
    globalRequestsPerSecond: 10_000,
    // These carry no nonce: repeating a POST whose answer was lost would show the message twice.
    retries: 0,
    rejectOnRateLimit: ({ method, timeToReset, retryAfter }) =>
      method === "PATCH" || Math.max(timeToReset, retryAfter) > longestWaitMs,
  });
  const open = { auth: false } as const;

  async function ask<T>(doing: string, request: Promise<unknown>): Promise<T> {
    try {
      return (await request) as T;
    } catch (error) {
      throw toParleyError(error, doing);
    }
  }

  return {
    createMessage: (channelId, body, files) =>
      ask("post a message", rest.post(Routes.channelMessages(channelId), { body, ...withFiles(files) })),
    editMessage: (channelId, messageId, body) =>
      ask("edit a message", rest.patch(Routes.channelMessage(channelId, messageId), { body })),
    getMessage: (channelId, messageId) =>
      ask("read a message", rest.get(Routes.channelMessage(channelId, messageId))),
    listMessages: (channelId, { after, limit }) =>
      ask(
        "read messages",
        rest.get(Routes.channelMessages(channelId), {
          query: new URLSearchParams({ after, limit: `${limit}` }),
        }),
      ),
    getChannel: (channelId) => ask("read a channel", rest.get(Routes.channel(channelId))),
    startThread: (channelId, messageId, name) =>
      ask(
        "open a thread",
        rest.post(Routes.threads(channelId, messageId), {
          // 11: a public thread; from a message it is public anyway and the field does not exist.
          body: { name, auto_archive_duration: 1440, ...(messageId === undefined ? { type: 11 } : {}) },
        }),
      ),
    openDirectChannel: (userId) =>
      ask("open a direct message", rest.post(Routes.userChannels(), { body: { recipient_id: userId } })),
    listCommands: (applicationId) =>
      ask("read the commands", rest.get(Routes.applicationCommands(applicationId))),
    putCommands: (applicationId, commands) =>
      ask("register the commands", rest.put(Routes.applicationCommands(applicationId), { body: commands })),
    async respond(interactionId, token, body) {
      const post = (): Promise<void> =>
        ask(
          "answer an interaction",
          interactions.post(Routes.interactionCallback(interactionId, token), { ...open, body }),
        );
      try {
        await post();
      } catch (error) {
        if (!isParleyError(error, "platform-unreachable")) throw error;
        // Only the answer may have been lost: then the second try finds it acknowledged, by us.
        await post().catch((again: unknown) => {
          if (discordCode(again) !== codes.alreadyAcknowledged) throw again;
        });
      }
    },
    followUp: ({ applicationId, token }, body, files) =>
      ask(
        "follow up on an interaction",
        interactions.post(Routes.webhook(applicationId, token), {
          ...open,
          query: new URLSearchParams({ wait: "true" }),
          body,
          ...withFiles(files),
        }),
      ),
    editFollowUp: ({ applicationId, token }, messageId, body) =>
      ask(
        "edit an interaction's message",
        interactions.patch(Routes.webhookMessage(applicationId, token, messageId), { ...open, body }),
      ),
    getFollowUp: ({ applicationId, token }, messageId) =>
      ask(
        "read an interaction's message",
        interactions.get(Routes.webhookMessage(applicationId, token, messageId), open),
      ),
    deleteFollowUp: ({ applicationId, token }, messageId) =>
      ask(
        "delete an interaction's message",
        interactions.delete(Routes.webhookMessage(applicationId, token, messageId), open),
      ),
  };
}

function withFiles(files: RawFile[] | undefined): { files?: RawFile[] } {
  return files === undefined || files.length === 0 ? {} : { files };
}
