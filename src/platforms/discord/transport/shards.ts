import { ParleyError } from "../../../core/errors.ts";
import type { APIGatewaySessionStartLimit } from "discord.js";
import type { Clock } from "../../../core/clock.ts";
import type { Claims } from "../../../core/storage.ts";
import type { Log } from "../../../core/telemetry.ts";
import { createKeyedQueue } from "../../../support/queues.ts";

/** Says which shards there are, and which of them this process runs. */
export interface ShardPlan {
  readonly count: number;
  /** The ids are ascending, and each occurs once. */
  readonly ids: readonly number[];
}

/** One of the shards. */
export interface Shard {
  readonly id: number;
  /** Whether it gets what happens in a server, or in direct messages (`undefined`). */
  has(guildId: string | undefined): boolean;
}

/** The settings DISCORD_SHARDS and DISCORD_SHARD_IDS. */
export interface ShardSettings {
  /** `auto` stands for as many as Discord recommends. */
  readonly count: "auto" | number;
  /** `undefined` stands for all. */
  readonly ids: readonly number[] | undefined;
}

/** One process that runs as many shards as Discord recommends. */
export const automaticShards: ShardSettings = { count: "auto", ids: undefined };

/**
 * Returns the plan. @throws ParleyError `config` where a shard is beyond the count
 * @param recommended the number of shards that Discord recommends
 */
export function toShardPlan(settings: ShardSettings, recommended: number): ShardPlan {
  const count = settings.count === "auto" ? Math.max(1, recommended) : settings.count;
  const ids = settings.ids ?? Array.from({ length: count }, (_, id) => id);
  const problem = shardIdsProblem(count, ids);
  if (problem !== undefined) throw new ParleyError("config", problem);
  return { count, ids: [...new Set(ids)].sort((a, b) => a - b) };
}

/** Says why these shards cannot be run, as a sentence with the remedy. Returns `undefined` where they can. */
export function shardIdsProblem(count: number, ids: readonly number[]): string | undefined {
  const beyond = ids.find((id) => id >= count);
  if (beyond === undefined) return undefined;
  const last = count - 1;
  return `DISCORD_SHARD_IDS names shard ${beyond}, but DISCORD_SHARDS is ${count}: shards are numbered 0 to ${last}`;
}

/**
 * Returns the shard that gets what happens in a server. Direct messages (`undefined`) go to the first.
 * @see https://discord.com/developers/docs/events/gateway#sharding
 */
export function shardOf(guildId: string | undefined, count: number): number {
  return guildId === undefined ? 0 : Number((BigInt(guildId) >> 22n) % BigInt(count));
}

/** Whether a process with this plan gets what happens in a server, or in direct messages (`undefined`). */
export function isOwnGuild(guildId: string | undefined, { count, ids }: ShardPlan): boolean {
  return ids.includes(shardOf(guildId, count));
}

/** Discord allows one IDENTIFY of each bucket in 5 s. The rest is for the way there. */
const spacingMs = 5500;
/** How often a claim that another process has is asked for again, on average. */
const claimRetryMs = 300;
/** A budget that was read this long ago is read again. */
const freshMs = 10_000;
/** A longer wait for the budget is interrupted to read it again. */
const maxWaitMs = 10 * 60_000;
/** Session starts that stay unused, besides one for each bucket: processes may identify at once. */
const reserve = 5;

/** Asks Discord for the budget of session starts. */
type AskLimit = () => Promise<APIGatewaySessionStartLimit>;

/** Decides when shards may identify. */
export interface IdentifyThrottle {
  /** Notes what Discord has just said of the budget. */
  note(limit: APIGatewaySessionStartLimit): void;
  /** Resolves when the shard may identify at once. @throws the reason of `signal` */
  waitForIdentify(shardId: number, ask: AskLimit, signal: AbortSignal): Promise<void>;
  /** Resolves when the budget allows `count` starts. @throws the reason of `signal` */
  waitForBudget(count: number, ask: AskLimit, signal: AbortSignal): Promise<void>;
  /** Tells people why shards wait. Returns `undefined` where none waits for the budget. */
  waitingFor(): string | undefined;
}

/**
 * Spaces IDENTIFYs by Discord's buckets, over all processes that share claims. It stops before the daily
 * budget is used up, since one more start would make Discord reset the token. The library only spaces those
 * of one process.
 */
export function createIdentifyThrottle(options: {
  readonly claims: Claims;
  readonly clock: Clock;
  readonly log: Log;
}): IdentifyThrottle {
  const { claims, clock, log } = options;
  const queue = createKeyedQueue();
  /** Holds when this process last identified in each bucket, by {@link Clock.monotonic}. */
  const lastAt = new Map<number, number>();
  let maxConcurrency = 1;
  let waiting: string | undefined;
  /** What is left after the reserve, not counting starts since it was read. */
  let budget = { left: 0, resetMs: 0, readAt: -Infinity };

  function note(limit: APIGatewaySessionStartLimit): void {
    maxConcurrency = Math.max(1, limit.max_concurrency);
    const kept = Math.min(reserve + maxConcurrency, Math.ceil(limit.total / 2));
    budget = { left: limit.remaining - kept, resetMs: limit.reset_after, readAt: clock.monotonic() };
  }

  /** Asks until Discord answers. Without an answer nothing says how many are left. */
  async function readBudget(ask: AskLimit, signal: AbortSignal): Promise<void> {
    while (clock.monotonic() - budget.readAt > freshMs) {
      try {
        note(await ask());
      } catch (error) {
        signal.throwIfAborted();
        log.warn({ err: error }, "the budget of session starts could not be read; retried soon");
        await clock.sleep(spacingMs, signal);
      }
    }
  }

  async function waitForBudget(count: number, ask: AskLimit, signal: AbortSignal): Promise<void> {
    for (;;) {
      await readBudget(ask, signal);
      const { left, resetMs } = budget;
      if (left >= count) break;
      budget = { ...budget, readAt: -Infinity };
      const minutes = Math.ceil(resetMs / 60_000);
      const message = `Discord's daily budget of session starts is nearly used up; the bot waits until it is renewed, in ${minutes} min`;
      if (waiting === undefined) log.error({ left, wanted: count, resetMs }, message);
      waiting = message;
      await clock.sleep(Math.min(resetMs + 1000, maxWaitMs), signal);
    }
    if (waiting !== undefined) log.info({}, "the budget of session starts is renewed");
    waiting = undefined;
  }

  /** Waits for the bucket. Without the store nobody knows when others identify, so a refusal is repeated. */
  async function waitForClaim(bucket: number, signal: AbortSignal): Promise<void> {
    for (;;) {
      try {
        if (await claims.claim(`discord-identify ${bucket}`, spacingMs)) return;
      } catch (error) {
        log.warn({ err: error, bucket }, "identifying without knowing of other processes");
        return;
      }
      await clock.sleep(claimRetryMs * (0.5 + Math.random()), signal);
    }
  }

  return {
    note,
    waitForBudget,
    async waitForIdentify(shardId, ask, signal) {
      const bucket = shardId % maxConcurrency;
      await queue.run(`${bucket}`, async () => {
        signal.throwIfAborted();
        await clock.sleep(
          Math.max(0, (lastAt.get(bucket) ?? -spacingMs) + spacingMs - clock.monotonic()),
          signal,
        );
        await waitForBudget(1, ask, signal);
        await waitForClaim(bucket, signal);
        lastAt.set(bucket, clock.monotonic());
        budget = { ...budget, left: budget.left - 1 };
      });
    },
    waitingFor: () => waiting,
  };
}
