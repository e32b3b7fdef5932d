import type { Clock } from "../../../core/clock.ts";
import { ParleyError } from "../../../core/errors.ts";
import type { PlatformHealth } from "../../../core/platform.ts";
import type { Log } from "../../../core/telemetry.ts";
import { sleepUnlessAborted } from "../../../support/clock.ts";
import { unauthorized } from "../errors.ts";
import { toRestOptions, warnOfRefusals } from "./request.ts";
import {
  DiscordjsErrorCodes,
  Events,
  GatewayCloseCodes,
  GatewayDispatchEvents,
  Client,
  type GatewayDispatchPayload,
  GatewayIntentBits,
  Options,
} from "discord.js";

/** How long closing waits for Discord to answer. */
const closeWithinMs = 2000;

/** A client of one shard, from its login to its end. A client that was destroyed cannot be used again. */
export interface ShardSession {
  readonly client: Client;
  health(): PlatformHealth;
  /** Resolves when the shard is connected. @throws where it cannot be, or Discord refuses it for good */
  connect(): Promise<void>;
  close(): Promise<void>;
}

/** The options of {@link createShardSession}. */
interface SessionOptions {
  readonly token: string;
  readonly apiUrl: string;
  readonly shardId: number;
  readonly count: number;
  readonly hasContentIntent: boolean;
  readonly onDispatch: (payload: GatewayDispatchPayload) => void;
  readonly clock: Clock;
  readonly log: Log;
  /** Aborts the attempt to connect. */
  readonly signal: AbortSignal;
}

/**
 * Creates a session, whose client opens lost connections again and resumes them where Discord can. Each shard
 * has a client of its own, because discord.js cannot add one to a client that runs.
 */
export function createShardSession(options: SessionOptions): ShardSession {
  const { log, signal, hasContentIntent, shardId: shard } = options;
  let isClosed = false;
  let isOpen = false;
  let health: PlatformHealth = { state: "connecting" };
  const ready = Promise.withResolvers<void>();
  // Nobody waits for this when `connect` has failed before.
  ready.promise.catch(() => undefined);
  const client = createClient(options);

  client.on(Events.Raw, (payload: GatewayDispatchPayload) => {
    // The library cannot cancel its pause before it reconnects.
    if (isClosed) return void client.destroy().catch(() => undefined);
    // This field is missing in the library's types.
    const { t: type } = payload as { t: GatewayDispatchEvents };
    if (type === GatewayDispatchEvents.Ready || type === GatewayDispatchEvents.Resumed) {
      health = {
        state: "ready",
        ...(hasContentIntent
          ? {}
          : { detail: "without message contents: the Message Content Intent is off" }),
      };
      isOpen = true;
      ready.resolve();
    }
    options.onDispatch(payload);
  });
  client.on(Events.ShardReconnecting, () => {
    if (!isClosed) health = { state: "connecting", detail: "reconnecting to Discord" };
  });
  client.on(Events.ShardDisconnect, ({ code: given }) => {
    if (isClosed) return;
    const code = given as GatewayCloseCodes;
    const detail = toCloseReason(code);
    health = { state: "failed", detail };
    ready.reject(new ClosedForGood(code, detail));
    // At the start it is tried without the intent.
    if (isOpen || code !== GatewayCloseCodes.DisallowedIntents) log.error({ code, shard }, detail);
  });
  client.on(Events.ShardError, (error) => log.warn({ err: error, shard }, "gateway connection error"));
  client.on(Events.Error, (error) => log.error({ err: error }, "error of discord.js"));

  return {
    client,
    health: () => health,
    async connect() {
      const abort = (): void => ready.reject(signal.reason as Error);
      if (signal.aborted) abort();
      signal.addEventListener("abort", abort, { once: true });
      // Login resolves before the shard is connected, and its rejection waits for what never ends.
      client.login(options.token).catch((error: unknown) => ready.reject(error));
      try {
        await ready.promise;
      } finally {
        signal.removeEventListener("abort", abort);
      }
    },
    async close() {
      isClosed = true;
      ready.reject(new ParleyError("stopping", "the connection was closed"));
      const closed = new AbortController();
      client
        .destroy()
        .catch((error: unknown) => log.debug({ err: error }, "gateway connection not closed"))
        .finally(() => closed.abort());
      // The library waits for ever for a shard that is still connecting.
      await sleepUnlessAborted(closeWithinMs, closed.signal, options.clock);
    },
  };
}

