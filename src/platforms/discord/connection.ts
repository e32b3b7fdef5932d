import {
  Client,
  GatewayDispatchEvents,
  GatewayIntentBits,
  Options,
  type APIInteraction,
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
import { unauthorized } from "./errors.ts";

const closeCodes = { authenticationFailed: 4004, disallowedIntents: 4014 } as const;

/** Who the bot is. */
export interface Identity {
  readonly botId: string;
  readonly botName: string;
  readonly applicationId: string;
}

export interface ConnectionEvents {
  /** A new session has begun: what was sent before it is not delivered. */
  sessionBegan(): void;
  message(message: GatewayMessageCreateDispatchData): void;
  interaction(interaction: APIInteraction): void;
  /** A thread was changed. */
  channelChanged(channelId: string): void;
  messagesRemoved(channelId: string, messageIds: readonly string[]): void;
  /** A channel or thread was deleted. */
  channelRemoved(channelId: string): void;
  /** The bot is no longer in a guild. */
  guildRemoved(guildId: string): void;
}

/** A connection to Discord's gateway. */
export interface Connection {
  readonly identity: Identity;
  /** What the client keeps of its guilds: channel and role names, the bot's own role. */
  readonly client: Client;
  health(): PlatformHealth;
  close(): Promise<void>;
}

/**
 * Connects with the message contents where the application may read them, else without.
 * @throws ParleyError `platform-unauthorized`, `platform-unreachable`
 */
export async function connect(options: {
  readonly token: string;
  readonly apiUrl: string;
  readonly agent: NonNullable<RESTOptions["agent"]>;
  readonly events: ConnectionEvents;
  readonly log: Log;
  /** Ends an attempt to connect. */
  readonly signal: AbortSignal;
}): Promise<Connection> {
  try {
    return await open(options, true);
  } catch (error) {
    if (!isDisallowedIntents(error)) throw toConnectError(error);
    options.log.warn(
      {},
      "Discord does not let this application read message contents: turn on the Message Content Intent in the developer portal. Until then the bot reads direct messages and mentions only",
    );
  }
  try {
    return await open(options, false);
  } catch (error) {
    throw toConnectError(error);
  }
}

async function open(
  { token, apiUrl, agent, events, log, signal }: Parameters<typeof connect>[0],
  withContents: boolean,
): Promise<Connection> {
  const client = createClient({ api: apiUrl, agent, offset: apiUrl === publicApiUrl ? 50 : 0 }, withContents);
  let state: PlatformHealth = { state: "connecting" };
  let ready: GatewayReadyDispatchData | undefined;
  const detail = withContents
    ? {}
    : { detail: "without message contents: the Message Content Intent is off" };
  const setReady = (): void => {
    state = { state: "ready", ...detail };
  };
  client.ws.on(GatewayDispatchEvents.Ready, (data: GatewayReadyDispatchData) => {
    ready = data;
    setReady();
    events.sessionBegan();
  });
  client.ws.on(GatewayDispatchEvents.Resumed, setReady);
  client.ws.on(GatewayDispatchEvents.MessageCreate, (data: GatewayMessageCreateDispatchData) =>
    events.message(data),
  );
  client.ws.on(GatewayDispatchEvents.InteractionCreate, (data: APIInteraction) => events.interaction(data));
  client.ws.on(GatewayDispatchEvents.ThreadUpdate, ({ id }: { id: string }) => events.channelChanged(id));
  listenToRemovals(client, events);
  client.on("shardReconnecting", () => {
    state = { state: "connecting", detail: "reconnecting to Discord" };
  });
  client.on("shardDisconnect", ({ code }) => {
    const why =
      code === closeCodes.authenticationFailed
        ? "Discord no longer accepts the token in DISCORD_TOKEN"
        : `Discord closed the connection for good (${code})`;
    state = { state: "failed", detail: why };
    log.error({ code }, why);
  });
  client.on("shardError", (error) => log.warn({ err: error }, "the connection to Discord had an error"));
  client.on("error", (error) => log.error({ err: error }, "the Discord client had an error"));
  client.on("warn", (message) => log.warn({ message }, "the Discord client warns"));
  const giveUp = (): void => {
    client.destroy().catch((error: unknown) => log.debug({ err: error }, "a client was not closed well"));
  };
  signal.addEventListener("abort", giveUp, { once: true });
  try {
    await client.login(token);
  } finally {
    signal.removeEventListener("abort", giveUp);
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

/** Raw events: the client tells of removed messages only where it has kept them. */
function listenToRemovals(client: Client, events: ConnectionEvents): void {
  client.ws.on(GatewayDispatchEvents.MessageDelete, (data: GatewayMessageDeleteDispatchData) =>
    events.messagesRemoved(data.channel_id, [data.id]),
  );
  client.ws.on(GatewayDispatchEvents.MessageDeleteBulk, (data: GatewayMessageDeleteBulkDispatchData) =>
    events.messagesRemoved(data.channel_id, data.ids),
  );
  for (const event of [GatewayDispatchEvents.ThreadDelete, GatewayDispatchEvents.ChannelDelete]) {
    client.ws.on(event, ({ id }: { id: string }) => events.channelRemoved(id));
  }
  client.ws.on(GatewayDispatchEvents.GuildDelete, ({ id, unavailable }: GatewayGuildDeleteDispatchData) => {
    // Otherwise it is an outage of Discord's.
    if (unavailable !== true) events.guildRemoved(id);
  });
}

/** The client keeps guilds, their channels and roles, and nothing else: messages are read as they come. */
function createClient(rest: Partial<RESTOptions>, withContents: boolean): Client {
  return new Client({
    intents: [
      GatewayIntentBits.Guilds,
      GatewayIntentBits.GuildMessages,
      GatewayIntentBits.DirectMessages,
      ...(withContents ? [GatewayIntentBits.MessageContent] : []),
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
