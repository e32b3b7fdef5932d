import type { CancelTimer, Clock } from "../../core/clock.ts";
import type { Log } from "../../core/telemetry.ts";
import type { WorkSign } from "../delivery/edit-target.ts";
import type { DiscordApi } from "./api.ts";

/** Text that comes sooner needs no sign. */
const startAfterMs = 200;
/** Discord shows typing for ten seconds. */
const repeatMs = 8000;
/** How long a post waits for a request in flight, which would otherwise show typing after it. */
const settleMs = 500;

/** Typing as a sign of work. */
export interface TypingSign extends WorkSign {
  /** Stops it. Resolves when no request is in flight, after half a second at the latest. */
  stop(): Promise<void>;
}

/**
 * Shows "typing…" where the reply will be posted, until it is cleared: Discord ends it with the bot's next message.
 * @param channelId resolves to the channel; called when typing starts
 */
export function createTypingSign(options: {
  readonly api: Pick<DiscordApi, "startTyping">;
  readonly channelId: () => Promise<string>;
  readonly clock: Clock;
  readonly log: Log;
}): TypingSign {
  const { api, clock, log } = options;
  const cleared = new AbortController();
  let cancelTimer: CancelTimer | undefined;
  let inFlight: Promise<void> | undefined;

  async function type(): Promise<void> {
    try {
      const channelId = await options.channelId();
      if (!cleared.signal.aborted) await api.startTyping(channelId, { signal: cleared.signal });
    } catch (error) {
      if (!cleared.signal.aborted) log.debug({ err: error }, "typing not shown");
    }
  }

  function run(): void {
    inFlight = type();
    cancelTimer = clock.after(repeatMs, run);
  }

  function clear(): void {
    cancelTimer?.();
    // A reason of our own: the default one is an exception, whose stack is the larger part of the cost.
    cleared.abort("cleared");
  }

  return {
    showsWords: false,
    show() {
      if (cleared.signal.aborted) return;
      cancelTimer ??= clock.after(startAfterMs, run);
    },
    clear,
    async stop() {
      clear();
      if (inFlight === undefined) return;
      const late = Promise.withResolvers<void>();
      const cancel = clock.after(settleMs, late.resolve);
      await Promise.race([inFlight, late.promise]);
      cancel();
      inFlight = undefined;
    },
  };
}
