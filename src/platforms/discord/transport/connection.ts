import type { Clock } from "../../../core/clock.ts";
import { ParleyError } from "../../../core/errors.ts";
import type { PlatformHealth } from "../../../core/platform.ts";
import type { Log } from "../../../core/telemetry.ts";
import { sleepUnlessAborted } from "../../../support/clock.ts";
import { dropLeftGuilds } from "./directory.ts";
import { unauthorized } from "../errors.ts";
import { dispatchEvent, type ConnectionEvents } from "./gateway-events.ts";
import { shardOf, type Shard, type ShardPlan, type ShardSettings } from "./shards.ts";
import { toRestOptions, warnOfRefusals } from "./request.ts";
import {
  DiscordjsErrorCodes,
  Events,
  GatewayCloseCodes,
  GatewayDispatchEvents,
  Client,
  type GatewayDispatchPayload,
  type GatewayReadyDispatchData,
  GatewayIntentBits,
  Options,
  SimpleShardingStrategy,
  type ClientOptions,
} from "discord.js";

const contentsRefused =
  "disallowed intents: turn on the Message Content Intent in the developer portal. Until then the bot reads direct messages and mentions only";

/** How long closing waits for Discord to answer. */
const closeWithinMs = 2000;

/** The bot's user and application. */
interface Identity {
  readonly botId: string;
  readonly botName: string;
  readonly botNames: readonly string[];
  readonly applicationId: string;
}

/** The options of {@link createConnection}. */
interface ConnectionOptions extends ClientSettings {
  readonly token: string;
  /** Is called when the bot is known, before any event. `plan` says which shards this process runs. */
  readonly onIdentified: (identity: Identity, plan: ShardPlan) => void;
  readonly events: ConnectionEvents;
  readonly clock: Clock;
  /** Aborts the attempts to connect. */
  readonly signal: AbortSignal;
}

/** The connection to Discord's gateway, with one for each shard that this process runs. */
export interface Connection {
  /** Returns `undefined` before the first shard has identified. No event is passed on before that. */
  identity(): Identity | undefined;
  /** Returns `undefined` before the number of shards is known. */
  plan(): ShardPlan | undefined;
  /** Returns the client that started a session last. */
  client(): Client | undefined;
  health(): PlatformHealth;
  /**
   * Resolves when all shards are connected. Where the application does not have the Message Content Intent,
   * they are connected without it. It may be called again after it has failed.
   * @throws ParleyError `platform-unauthorized`, `platform-unreachable`, or `config` where the shards do not
   *   fit
   */
  open(): Promise<void>;
  close(): Promise<void>;
}

export function createConnection(options: ConnectionOptions): Connection {
  const { log, signal, events } = options;
  let client: Client | undefined;
  let identity: Identity | undefined;
  let failure: PlatformHealth | undefined;
  let session: Session | undefined;

  function onReady(
    started: Session,
    shardId: number,
    { user, application, guilds }: GatewayReadyDispatchData,
  ): void {
    const plan = started.plan() as ShardPlan;
    const shard: Shard = { id: shardId, has: (guildId) => shardOf(guildId, plan.count) === shardId };
    client = started.client;
    dropLeftGuilds(client, shardId, new Set(guilds.map(({ id }) => id)));
    if (identity === undefined) {
      identity = {
        botId: user.id,
        botName: user.global_name ?? user.username,
        botNames: [...new Set([user.global_name ?? user.username, user.username])],
        applicationId: application.id,
      };
      options.onIdentified(identity, plan);
    }
    events.sessionStarted(shard);
  }

  async function openWith(hasContentIntent: boolean): Promise<void> {
    const opened = createSession({
      ...options,
      hasContentIntent,
      onDispatch(payload, shardId) {
        if (payload.t === GatewayDispatchEvents.Ready) onReady(opened, shardId, payload.d);
        else if (identity !== undefined) dispatchEvent(payload, events, identity.botId);
      },
    });
    session = opened;
    try {
      await opened.connect();
    } catch (error) {
      await opened.close();
      throw error;
    }
  }

  return {
    identity: () => identity,
    plan: () => session?.plan(),
    client: () => client,
    health: () => failure ?? session?.health() ?? connecting,
    async open() {
      failure = undefined;
      try {
        await openWith(true).catch((error: unknown) => {
          if (!isDisallowedIntents(error)) throw error;
          log.warn({}, contentsRefused);
          return openWith(false);
        });
      } catch (error) {
        signal.throwIfAborted();
        const told = toConnectError(error);
        failure = { state: "failed", detail: told.message };
        throw told;
      }
    },
    async close() {
      await session?.close();
    },
  };
}

