import {
  Client,
  GatewayDispatchEvents,
  GatewayIntentBits,
  Options,
  RESTEvents,
  type APIInteraction,
  type APIChannel,
  type GatewayGuildCreateDispatchData,
  type GatewayGuildDeleteDispatchData,
  type GatewayMessageCreateDispatchData,
  type GatewayMessageDeleteBulkDispatchData,
  type GatewayMessageDeleteDispatchData,
  type GatewayReadyDispatchData,
  type RESTOptions,
} from "discord.js";
import { ParleyError } from "../../core/errors.ts";
import type { Log } from "../../core/telemetry.ts";
import type { PlatformHealth } from "../../core/platform.ts";
import { publicApiUrl } from "./api.ts";
import type { DiscordClock } from "./discord-clock.ts";
import { unauthorized } from "./errors.ts";
import { createRequestWithRetryAfter } from "./retry-after.ts";

const closeCodes = { authenticationFailed: 4004, disallowedIntents: 4014 } as const;

/** The bot's user and application. */
export interface Identity {
  readonly botId: string;
  readonly botName: string;
  readonly applicationId: string;
}

/** A channel and the id of its last message. */
export interface ChannelActivity {
  readonly id: string;
  readonly lastMessageId: string;
}

/** Handlers of the gateway's events. Contract: none of them throws. */
export interface ConnectionEvents {
  /** A new session has started: earlier events are not delivered. */
  sessionStarted(): void;
  /** After a session's start, once for each server: its channels, and the last message in each. */
  guildAvailable(guildId: string, channels: readonly ChannelActivity[]): void;
  message(message: GatewayMessageCreateDispatchData): void;
  interaction(interaction: APIInteraction): void;
  /** A thread was updated. */
  channelChanged(channelId: string): void;
  messagesDeleted(channelId: string, messageIds: readonly string[]): void;
  /** A channel or thread was deleted. */
  channelDeleted(channelId: string): void;
  /** The bot is no longer in a server. */
  guildDeleted(guildId: string): void;
}

/** A connection to Discord's gateway. */
export interface Connection {
  readonly identity: Identity;
  /** Caches servers with their channels and roles. */
  readonly client: Client;
  health(): PlatformHealth;
  close(): Promise<void>;
}

/**
 * Connects to the gateway, without the Message Content Intent where the application does not have it.
 * @throws ParleyError `platform-unauthorized`, `platform-unreachable`
 */
export async function connect(options: {
  readonly token: string;
  readonly apiUrl: string;
  readonly agent: NonNullable<RESTOptions["agent"]>;
  readonly onResponse: DiscordClock["observe"];
  readonly events: ConnectionEvents;
  readonly log: Log;
  /** Aborts the attempt to connect. */
  readonly signal: AbortSignal;
}): Promise<Connection> {
  try {
    return await open(options, true);
  } catch (error) {
    if (!isDisallowedIntents(error)) throw toConnectError(error);
    options.log.warn(
      {},
      "disallowed intents: turn on the Message Content Intent in the developer portal. Until then the bot reads direct messages and mentions only",
    );
  }
  try {
    return await open(options, false);
  } catch (error) {
    throw toConnectError(error);
  }
}

async function open(
  { token, apiUrl, agent, onResponse, events, log, signal }: Parameters<typeof connect>[0],
  hasContentIntent: boolean,
): Promise<Connection> {
  const client = createClient(
    {
      api: apiUrl,
      agent,
      offset: apiUrl === publicApiUrl ? 50 : 0,
      makeRequest: createRequestWithRetryAfter(),
    },
    hasContentIntent,
  );
  client.rest.on(RESTEvents.Response, (_, response) => onResponse(response));
  let state: PlatformHealth = { state: "connecting" };
  let ready: GatewayReadyDispatchData | undefined;
  const detail = hasContentIntent
    ? {}
    : { detail: "without message contents: the Message Content Intent is off" };
  const setReady = (): void => {
    state = { state: "ready", ...detail };
  };
  client.ws.on(GatewayDispatchEvents.Ready, (data: GatewayReadyDispatchData) => {
    ready = data;
    setReady();
    events.sessionStarted();
  });
  client.ws.on(GatewayDispatchEvents.Resumed, setReady);
  client.ws.on(GatewayDispatchEvents.GuildCreate, ({ id, channels }: GatewayGuildCreateDispatchData) => {
    events.guildAvailable(id, toActivities(channels));
  });
  client.ws.on(GatewayDispatchEvents.MessageCreate, (data: GatewayMessageCreateDispatchData) =>
    events.message(data),
  );
  client.ws.on(GatewayDispatchEvents.InteractionCreate, (data: APIInteraction) => events.interaction(data));
  client.ws.on(GatewayDispatchEvents.ThreadUpdate, ({ id }: { id: string }) => events.channelChanged(id));
  listenForDeletions(client, events);
  client.on("shardReconnecting", () => {
    state = { state: "connecting", detail: "reconnecting to Discord" };
  });
  client.on("shardDisconnect", ({ code }) => {
    const why =
      code === closeCodes.authenticationFailed
        ? "Discord no longer accepts the token in DISCORD_TOKEN"
        : `Discord closed the connection (${code})`;
    state = { state: "failed", detail: why };
    log.error({ code }, why);
  });
  client.on("shardError", (error) => log.warn({ err: error }, "gateway connection error"));
  client.on("error", (error) => log.error({ err: error }, "Discord client error"));
  client.on("warn", (message) => log.warn({ message }, "Discord client warning"));
  const disconnect = (): void => {
    client.destroy().catch((error: unknown) => log.debug({ err: error }, "Discord client not closed"));
  };
  signal.addEventListener("abort", disconnect, { once: true });
  try {
    await client.login(token);
  } finally {
    signal.removeEventListener("abort", disconnect);
  }
  if (signal.aborted) await client.destroy();
  signal.throwIfAborted();
  if (ready === undefined) throw new Error("connected without READY");
  const { user, application } = ready;
  return {
    identity: { botId: user.id, botName: user.global_name ?? user.username, applicationId: application.id },
    client,
    health: () => state,
    close: () => client.destroy(),
  };
}

