import type { Clock } from "../../core/clock.ts";
import type { ResponseLike } from "discord.js";
import { systemClock } from "../../support/clock.ts";

/**
 * Discord's time in Unix milliseconds, exact to a second: ids of messages and the expiry of tokens are compared with
 * it, and the clock of this machine may be wrong or step. Until a response was observed it is the
 * given time.
 */
export interface DiscordClock {
  now(): number;
  /** Reads the time of a response. */
  readonly observe: (response: Pick<ResponseLike, "headers">) => void;
}

/** @see {@link DiscordClock} */
export function createDiscordClock(clock: Clock = systemClock): DiscordClock {
  /** Discord's time when {@link Clock.monotonic} was 0. */
  let originMs: number | undefined;
  return {
    now: () => (originMs === undefined ? clock.now() : Math.round(originMs + clock.monotonic())),
    observe({ headers }) {
      const time = Date.parse(headers.get("date") ?? "");
      if (!Number.isNaN(time)) originMs = time - clock.monotonic();
    },
  };
}
