import { WebSocketManager, WebSocketShardEvents, type SessionInfo } from "@discordjs/ws";
import { GatewayDispatchEvents, GatewayIntentBits, Routes } from "discord-api-types/v10";
import type { GatewayReadyDispatchData, RESTGetAPIGatewayBotResult } from "discord.js";
import type { Clock } from "../../core/clock.ts";
import { isParleyError, ParleyError } from "../../core/errors.ts";
import type { Claims } from "../../core/storage.ts";
import type { Log } from "../../core/telemetry.ts";
import type { PlatformHealth } from "../../core/platform.ts";
import { sleepUnlessAborted } from "../../support/sleep.ts";
import { backoffMs, retry } from "../../support/retry.ts";
import { publicApiUrl } from "./api.ts";
import { closeCodes, isPermanent, toCloseReason } from "./close-codes.ts";
import type { DiscordClock } from "./discord-clock.ts";
import { unauthorized } from "./errors.ts";
import { dispatchEvent, type ConnectionEvents } from "./gateway-events.ts";
import { createGuildDirectory, type GuildDirectory } from "./guild-directory.ts";
import { observing, type HttpAgent } from "./http-agent.ts";
import type { RequestGuard } from "./invalid-requests.ts";
import { createIdentifyThrottle, type IdentifyThrottle } from "./identify-throttle.ts";
import { REST } from "./rest.ts";
import { createRequestWithRetryAfter } from "./retry-after.ts";
import { shardOf, toShardPlan, type Shard, type ShardPlan, type ShardSettings } from "./shard-plan.ts";
import { createShardStates, type ShardStates } from "./shard-states.ts";

const contentsRefused =
  "disallowed intents: turn on the Message Content Intent in the developer portal. Until then the bot reads direct messages and mentions only";

const backoff = { baseMs: 1000, maxMs: 60_000 };

/** How long closing waits for Discord to answer. */
const closeWithinMs = 2000;

/** The bot's user and application. */
export interface Identity {
  readonly botId: string;
  readonly botName: string;
  readonly applicationId: string;
}

/** How {@link createConnection} connects. */
export interface ConnectionOptions {
  readonly token: string;
  readonly apiUrl: string;
  readonly agent: HttpAgent;
  readonly shards: ShardSettings;
  readonly claims: Claims;
  readonly onResponse: DiscordClock["observe"];
  readonly guard: RequestGuard;
  /** The bot is known, before any event. `plan` says which shards this process runs. */
  readonly onIdentified: (identity: Identity, plan: ShardPlan) => void;
  readonly events: ConnectionEvents;
  readonly clock: Clock;
  readonly log: Log;
  /** Aborts the attempts to connect. */
  readonly signal: AbortSignal;
}

/** A connection to Discord's gateway: one for each shard that this process runs. */
export interface Connection {
  /** `undefined` before the first shard has identified. No event is passed on before. */
  identity(): Identity | undefined;
  /** `undefined` before the number of shards is known. */
  plan(): ShardPlan | undefined;
  readonly guilds: GuildDirectory;
  health(): PlatformHealth;
  /**
   * Resolves when all shards are connected, without the Message Content Intent where the application does not have it.
   * May be called again after it has failed.
   * @throws ParleyError `platform-unauthorized`, `platform-unreachable`, `config` (the shards do not fit)
   */
  open(): Promise<void>;
  close(): Promise<void>;
}