/** Discord will not accept this shard again until something is changed. */
class ClosedForGood extends Error {
  readonly code: GatewayCloseCodes;

  constructor(code: GatewayCloseCodes, message: string) {
    super(message);
    this.code = code;
  }
}

/** Whether the application does not have the Message Content Intent. */
export function isDisallowedIntents(error: unknown): boolean {
  return error instanceof ClosedForGood && error.code === GatewayCloseCodes.DisallowedIntents;
}

/** The error of a connection in words. */
export function toConnectError(error: unknown): ParleyError {
  if (error instanceof ParleyError) return error;
  if (error instanceof ClosedForGood) {
    return error.code === GatewayCloseCodes.AuthenticationFailed
      ? unauthorized()
      : new ParleyError("config", error.message);
  }
  if ((error as { code?: unknown }).code === DiscordjsErrorCodes.TokenInvalid) return unauthorized();
  const name = error instanceof Error ? error.name : typeof error;
  return new ParleyError("platform-unreachable", `Discord could not be reached (${name})`, { cause: error });
}

/** Says why a connection was closed for good, and how to mend it. */
function toCloseReason(code: GatewayCloseCodes): string {
  switch (code) {
    case GatewayCloseCodes.AuthenticationFailed:
      return "Discord no longer accepts the token in DISCORD_TOKEN: reset it in the developer portal, put the new one there and restart (4004)";
    case GatewayCloseCodes.InvalidShard:
      return "Discord refuses the shard: make DISCORD_SHARDS and DISCORD_SHARD_IDS fit together, and restart (4010)";
    case GatewayCloseCodes.ShardingRequired:
      return "The bot is in too many servers for its shards: set DISCORD_SHARDS=auto, or more shards, and restart (4011)";
    case GatewayCloseCodes.InvalidAPIVersion:
      return "Discord no longer serves this version of its gateway: update Parley (4012)";
    case GatewayCloseCodes.InvalidIntents:
      return "Discord does not know an intent that Parley asks for: update Parley (4013)";
    case GatewayCloseCodes.DisallowedIntents:
      return "Discord does not give the application an intent that Parley asks for: turn it on in the developer portal and restart, or restart to go on without it (4014)";
    default:
      return `Discord closed the connection (${code})`;
  }
}

/** These are never looked up in the cache. Messages, people and the like are read where they are needed. */
const uncached = {
  ApplicationCommandManager: 0,
  ApplicationEmojiManager: 0,
  AutoModerationRuleManager: 0,
  BaseGuildEmojiManager: 0,
  DMMessageManager: 0,
  EntitlementManager: 0,
  GuildBanManager: 0,
  GuildEmojiManager: 0,
  GuildInviteManager: 0,
  GuildMemberManager: 0,
  GuildMessageManager: 0,
  GuildScheduledEventManager: 0,
  GuildStickerManager: 0,
  MessageManager: 0,
  PresenceManager: 0,
  ReactionManager: 0,
  ReactionUserManager: 0,
  StageInstanceManager: 0,
  ThreadMemberManager: 0,
  UserManager: 0,
  VoiceStateManager: 0,
};

/**
 * Creates the client of discord.js, whose caches hold servers, channels, threads and roles. Partials are off.
 * Events are read in their raw form, which needs no partials, and each partial would keep a channel of direct
 * messages for ever.
 */
function createClient({
  apiUrl,
  shardId,
  count,
  hasContentIntent,
  log,
}: Pick<SessionOptions, "apiUrl" | "shardId" | "count" | "hasContentIntent" | "log">): Client {
  const client = new Client({
    intents: [
      GatewayIntentBits.Guilds,
      GatewayIntentBits.GuildMessages,
      GatewayIntentBits.DirectMessages,
      ...(hasContentIntent ? [GatewayIntentBits.MessageContent] : []),
    ],
    shards: [shardId],
    shardCount: count,
    makeCache: Options.cacheWithLimits(uncached),
    rest: toRestOptions(apiUrl),
  });
  warnOfRefusals(client.rest, log);
  return client;
}