function toActivities(channels: readonly APIChannel[]): ChannelActivity[] {
  return channels.flatMap((channel) => {
    const last = "last_message_id" in channel ? channel.last_message_id : undefined;
    return typeof last === "string" ? [{ id: channel.id, lastMessageId: last }] : [];
  });
}

/** Uses raw events: the client emits deletions of cached messages only. */
function listenForDeletions(client: Client, events: ConnectionEvents): void {
  client.ws.on(GatewayDispatchEvents.MessageDelete, (data: GatewayMessageDeleteDispatchData) =>
    events.messagesDeleted(data.channel_id, [data.id]),
  );
  client.ws.on(GatewayDispatchEvents.MessageDeleteBulk, (data: GatewayMessageDeleteBulkDispatchData) =>
    events.messagesDeleted(data.channel_id, data.ids),
  );
  for (const event of [GatewayDispatchEvents.ThreadDelete, GatewayDispatchEvents.ChannelDelete]) {
    client.ws.on(event, ({ id }: { id: string }) => events.channelDeleted(id));
  }
  client.ws.on(GatewayDispatchEvents.GuildDelete, ({ id, unavailable }: GatewayGuildDeleteDispatchData) => {
    // `unavailable`: an outage, not a deletion.
    if (unavailable !== true) events.guildDeleted(id);
  });
}

/** The client caches servers, their channels and roles, and nothing else. */
function createClient(rest: Partial<RESTOptions>, hasContentIntent: boolean): Client {
  return new Client({
    intents: [
      GatewayIntentBits.Guilds,
      GatewayIntentBits.GuildMessages,
      GatewayIntentBits.DirectMessages,
      ...(hasContentIntent ? [GatewayIntentBits.MessageContent] : []),
    ],
    allowedMentions: { parse: [] },
    enforceNonce: true,
    makeCache: Options.cacheWithLimits({
      ApplicationCommandManager: 0,
      ApplicationEmojiManager: 0,
      AutoModerationRuleManager: 0,
      BaseGuildEmojiManager: 0,
      DMMessageManager: 0,
      EntitlementManager: 0,
      GuildBanManager: 0,
      GuildEmojiManager: 0,
      GuildForumThreadManager: 0,
      GuildInviteManager: 0,
      GuildMemberManager: { maxSize: 1, keepOverLimit: (member) => member.id === member.client.user.id },
      GuildMessageManager: 0,
      GuildScheduledEventManager: 0,
      GuildStickerManager: 0,
      GuildTextThreadManager: 0,
      MessageManager: 0,
      PresenceManager: 0,
      ReactionManager: 0,
      ReactionUserManager: 0,
      StageInstanceManager: 0,
      ThreadManager: 0,
      ThreadMemberManager: 0,
      UserManager: { maxSize: 1, keepOverLimit: (user) => user.id === user.client.user?.id },
      VoiceStateManager: 0,
    }),
    rest,
  });
}

function isDisallowedIntents(error: unknown): boolean {
  return error instanceof Error && /disallowed intents/i.test(error.message);
}

function toConnectError(error: unknown): ParleyError {
  if (error instanceof ParleyError) return error;
  const code = (error as { code?: unknown }).code;
  const message = error instanceof Error ? error.message : "";
  if (code === "TokenInvalid" || /authentication failed/i.test(message)) return unauthorized();
  const name = error instanceof Error ? error.name : typeof error;
  return new ParleyError("platform-unreachable", `Discord could not be reached (${name})`, { cause: error });
}
