import type { Receiver as BoltReceiver } from "@slack/bolt";
import type { Clock } from "../../../core/clock.ts";
import { codeOf } from "../../../core/errors.ts";
import type { PlatformHealth } from "../../../core/platform.ts";
import type { HttpHandler } from "../../../core/platform-module.ts";
import type { Log } from "../../../core/telemetry.ts";
import type { Bolt, DurableApp } from "./durable-app.ts";

export interface ConnectionOptions {
  readonly bolt: Bolt;
  readonly clock: Clock;
  readonly log: Log;
  /**
   * Makes the app that handles what the receiver gets. This is called once, before anything is delivered.
   * @throws ParleyError `platform-unauthorized`, `platform-unreachable`
   */
  readonly createApp: (receiver: BoltReceiver) => Promise<DurableApp>;
}

/** A connection delivers Slack's events to the bot. */
export interface Connection {
  /**
   * Opens the connection.
   * @throws ParleyError `platform-unauthorized`, `platform-unreachable`
   */
  open(): Promise<void>;
  health(): PlatformHealth;
  /**
   * Takes no new events, and waits at most 5 seconds for what is in flight. Slack delivers unacknowledged
   * events again, to another connection where there is one. Calls of the Web API are still possible.
   */
  close(): Promise<void>;
  /** This handles the requests of {@link eventsPath}, in HTTP mode alone, also before it is open. */
  readonly handler?: HttpHandler;
}

/** Returns the health of a connection that could not be opened. */
export function toFailedHealth(error: unknown): PlatformHealth {
  const code = codeOf(error);
  return { state: code === "platform-unauthorized" ? "failed" : "connecting", detail: code };
}
