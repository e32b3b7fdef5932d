import type { ResponseLike } from "discord.js";
import { steadyClock } from "../../support/steady-clock.ts";

/**
 * Discord's time in Unix milliseconds, exact to a second: ids of messages and the expiry of tokens are compared with
 * it, and the clock of this machine may be wrong or step. Until a response was observed it is {@link steadyClock}.
 */
export interface DiscordClock {
  now(): number;
  /** Reads the time of a response. */
  readonly observe: (response: Pick<ResponseLike, "headers">) => void;
}

/** @see {@link DiscordClock} */
export function createDiscordClock(): DiscordClock {
  /** Discord's time when `performance.now` was 0. */
  let originMs: number | undefined;
  return {
    now: () => (originMs === undefined ? steadyClock.now() : Math.round(originMs + performance.now())),
    observe({ headers }) {
      const time = Date.parse(headers.get("date") ?? "");
      if (!Number.isNaN(time)) originMs = time - performance.now();
    },
  };
}
