/** How Discord limits the start of sessions. */
export interface SessionStartOptions {
  /** How many IDENTIFYs a period allows. One more resets the bot's token. */
  readonly total: number;
  /** The length of the period in milliseconds. */
  readonly periodMs: number;
  /** How many shards, with different remainders, may identify at once. */
  readonly maxConcurrency: number;
  /** The time between two IDENTIFYs of shards with the same remainder, in milliseconds. */
  readonly spacingMs: number;
  /** The number of shards that `GET /gateway/bot` recommends. */
  readonly recommendedShards: number;
  /** How many servers a shard may have. A shard with more must be split. */
  readonly maxGuildsPerShard: number;
}

/** Limits like Discord's for a bot in few servers. */
export const platformSessionStarts: SessionStartOptions = {
  total: 1000,
  periodMs: 24 * 60 * 60_000,
  maxConcurrency: 1,
  spacingMs: 5000,
  recommendedShards: 1,
  maxGuildsPerShard: 2500,
};

/** Allows tests about something else to restart the bot sooner than Discord does. */
export const soonAgain: Partial<SessionStartOptions> = { spacingMs: 0 };

/** Whether the limits allow an IDENTIFY. */
export type StartVerdict = "allowed" | "too-soon" | "exhausted";

export interface SessionStarts {
  take(shardId: number): StartVerdict;
  /** Returns `session_start_limit` of `GET /gateway/bot`. */
  limit(): {
    readonly total: number;
    readonly remaining: number;
    readonly reset_after: number;
    readonly max_concurrency: number;
  };
}

/** Counts the starts of sessions. @param now milliseconds in the time that the client waits in */
export function createSessionStarts(
  options: SessionStartOptions,
  now: () => number = () => performance.now(),
): SessionStarts {
  const last = new Map<number, number>();
  let used = 0;
  let endsAt = now() + options.periodMs;
  const renew = (): void => {
    if (now() < endsAt) return;
    used = 0;
    endsAt = now() + options.periodMs;
  };
  return {
    take(shardId) {
      renew();
      used += 1;
      if (used > options.total) return "exhausted";
      const key = shardId % options.maxConcurrency;
      const at = now();
      if (at < (last.get(key) ?? -Infinity) + options.spacingMs) return "too-soon";
      last.set(key, at);
      return "allowed";
    },
    limit() {
      renew();
      return {
        total: options.total,
        remaining: Math.max(0, options.total - used),
        reset_after: Math.max(0, Math.ceil(endsAt - now())),
        max_concurrency: options.maxConcurrency,
      };
    },
  };
}