/** A client from its login to its end. A client that was destroyed cannot be used again. */
interface Session {
  readonly client: Client;
  /** Returns `undefined` before the number of shards is known. */
  plan(): ShardPlan | undefined;
  health(): PlatformHealth;
  /** Resolves when each shard has been connected once. @throws where Discord refuses one for good */
  connect(): Promise<void>;
  close(): Promise<void>;
}

/** Creates a session, whose client opens lost connections again and resumes them where Discord can. */
function createSession(
  options: ConnectionOptions & {
    readonly hasContentIntent: boolean;
    readonly onDispatch: (payload: GatewayDispatchPayload, shardId: number) => void;
  },
): Session {
  const { log, signal, hasContentIntent } = options;
  let isClosed = false;
  const states = new Map<number, PlatformHealth>();
  const allReady = Promise.withResolvers<void>();
  // Nobody waits for this when `connect` has failed before.
  allReady.promise.catch(() => undefined);
  let isOpen = false;
  const client = createClient(options, hasContentIntent, () => isClosed);

  const plan = (): ShardPlan | undefined => planOf(client);

  function setReady(shardId: number): void {
    states.set(shardId, {
      state: "ready",
      ...(hasContentIntent ? {} : { detail: "without message contents: the Message Content Intent is off" }),
    });
    isOpen ||= plan()?.ids.every((id) => states.get(id)?.state === "ready") === true;
    if (isOpen) allReady.resolve();
  }

  client.on(Events.Raw, (payload: GatewayDispatchPayload, shardId: number) => {
    if (isClosed || signal.aborted) return;
    // This field is missing in the library's types.
    const { t: type } = payload as { t: GatewayDispatchEvents };
    if (type === GatewayDispatchEvents.Ready || type === GatewayDispatchEvents.Resumed) setReady(shardId);
    options.onDispatch(payload, shardId);
  });
  client.on(Events.ShardReconnecting, (shardId) => {
    if (!isClosed) states.set(shardId, { state: "connecting", detail: "reconnecting to Discord" });
  });
  client.on(Events.ShardDisconnect, ({ code: given }, shardId) => {
    if (isClosed) return;
    const code = given as GatewayCloseCodes;
    const detail = toCloseReason(code);
    states.set(shardId, { state: "failed", detail });
    allReady.reject(new ClosedForGood(code, detail));
    // At the start it is tried without the intent.
    if (isOpen || code !== GatewayCloseCodes.DisallowedIntents) log.error({ code, shard: shardId }, detail);
  });
  client.on(Events.ShardError, (error, shardId) =>
    log.warn({ err: error, shard: shardId }, "gateway connection error"),
  );
  client.on(Events.Error, (error) => log.error({ err: error }, "error of discord.js"));

  return {
    client,
    plan,
    health() {
      const own = plan();
      return own === undefined ? { state: "connecting" } : toHealth(own, states);
    },
    async connect() {
      const aborted = Promise.withResolvers<never>();
      const abort = (): void => aborted.reject(signal.reason as Error);
      if (signal.aborted) abort();
      signal.addEventListener("abort", abort, { once: true });
      // Login resolves before the shards are connected, and its rejection waits for what never ends.
      client.login(options.token).catch((error: unknown) => allReady.reject(error));
      try {
        await Promise.race([allReady.promise, aborted.promise]);
      } finally {
        signal.removeEventListener("abort", abort);
      }
    },
    async close() {
      isClosed = true;
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

/** Returns `undefined` before the client has logged in. */
function planOf({ ws, options: { shardCount } }: Client): ShardPlan | undefined {
  if (ws.shards.size === 0) return undefined;
  return { count: shardCount ?? ws.shards.size, ids: [...ws.shards.keys()].sort((a, b) => a - b) };
}

/** Discord will not accept this shard again until something is changed. */
class ClosedForGood extends Error {
  readonly code: GatewayCloseCodes;

  constructor(code: GatewayCloseCodes, message: string) {
    super(message);
    this.code = code;
  }
}

function isDisallowedIntents(error: unknown): boolean {
  return error instanceof ClosedForGood && error.code === GatewayCloseCodes.DisallowedIntents;
}

function toConnectError(error: unknown): ParleyError {
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

const connecting: PlatformHealth = { state: "connecting" };

/** Sums up the shards: ready when all are, failed when one is for good. `connections` lists several. */
function toHealth({ count, ids }: ShardPlan, states: ReadonlyMap<number, PlatformHealth>): PlatformHealth {
  const all = ids.map((id) => ({ id, health: states.get(id) ?? connecting }));

  function describe(state: PlatformHealth["state"]): string | undefined {
    const affected = all.filter(({ health }) => health.state === state);
    const details = [...new Set(affected.flatMap(({ health: { detail } }) => detail ?? []))];
    if (count === 1) return details[0];
    const which = `shard${affected.length === 1 ? "" : "s"} ${affected.map(({ id }) => id).join(", ")} of ${count}`;
    return details.length === 0 ? which : `${which}: ${details.join("; ")}`;
  }

  const state =
    (["failed", "connecting"] as const).find((one) => all.some(({ health }) => health.state === one)) ??
    "ready";
  const detail =
    state === "ready"
      ? all.map(({ health }) => health.detail).find((one) => one !== undefined)
      : describe(state);
  return {
    state,
    ...(detail === undefined ? {} : { detail }),
    ...(count === 1
      ? {}
      : { connections: all.map(({ id, health }) => ({ name: `shard ${id}`, state: health.state })) }),
  };
}

/** The settings that every client of a connection shares. */
interface ClientSettings {
  readonly apiUrl: string;
  readonly shards: ShardSettings;
  readonly log: Log;
}

/** The shard manager that the client passes, of `@discordjs/ws`. */
type ShardManager = Parameters<NonNullable<NonNullable<ClientOptions["ws"]>["buildStrategy"]>>[0];

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
function createClient(
  { apiUrl, shards, log }: ClientSettings,
  hasContentIntent: boolean,
  /** Whether the client was given up. Its shards then connect no more. */
  isClosed: () => boolean,
): Client {
  const client = new Client({
    intents: [
      GatewayIntentBits.Guilds,
      GatewayIntentBits.GuildMessages,
      GatewayIntentBits.DirectMessages,
      ...(hasContentIntent ? [GatewayIntentBits.MessageContent] : []),
    ],
    ...toShardOptions(shards),
    makeCache: Options.cacheWithLimits(uncached),
    rest: toRestOptions(apiUrl),
    ws: { buildStrategy: (manager) => createShardingStrategy(manager, isClosed) },
  });
  warnOfRefusals(client.rest, log);
  return client;
}

/** Names all shards. Where none is named, the client takes them from SHARDS in the environment. */
function toShardOptions({ count, ids }: ShardSettings) {
  if (count === "auto") return { shards: count } as const;
  return { shards: ids ?? Array.from({ length: count }, (_, id) => id), shardCount: count };
}

/** Wraps the library's strategy, which runs all shards in this process, and adds what it lacks. */
function createShardingStrategy(manager: ShardManager, isClosed: () => boolean) {
  const strategy = new SimpleShardingStrategy(manager);
  const retrieve = manager.options.retrieveSessionInfo.bind(manager.options);
  const never = new Promise<never>(() => {});
  // The library cannot cancel its pause before it reconnects. A shard that was closed meanwhile stays here.
  manager.options.retrieveSessionInfo = (shardId) => (isClosed() ? never : retrieve(shardId));
  return {
    spawn: (shardIds: number[]) => strategy.spawn(shardIds),
    // The client would be destroyed by an error of one connection, which the library opens again.
    connect() {
      strategy.connect().catch(() => undefined);
      return Promise.resolve();
    },
    destroy: (options) => strategy.destroy(options),
    send: (shardId, payload) => strategy.send(shardId, payload),
    fetchStatus: () => strategy.fetchStatus(),
  } satisfies Pick<SimpleShardingStrategy, "spawn" | "connect" | "destroy" | "send" | "fetchStatus">;
}
