import type { App, SocketModeReceiver } from "@slack/bolt";
import type { Clock } from "../../core/clock.ts";
import { ParleyError, codeOf } from "../../core/errors.ts";
import type { PlatformHealth } from "../../core/platform.ts";
import type { Log } from "../../core/telemetry.ts";
import { backoffMs, retry } from "../../support/retry.ts";
import { loadBolt, type Bolt } from "./bolt.ts";
import { createEventIntake, type EventIntake, type FindApp } from "./event-intake.ts";
import { createSocket, withoutPingChecks, type Socket } from "./socket.ts";

/** What every connection needs. */
export interface ConnectionOptions {
  readonly apiUrl: string;
  readonly clock: Clock;
  readonly log: Log;
  /**
   * Makes ready what handles events; called once, before any is delivered.
   * @throws ParleyError `platform-unauthorized`, `platform-unreachable`
   */
  readonly prepare: (bolt: Bolt) => Promise<FindApp>;
}

/** @see {@link createSocketConnection} */
export interface SocketConnectionOptions extends ConnectionOptions {
  /** `xapp-…` */
  readonly appToken: string;
}

/** Delivers Slack's events to the bot. */
export interface Connection {
  /** @throws ParleyError `platform-unauthorized`, `platform-unreachable` */
  open(): Promise<void>;
  health(): PlatformHealth;
  /**
   * Takes no new events, and waits for what is in flight, at most 5 seconds. Slack delivers unacknowledged events again, to
   * another connection where there is one. Web API calls are still possible.
   */
  close(): Promise<void>;
}

/** Slack closes a connection about ten seconds after its warning. */
const maxEndingMs = 30_000;
const reconnectDelay = { baseMs: 1000, maxMs: 30_000 };

/** Connects over Socket Mode. When Slack announces the end of a connection, another one is open before it. */
export function createSocketConnection(options: SocketConnectionOptions): Connection {
  const { appToken, apiUrl, clock, log, prepare } = options;
  let state: PlatformHealth = { state: "connecting" };
  const closing = new AbortController();
  let makeClient: () => SocketModeReceiver["client"];
  const sockets = new Set<Socket>();
  /** Those that Slack will close. */
  const ending = new WeakSet<Socket>();
  /** The newest open socket. */
  let current: Socket | undefined;
  let replacing: Promise<void> | undefined;
  let closed: Promise<void> | undefined;
  let intake: EventIntake | undefined;

  /**
   * Opens a socket beside the current one, which Slack is going to close, or after it: without a connection Slack tells
   * people at once that commands and buttons do not work. Never rejects.
   */
  async function replace(): Promise<void> {
    const delayMs = (error: unknown, attempt: number): number => {
      if (current === undefined) recordFailure(error);
      log.warn({ attempt, err: error }, "Slack reconnection failed");
      return backoffMs(attempt, reconnectDelay);
    };
    try {
      // Not inside the handler of the client's event.
      await clock.sleep(0, closing.signal);
      const old = current;
      await retry(() => openSocket(), { delayMs, signal: closing.signal, clock });
      log.info({}, "reconnected to Slack");
      // Slack ends it. Whoever closes it first may lose what the other one is just sending.
      if (old !== undefined) clock.after(maxEndingMs, () => void old.close(), { keepsAlive: false });
    } catch (error) {
      log.debug({ err: error }, "Slack reconnection aborted");
    }
  }

  function startReplacing(): void {
    if (closing.signal.aborted) return;
    replacing ??= replace().finally(() => {
      replacing = undefined;
      // Meanwhile the new one may be lost already.
      if (current === undefined || ending.has(current)) startReplacing();
    });
  }

  async function openSocket(): Promise<void> {
    const socket: Socket = createSocket(
      makeClient(),
      {
        ending() {
          ending.add(socket);
          if (socket === current) startReplacing();
        },
        silent: () => log.warn({}, "Slack does not answer pings; the connection is replaced"),
        ended() {
          sockets.delete(socket);
          if (socket !== current) return;
          current = undefined;
          if (!closing.signal.aborted) state = { state: "connecting" };
          startReplacing();
        },
      },
      clock,
    );
    await socket.open();
    sockets.add(socket);
    if (closing.signal.aborted) await socket.close();
    closing.signal.throwIfAborted();
    current = socket;
    state = { state: "ready" };
  }

  function recordFailure(error: unknown): void {
    state = toFailedHealth(error);
  }

  async function open(): Promise<void> {
    const bolt = await loadBolt(apiUrl, log);
    const opened = createEventIntake(await prepare(bolt), closing.signal, clock);
    intake = opened;
    closing.signal.throwIfAborted();
    makeClient = () => {
      const receiver = new bolt.sdk.SocketModeReceiver({
        appToken,
        logger: bolt.logger,
        autoReconnectEnabled: false,
        ...withoutPingChecks,
        installerOptions: { clientOptions: bolt.clientOptions() },
        processEventErrorHandler: ({ error }) => {
          log.warn({ err: error }, "event not accepted; Slack will deliver it again");
          return Promise.resolve(false);
        },
      });
      receiver.init(opened as unknown as App);
      return receiver.client;
    };
    await openSocket();
  }

  async function close(): Promise<void> {
    closing.abort(new ParleyError("stopping", "the connection to Slack is closing"));
    // Only what Slack delivers once needs its acknowledgement. Events that are in flight are known when they come again.
    await intake?.whenCallsHandled();
    await Promise.all([...sockets].map((socket) => socket.close()));
    await intake?.whenHandled();
    if (state.state === "ready") state = { state: "connecting", detail: "stopping" };
  }

  return {
    async open() {
      try {
        await open();
      } catch (error) {
        recordFailure(error);
        throw error;
      }
    },
    health: () => state,
    close() {
      // Once: the client does not resolve a second disconnection.
      closed ??= close();
      return closed;
    },
  };
}

/** The health of a connection that could not be opened. */
export function toFailedHealth(error: unknown): PlatformHealth {
  const code = codeOf(error);
  return { state: code === "platform-unauthorized" ? "failed" : "connecting", detail: code };
}
