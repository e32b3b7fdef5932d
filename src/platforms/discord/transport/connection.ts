import { GatewayDispatchEvents, type Client, type GatewayReadyDispatchData } from "discord.js";
import type { Clock } from "../../../core/clock.ts";
import { isParleyError, ParleyError } from "../../../core/errors.ts";
import type { PlatformHealth } from "../../../core/platform.ts";
import type { Records } from "../../../core/storage.ts";
import type { Log } from "../../../core/telemetry.ts";
import type { DiscordApi } from "./api.ts";
import { dropLeftGuilds } from "./directory.ts";
import { dispatchEvent, type ConnectionEvents } from "./gateway-events.ts";
import {
  createInstanceName,
  createShardLease,
  lookEveryMs,
  renewEveryMs,
  type ShardLease,
} from "./shard-lease.ts";
import {
  createShardSession,
  isDisallowedIntents,
  toConnectError,
  type ShardSession,
} from "./shard-session.ts";
import { shardOf, toShardPlan, type ShardPlan, type ShardSettings } from "./shards.ts";

const contentsRefused =
  "disallowed intents: turn on the Message Content Intent in the developer portal. Until then the bot reads direct messages and mentions only";

/** Discord's pause between two sessions, divided by how many may begin at once. */
const identifyEveryMs = 5000;
/** An instance waits this long for each shard that it has before it takes a free one, so that they spread. */
const spreadMs = 500;
/** How long a shard that is listed for other instances may be without one. */
const othersAwayMs = 10_000;
/** How long a shard that was not connected is left alone. */
const againAfterMs = 5500;
/** How long an offered shard waits for an instance that connects, and then for the connection. */
const offerMs = { untilAnswered: 1500, untilTaken: 5000 };
/** How often the holder of an offered shard looks whether it is taken. */
const offerLookMs = 200;

/** The bot's user. */
interface Identity {
  readonly botId: string;
  readonly botName: string;
  readonly botNames: readonly string[];
}

/** The options of {@link createConnection}. */
interface ConnectionOptions {
  readonly token: string;
  readonly apiUrl: string;
  readonly api: Pick<DiscordApi, "getGateway" | "getSelf">;
  readonly shards: ShardSettings;
  /** Holds the leases of the shards. `undefined` where no other process has the store. */
  readonly leases: Pick<Records, "get" | "update"> | undefined;
  /** Is called when the first shard is heard here, with the application's id. */
  readonly onFirstShard: (applicationId: string) => void;
  readonly events: ConnectionEvents;
  readonly clock: Clock;
  readonly log: Log;
  /** Aborts the attempts to connect. */
  readonly signal: AbortSignal;
}

/** The connection to Discord's gateway. One instance of several hears a shard, the others stand by. */
export interface Connection {
  /** Returns `undefined` before Discord has told it. No event is passed on before that. */
  identity(): Identity | undefined;
  /** Returns the shards that are heard here, or `undefined` before the number of shards is known. */
  plan(): ShardPlan | undefined;
  /** Returns the clients of the shards that are heard here. */
  clients(): readonly Client[];
  /** Whether messages that do not mention the bot have their content. */
  readsContents(): boolean;
  health(): PlatformHealth;
  /**
   * Resolves when each shard is connected, or another instance has it. Where the application does not have
   * the Message Content Intent, they are connected without it. It may be called again after it has failed.
   * @throws ParleyError `platform-unauthorized`, `platform-unreachable`, or `config` where the shards do not
   *   fit
   */
  open(): Promise<void>;
  /**
   * Leaves the shards to another instance and hears nothing more. A process that is alone goes on until it is
   * closed, so that whoever uses a command is told to use it again.
   */
  handOver(): Promise<void>;
  close(): Promise<void>;
}

/** A shard as this instance knows it. */
interface KnownShard {
  readonly id: number;
  readonly lease: ShardLease | undefined;
  /** Whether this instance runs it before it is without a holder for long. */
  readonly isOwn: boolean;
  session?: ShardSession | undefined;
  /** Whether this instance holds the lease, and so renews it. */
  isHeld: boolean;
  /** Who else holds it. */
  holder?: string | undefined;
  /** Whether somebody else has held it, so that its instances have spread. */
  wasHeld?: boolean;
  /** Discord refuses it until something is changed. */
  failure?: PlatformHealth;
  /** It is left alone until then, by the steady clock. */
  notBefore: number;
  /** Since when nobody was seen to hold it. */
  freeSince?: number | undefined;
}

