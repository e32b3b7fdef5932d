import { isParleyError } from "../core/errors.ts";
import type { Clock } from "../core/clock.ts";
import type { Log } from "../core/telemetry.ts";
import type { ConversationHistory, Platform, Receiver } from "../core/platform.ts";
import { backoffMs, retry, backoffs } from "../support/retry.ts";

/**
 * Starts a platform and retries with exponential backoff (1 s to 60 s) while it is unreachable, so that an
 * outage at start needs no operator. Every other error is final and rejects `connected`.
 */
export function keepConnected(
  platform: Platform,
  options: {
    readonly assistant: Receiver;
    readonly history: ConversationHistory;
    readonly log: Log;
    readonly clock: Clock;
    onConnected(): Promise<void>;
  },
) {
  const stopping = new AbortController();
  const connected = retry(
    async () => {
      await platform.start(options.assistant, options.history);
      await options.onConnected();
    },
    {
      signal: stopping.signal,
      clock: options.clock,
      delayMs(error, attempt) {
        if (!isParleyError(error, "platform-unreachable")) return undefined;
        const waitMs = Math.max(backoffMs(attempt, backoffs.outage), error.retryAfterMs ?? 0);
        options.log.warn(
          { platform: platform.id, err: error, retryInMs: waitMs },
          "platform connection failed",
        );
        return waitMs;
      },
    },
  );
  // Callers await `connected`. After `stop` nobody does, and a rejection must not count as unhandled.
  void Promise.allSettled([connected]);
  return {
    /** Resolves after the first connection. Rejects when a retry is useless (the token is refused). */
    connected,
    /** Stops retrying. The platform takes no new events. */
    async pause(): Promise<void> {
      stopping.abort();
      await platform.pause();
    },
    /** Stops retrying and disconnects. */
    async stop(): Promise<void> {
      stopping.abort();
      await platform.stop();
    },
  };
}

/** A platform's connection, attempted until it succeeds. */
export type Link = ReturnType<typeof keepConnected>;