/** @see {@link Connection} */
export function createConnection(options: ConnectionOptions): Connection {
  const { log, events, clock, signal } = options;
  const rest = createGatewayRest(options);
  const throttle = createIdentifyThrottle({
    readLimit: async () => (await readGateway(rest)).session_start_limit,
    claims: options.claims,
    clock,
    log,
  });
  const guilds = createGuildDirectory();
  let identity: Identity | undefined;
  let plan: ShardPlan | undefined;
  let states: ShardStates | undefined;
  let failure: PlatformHealth | undefined;
  let shards: Shards | undefined;
  let isReopening = false;

  function onReady(shardId: number, { user, application, guilds: own }: GatewayReadyDispatchData): void {
    const { count } = plan as ShardPlan;
    const shard: Shard = { id: shardId, has: (guildId) => shardOf(guildId, count) === shardId };
    guilds.begin(
      own.map(({ id }) => id),
      shard,
    );
    if (identity === undefined) {
      identity = {
        botId: user.id,
        botName: user.global_name ?? user.username,
        applicationId: application.id,
      };
      options.onIdentified(identity, plan as ShardPlan);
    }
    events.sessionStarted(shard);
  }

  async function openWith(hasContentIntent: boolean): Promise<void> {
    const gateway = await readGateway(rest);
    plan = toShardPlan(options.shards, gateway.shards);
    const ownStates = createShardStates(plan);
    states = ownStates;
    if (plan.count > 1) log.info({ shards: plan.ids, of: plan.count }, "connecting shards");
    throttle.note(gateway.session_start_limit);
    await throttle.waitForBudget(plan.ids.length, signal);
    shards = createShards({
      ...options,
      gateway,
      plan,
      states: ownStates,
      throttle,
      hasContentIntent,
      onContentsRefused: () => void reopen(),
      onDispatch(payload, shardId) {
        if (payload.t === GatewayDispatchEvents.Ready) onReady(shardId, payload.d);
        else if (identity !== undefined) dispatchEvent(payload, { events, guilds, botId: identity.botId });
      },
    });
    try {
      await shards.connect();
    } catch (error) {
      await shards.close();
      throw error;
    }
  }

  /** Goes on without message contents. Contract: must not throw. */
  async function reopen(): Promise<void> {
    if (isReopening) return;
    isReopening = true;
    log.warn({}, contentsRefused);
    try {
      await shards?.close();
      await retry(() => openWith(false), {
        signal,
        clock,
        delayMs: (error, attempt) =>
          isParleyError(toConnectError(error), "platform-unreachable")
            ? backoffMs(attempt, backoff)
            : undefined,
      });
    } catch (error) {
      if (signal.aborted) return;
      failure = { state: "failed", detail: toConnectError(error).message };
      log.error({ err: error }, "Discord was not connected again");
    } finally {
      isReopening = false;
    }
  }

  return {
    identity: () => identity,
    plan: () => plan,
    guilds,
    health() {
      const waiting = throttle.waitingFor();
      if (failure !== undefined) return failure;
      const health = states?.health() ?? { state: "connecting" };
      return health.state === "connecting" && waiting !== undefined ? { ...health, detail: waiting } : health;
    },
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
      await shards?.close();
    },
  };
}

function createGatewayRest({ token, apiUrl, agent, onResponse, guard }: ConnectionOptions): REST {
  return new REST({
    version: "10",
    api: apiUrl,
    offset: apiUrl === publicApiUrl ? 50 : 0,
    makeRequest: observing(createRequestWithRetryAfter(agent, guard), (_, response) => onResponse(response)),
  }).setToken(token);
}

async function readGateway(rest: REST): Promise<RESTGetAPIGatewayBotResult> {
  return (await rest.get(Routes.gatewayBot())) as RESTGetAPIGatewayBotResult;
}

type LibraryRest = ConstructorParameters<typeof WebSocketManager>[0]["rest"];

/** For the one request of the library: the answer to it, which was read before. */
function createKnownGateway(gateway: RESTGetAPIGatewayBotResult): LibraryRest {
  return { get: () => Promise.resolve(gateway) } satisfies Pick<LibraryRest, "get"> as unknown as LibraryRest;
}

interface Shards {
  /** Resolves when each shard has been connected once. @throws where Discord refuses one for good */
  connect(): Promise<void>;
  close(): Promise<void>;
}

