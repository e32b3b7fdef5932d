import { isParleyError } from "../core/errors.ts";
import type { Clock } from "../core/clock.ts";
import type { Log, Meter } from "../core/telemetry.ts";
import type { Platform } from "../core/platform.ts";
import type { ConversationHistory, Receiver } from "../core/receiver.ts";
import { backoffMs, retry, backoffs } from "../support/retry.ts";

/** How often the connection is looked at, in milliseconds, to count reconnects. */
const watchEveryMs = 1000;

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
    readonly meter: Meter;
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
  // Whether it is connected now. It is absent before the first connection, which is no reconnect.
  let isUp: boolean | undefined;
  const stopWatching = options.clock.every(watchEveryMs, () => {
    const isReady = platform.health().state === "ready";
    if (isReady && isUp === false) options.meter({ kind: "reconnected", platform: platform.id });
    if (isReady || isUp !== undefined) isUp = isReady;
  });
  // Callers await `connected`. After `stop` nobody does, and a rejection must not count as unhandled.
  void Promise.allSettled([connected]);
  return {
    /** Resolves after the first connection. Rejects when a retry is useless (the token is refused). */
    connected,
    /** Stops retrying. The platform takes no new events. */
    async pause(): Promise<void> {
      stopping.abort();
      stopWatching();
      await platform.pause();
    },
    /** Stops retrying and disconnects. */
    async stop(): Promise<void> {
      stopping.abort();
      stopWatching();
      await platform.stop();
    },
  };
}

/** A platform's connection, attempted until it succeeds. */
export type Link = ReturnType<typeof keepConnected>;
