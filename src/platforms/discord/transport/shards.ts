import { ParleyError } from "../../../core/errors.ts";

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