/** The shards of one attempt. Lost connections are opened again by the library, sessions resumed where Discord has them. */
function createShards(
  options: Pick<ConnectionOptions, "token" | "clock" | "log" | "signal"> & {
    readonly gateway: RESTGetAPIGatewayBotResult;
    readonly plan: ShardPlan;
    readonly states: ShardStates;
    readonly throttle: IdentifyThrottle;
    readonly hasContentIntent: boolean;
    /** The Message Content Intent was turned off since a shard was connected with it. */
    readonly onContentsRefused: () => void;
    readonly onDispatch: (
      payload:
        | Parameters<typeof dispatchEvent>[0]
        | { t: GatewayDispatchEvents.Ready; d: GatewayReadyDispatchData },
      shardId: number,
    ) => void;
  },
): Shards {
  const { plan, states, throttle, log, signal, hasContentIntent } = options;
  const sessions = new Map<number, SessionInfo>();
  const never = new Promise<never>(() => {});
  let isClosed = false;
  const pending = new Set(plan.ids);
  const shardErrors = new WeakSet<Error>();
  const allReady = Promise.withResolvers<void>();
  // Nobody waits for it when `connect` has failed before.
  allReady.promise.catch(() => undefined);
  const manager = new WebSocketManager({
    token: options.token,
    rest: createKnownGateway(options.gateway),
    intents: toIntents(hasContentIntent),
    shardCount: plan.count,
    shardIds: [...plan.ids],
    buildIdentifyThrottler: () => ({
      waitForIdentify: (shardId, given) =>
        throttle.waitForIdentify(shardId, AbortSignal.any([given, signal])),
    }),
    // The library cannot cancel its pause before it reconnects: a shard that was closed meanwhile stays here.
    retrieveSessionInfo: (shardId) => (isClosed ? never : (sessions.get(shardId) ?? null)),
    updateSessionInfo(shardId, session) {
      if (session === null) sessions.delete(shardId);
      else sessions.set(shardId, session);
    },
  });

  function setReady(shardId: number): void {
    states.set(shardId, {
      state: "ready",
      ...(hasContentIntent ? {} : { detail: "without message contents: the Message Content Intent is off" }),
    });
    pending.delete(shardId);
    if (pending.size === 0) allReady.resolve();
  }

  manager.on(WebSocketShardEvents.Dispatch, ({ data, shardId }) => {
    if (isClosed || signal.aborted) return;
    if (data.t === GatewayDispatchEvents.Ready || data.t === GatewayDispatchEvents.Resumed) setReady(shardId);
    options.onDispatch(data, shardId);
  });
  manager.on(WebSocketShardEvents.Closed, ({ code, shardId }) => {
    if (isClosed) return;
    if (!isPermanent(code)) {
      states.set(shardId, { state: "connecting", detail: "reconnecting to Discord" });
      return;
    }
    if (code === closeCodes.disallowedIntents && pending.size === 0 && hasContentIntent) {
      states.set(shardId, {
        state: "connecting",
        detail: "reconnecting to Discord without message contents",
      });
      return options.onContentsRefused();
    }
    const detail = toCloseReason(code);
    states.set(shardId, { state: "failed", detail });
    allReady.reject(new ClosedForGood(code, detail));
    if (code !== closeCodes.disallowedIntents) log.error({ code, shard: shardId }, detail);
  });
  manager.on(WebSocketShardEvents.Error, ({ error, shardId }) => {
    shardErrors.add(error);
    log.warn({ err: error, shard: shardId }, "gateway connection error");
  });

  return {
    async connect() {
      const aborted = Promise.withResolvers<never>();
      const abort = (): void => aborted.reject(signal.reason as Error);
      if (signal.aborted) abort();
      signal.addEventListener("abort", abort, { once: true });
      // It also rejects for a connection that the library opens again.
      manager.connect().catch((error: unknown) => {
        if (!(error instanceof Error && shardErrors.has(error))) allReady.reject(error);
      });
      try {
        await Promise.race([allReady.promise, aborted.promise]);
      } finally {
        signal.removeEventListener("abort", abort);
      }
    },
    async close() {
      isClosed = true;
      const closed = new AbortController();
      const destroy = async (): Promise<void> => manager.destroy({ code: 1000, reason: "stopping" });
      destroy()
        .catch((error: unknown) => log.debug({ err: error }, "gateway connection not closed"))
        .finally(() => closed.abort());
      // The library waits for ever for a shard that is still connecting.
      await sleepUnlessAborted(closeWithinMs, closed.signal, options.clock);
    },
  };
}

function toIntents(hasContentIntent: boolean): number {
  return [
    GatewayIntentBits.Guilds,
    GatewayIntentBits.GuildMessages,
    GatewayIntentBits.DirectMessages,
    ...(hasContentIntent ? [GatewayIntentBits.MessageContent] : []),
  ].reduce((all, bit) => all | bit, 0);
}

/** Discord will not accept a shard again until something is changed. */
class ClosedForGood extends Error {
  readonly code: number;

  constructor(code: number, message: string) {
    super(message);
    this.code = code;
  }
}

function isDisallowedIntents(error: unknown): boolean {
  return error instanceof ClosedForGood && error.code === closeCodes.disallowedIntents;
}

function toConnectError(error: unknown): ParleyError {
  if (error instanceof ParleyError) return error;
  if (error instanceof ClosedForGood) {
    return error.code === closeCodes.authenticationFailed
      ? unauthorized()
      : new ParleyError("config", error.message);
  }
  if ((error as { status?: unknown }).status === 401) return unauthorized();
  const name = error instanceof Error ? error.name : typeof error;
  return new ParleyError("platform-unreachable", `Discord could not be reached (${name})`, { cause: error });
}