export function createConnection(options: ConnectionOptions): Connection {
  const { api, clock, log, signal, events } = options;
  const self = createInstanceName();
  let identity: Identity | undefined;
  let failure: PlatformHealth | undefined;
  let hasContentIntent = true;
  let count: number | undefined;
  let identifyMs = identifyEveryMs;
  let identifiedAt = Number.NEGATIVE_INFINITY;
  let shards: readonly KnownShard[] = [];
  const leaving = new AbortController();
  const stopped = AbortSignal.any([signal, leaving.signal]);
  const ends: (() => void)[] = [];
  let looking: Promise<void> | undefined;

  const heard = (): KnownShard[] => shards.filter(({ session }) => session !== undefined);

  function onReady(shard: KnownShard, { application, guilds }: GatewayReadyDispatchData): void {
    const { id, session } = shard;
    if (session !== undefined) dropLeftGuilds(session.client, id, new Set(guilds.map((one) => one.id)));
    if (id === 0) options.onFirstShard(application.id);
    events.sessionStarted({ id, has: (guildId) => shardOf(guildId, count ?? 1) === id });
  }

  /** Asks Discord who the bot is and how many shards there are. */
  async function prepare(): Promise<void> {
    if (count !== undefined) return;
    const [user, gateway] = await Promise.all([api.getSelf(), api.getGateway()]).catch((error: unknown) => {
      if (isParleyError(error, "platform-unauthorized")) throw error;
      throw new ParleyError("platform-unreachable", "Discord does not say who the bot is", { cause: error });
    });
    const plan = toShardPlan(options.shards, gateway.shards);
    const name = user.global_name ?? user.username;
    identity = { botId: user.id, botName: name, botNames: [...new Set([name, user.username])] };
    identifyMs = identifyEveryMs / Math.max(1, gateway.session_start_limit.max_concurrency);
    const { leases } = options;
    const all = Array.from({ length: plan.count }, (_, id) => id);
    shards = (leases === undefined ? plan.ids : all).map((shardId) => ({
      id: shardId,
      lease:
        leases === undefined
          ? undefined
          : createShardLease({ records: leases, shardId, count: plan.count, self }),
      isOwn: plan.ids.includes(shardId),
      isHeld: false,
      notBefore: Number.NEGATIVE_INFINITY,
    }));
    count = plan.count;
  }

  /** Connects a shard. Where Discord refuses the intent at the start, it is connected without it. */
  async function connect(shard: KnownShard): Promise<void> {
    const session = createShardSession({
      ...options,
      shardId: shard.id,
      count: count ?? 1,
      hasContentIntent,
      signal: stopped,
      onDispatch(payload) {
        if (shard.session !== session || signal.aborted) return;
        if (payload.t === GatewayDispatchEvents.Ready) onReady(shard, payload.d);
        else dispatchEvent(payload, events, identity?.botId ?? "");
      },
    });
    shard.session = session;
    try {
      await session.connect();
    } catch (error) {
      shard.session = undefined;
      await session.close();
      if (!hasContentIntent || !isDisallowedIntents(error)) throw error;
      log.warn({}, contentsRefused);
      hasContentIntent = false;
      return await connect(shard);
    } finally {
      identifiedAt = clock.monotonic();
    }
  }

  async function leave(shard: KnownShard): Promise<void> {
    const { session } = shard;
    shard.session = undefined;
    shard.isHeld = false;
    await session?.close();
  }

  /** Gives a lease back. One that cannot be is over soon. */
  async function giveBack({ lease }: KnownShard): Promise<void> {
    await lease?.release().catch(() => undefined);
  }

  /** Whether a shard is free for this instance, which notes who else has it. */
  async function isFree(shard: KnownShard): Promise<boolean> {
    const seen = (await shard.lease?.look()) ?? "free";
    shard.holder = typeof seen === "object" ? seen.holder : undefined;
    shard.wasHeld ||= shard.holder !== undefined;
    if (shard.isOwn) return typeof seen === "string";
    if (seen === "free") shard.freeSince ??= clock.monotonic();
    else shard.freeSince = undefined;
    return clock.monotonic() >= (shard.freeSince ?? Infinity) + othersAwayMs;
  }

  /** Connects a shard if no other instance has it. @throws ParleyError where it cannot be connected */
  async function tryToHear(shard: KnownShard): Promise<void> {
    const { id, lease } = shard;
    if (!(await isFree(shard))) return;
    const spreadsMs = lease === undefined || shard.wasHeld === true ? 0 : spreadMs * heard().length;
    await clock.sleep(Math.max(0, spreadsMs, identifiedAt + identifyMs - clock.monotonic()), stopped);
    const taken = (await lease?.take()) ?? "taken";
    if (taken === "held") return void (await isFree(shard));
    shard.isHeld = taken === "taken";
    try {
      await connect(shard);
      shard.isHeld = taken === "taken" || (await lease?.takeOver()) !== false;
      if (!shard.isHeld) await leave(shard);
      else if (lease !== undefined) log.info({ shard: id, instance: self }, "this instance hears the shard");
    } catch (error) {
      const told = toConnectError(error);
      shard.notBefore = clock.monotonic() + againAfterMs;
      if (told.code !== "platform-unreachable") shard.failure = { state: "failed", detail: told.message };
      shard.isHeld = false;
      await giveBack(shard);
      throw told;
    }
  }

  /** Looks at each shard that is not heard here, one after another. */
  async function look(onError: (error: unknown) => void): Promise<void> {
    for (const shard of shards) {
      const { session, failure: refused, notBefore } = shard;
      if (session !== undefined || refused !== undefined || clock.monotonic() < notBefore) continue;
      try {
        stopped.throwIfAborted();
        await tryToHear(shard);
      } catch (error) {
        onError(error);
      }
    }
  }

  /** Renews the leases, and leaves the shards that another instance has taken. */
  async function renew(): Promise<void> {
    const held = shards.filter(({ isHeld }) => isHeld);
    await Promise.all(
      held.map(async (shard) => {
        // While nobody can take the lease, its holder goes on.
        const isMine = await shard.lease?.renew().catch(() => true);
        if (isMine !== false || !shard.isHeld || leaving.signal.aborted) return;
        log.warn({ shard: shard.id }, "another instance hears the shard");
        await leave(shard);
      }),
    );
  }

  function keepLooking(): void {
    const warn = (error: unknown): void => {
      if (!stopped.aborted) log.warn({ err: error }, "shard not connected; it is tried again");
    };
    const lookOnce = (): void => {
      looking ??= look(warn).finally(() => (looking = undefined));
    };
    ends.push(clock.every(lookEveryMs, lookOnce));
  }

  /** Offers a shard, and waits while an instance connects. */
  async function offer(shard: KnownShard): Promise<void> {
    const { lease } = shard;
    if (lease === undefined) return;
    const startedAt = clock.monotonic();
    try {
      if (!(await lease.offer())) return;
      for (;;) {
        const where = await lease.whereOffered();
        const waitMs = where === "awaited" ? offerMs.untilTaken : offerMs.untilAnswered;
        if (where === "taken" || clock.monotonic() >= startedAt + waitMs) return;
        await clock.sleep(offerLookMs, signal);
      }
    } catch (error) {
      log.debug({ shard: shard.id, err: error }, "shard not offered");
    }
  }

  function stopLooking(): void {
    leaving.abort(new ParleyError("stopping", "this instance leaves its shards to others"));
  }

  async function end(): Promise<void> {
    stopLooking();
    for (const stop of ends.splice(0)) stop();
    const held = shards.filter(({ isHeld }) => isHeld);
    await Promise.all(heard().map((shard) => leave(shard)));
    await Promise.all(held.map((shard) => giveBack(shard)));
    await looking;
  }

  return {
    identity: () => identity,
    plan: () => (count === undefined ? undefined : { count, ids: heard().map(({ id }) => id) }),
    clients: () => heard().flatMap(({ session }) => session?.client ?? []),
    readsContents: () => hasContentIntent,
    health: () => failure ?? toHealth(shards, count),
    async open() {
      failure = undefined;
      try {
        await prepare();
        const isShared = options.leases !== undefined;
        if (isShared && ends.length === 0) ends.push(clock.every(renewEveryMs, () => void renew()));
        for (const shard of shards) shard.notBefore = Number.NEGATIVE_INFINITY;
        await look((error) => {
          throw error;
        });
        if (isShared) keepLooking();
      } catch (error) {
        signal.throwIfAborted();
        const told = toConnectError(error);
        failure = { state: "failed", detail: told.message };
        throw told;
      }
    },
    async handOver() {
      stopLooking();
      // Nobody else could hear it. Whoever uses a command now is told to use it again.
      if (options.leases === undefined) return;
      await Promise.all(heard().map((shard) => offer(shard)));
      await end();
    },
    close: end,
  };
}

const connecting: PlatformHealth = { state: "connecting" };

/** What is known of a shard. What another instance hears is ready. */
function healthOf({ session, failure, holder, isOwn }: KnownShard): PlatformHealth {
  if (session !== undefined) return session.health();
  if (failure !== undefined) return failure;
  if (holder !== undefined) return { state: "ready", detail: `another instance (${holder}) hears Discord` };
  return isOwn ? connecting : { state: "ready" };
}

/** Sums up the shards: ready when all are, failed when one is for good. `connections` lists several. */
function toHealth(shards: readonly KnownShard[], count: number | undefined): PlatformHealth {
  if (count === undefined) return connecting;
  const all = shards.map((shard) => ({
    id: shard.id,
    isHere: shard.isOwn && shard.holder === undefined,
    health: healthOf(shard),
  }));

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
  const here = all.filter(({ isHere }) => isHere);
  return {
    state,
    ...(detail === undefined ? {} : { detail }),
    ...(count === 1
      ? {}
      : { connections: here.map(({ id, health }) => ({ name: `shard ${id}`, state: health.state })) }),
  };
}
