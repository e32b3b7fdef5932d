import { LRUCache } from "lru-cache";
import type { APIChannel } from "discord.js";
import type { Clock } from "../../core/clock.ts";
import { ParleyError } from "../../core/errors.ts";
import { discordCode, errorCodes } from "./errors.ts";

const maxEntries = 1000;
/** Discord does not say how long it refuses to open more; doubled with each refusal in a row. */
const firstPauseMs = 30_000;
const maxPauseMs = 10 * 60_000;

/**
 * Opens direct messages with few requests: their channel stays the same, and after Discord has refused to open more
 * (40003) nothing is asked for half a minute, and for longer after further refusals, at most ten minutes.
 * @returns `open` for one person. @throws ParleyError `platform-unreachable` with `retryAfterMs`: not now
 */
export function createDirectChannels(
  request: (userId: string) => Promise<APIChannel>,
  clock: Clock,
): (userId: string) => Promise<APIChannel> {
  const channels = new LRUCache<string, APIChannel>({ max: maxEntries });
  let refusals = 0;
  let pausedUntil = Number.NEGATIVE_INFINITY;

  function pauseMs(): number {
    return Math.ceil(pausedUntil - clock.monotonic());
  }

  return async (userId) => {
    const known = channels.get(userId);
    if (known !== undefined) return known;
    if (pauseMs() > 0) throw tooFast(pauseMs());
    try {
      const channel = await request(userId);
      refusals = 0;
      channels.set(userId, channel);
      return channel;
    } catch (error) {
      if (discordCode(error) !== errorCodes.openingTooFast) throw error;
      const waitMs = Math.min(firstPauseMs * 2 ** refusals, maxPauseMs);
      // Requests that were in flight together are one refusal.
      if (pauseMs() <= 0) refusals += 1;
      pausedUntil = Math.max(pausedUntil, clock.monotonic() + waitMs);
      throw tooFast(waitMs);
    }
  };
}

function tooFast(retryAfterMs: number): ParleyError {
  return new ParleyError("platform-unreachable", "direct messages are opened too fast for Discord", {
    retryAfterMs,
    detail: { discordCode: errorCodes.openingTooFast },
  });
}
