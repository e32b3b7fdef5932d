import { isParleyError } from "../core/errors.ts";
import type { Log } from "../core/telemetry.ts";
import type { ConversationHistory, Platform, Receiver } from "../core/platform.ts";

/** Longest pause between two tries to connect, in milliseconds. */
const maxPauseMs = 60_000;

export interface Link {
  /** Resolves at the first connection; rejects only when trying again is no use (a wrong token). */
  readonly connected: Promise<void>;
  /** Ends the tries and disconnects. */
  stop(): Promise<void>;
}

/**
 * Starts a platform and, while it cannot be reached, tries again at growing intervals: an outage at start must
 * not need an admin. A refused token ends it at once.
 */
export function keepConnected(
  platform: Platform,
  options: {
    readonly assistant: Receiver;
    readonly history: ConversationHistory;
    readonly log: Log;
    onConnected(): Promise<void>;
  },
): Link {
  const stopping = new AbortController();
  const connect = async (): Promise<void> => {
    for (let pauseMs = 1000; ; pauseMs = Math.min(maxPauseMs, pauseMs * 2)) {
      try {
        await platform.start(options.assistant, options.history);
        await options.onConnected();
        return;
      } catch (error) {
        if (stopping.signal.aborted || !isParleyError(error, "platform-unreachable")) throw error;
        options.log.warn({ platform: platform.id, err: error, pauseMs }, "cannot connect yet; trying again");
        await pause(Math.max(pauseMs, error.retryAfterMs ?? 0), stopping.signal);
        stopping.signal.throwIfAborted();
      }
    }
  };
  const connected = connect();
  // Whoever awaits it sees the error; a process that is stopping does not.
  void Promise.allSettled([connected]);
  return {
    connected,
    async stop() {
      stopping.abort();
      await platform.stop();
    },
  };
}

function pause(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const timer = setTimeout(resolve, ms);
    signal.addEventListener(
      "abort",
      () => {
        clearTimeout(timer);
        resolve();
      },
      { once: true },
    );
  });
}
