import {
  App,
  type AuthorizeResult,
  type Receiver as BoltReceiver,
  type ReceiverEvent,
  LogLevel,
  type Logger,
} from "@slack/bolt";
import type { Clock } from "../../../core/clock.ts";
import { ParleyError } from "../../../core/errors.ts";
import { inTime, systemClock } from "../../../support/clock.ts";
import { withLookupTime } from "../errors.ts";
import { WebClient, type WebClientOptions } from "@slack/web-api";
import type { Log } from "../../../core/telemetry.ts";

interface DurableAppOptions {
  readonly bolt: Bolt;
  readonly receiver: BoltReceiver;
  /** Returns what listeners find in their context. Where it rejects, Slack delivers the event again. */
  readonly authorize: (body: Readonly<Record<string, unknown>>) => Promise<AuthorizeResult>;
  readonly clock: Clock;
}

/**
 * Bolt acknowledges an event before its listeners run, so that a crash in between loses the event. This app
 * acknowledges after the listeners, when the event is durable, and is otherwise Bolt's.
 */
export class DurableApp extends App {
  readonly #closing = new AbortController();
  readonly #late: ReturnType<typeof createLateAcks>;

  constructor({ bolt, receiver, authorize, clock }: DurableAppOptions) {
    super({
      receiver,
      authorize: (_source, body) => authorize({ ...body }),
      convoStore: false,
      clientOptions: bolt.clientOptions(),
      logger: bolt.logger,
    });
    this.#late = createLateAcks((event) => super.processEvent(event), this.#closing.signal, clock);
    // The error is thrown again, so that an event that a listener could not accept is not acknowledged.
    this.error(async (error) => {
      throw error.original ?? error;
    });
  }

  override processEvent(event: ReceiverEvent): Promise<void> {
    return this.#late.processEvent(event);
  }

  /** Refuses events from now on. Slack delivers them to another connection, or later. */
  refuseEvents(): void {
    this.#closing.abort(new ParleyError("stopping", "the connection to Slack is closing"));
  }

  /** Resolves when nothing is in flight, after 2.5 seconds at the latest. */
  whenHandled(): Promise<void> {
    return this.#late.whenHandled();
  }

  /** Does the same for commands and clicks alone, which Slack delivers once. */
  whenCallsHandled(): Promise<void> {
    return this.#late.whenCallsHandled();
  }
}

/** Slack's deadline for acknowledgements is three seconds. */
const maxHandlingMs = 2500;

/**
 * Acknowledges an event when `handle` has resolved. If that rejects, there is no acknowledgement, and Slack
 * delivers the event again.
 * @param closing refuses events once it is aborted
 */
export function createLateAcks(
  handle: (event: ReceiverEvent) => Promise<void>,
  closing: AbortSignal,
  clock: Clock = systemClock,
) {
  const inFlight = new Set<Promise<unknown>>();
  const callsInFlight = new Set<Promise<unknown>>();

  async function process(event: ReceiverEvent): Promise<void> {
    const canBeRedelivered = isEvent(event.body);
    // Slack delivers commands and clicks once. Those that arrive before the connection is closed are still
    // handled.
    if (canBeRedelivered) closing.throwIfAborted();
    const ack = acknowledgeOnce(event.ack);
    // A button's work may take long, and Slack takes nothing from its acknowledgement, so that it is
    // acknowledged first.
    const cancelTimer =
      event.body["type"] === "block_actions"
        ? // The connection may be gone by then. The press is handled all the same.
          clock.after(maxHandlingMs, () => void Promise.allSettled([ack()]))
        : undefined;
    try {
      await handle({ ...event, ack: canBeRedelivered ? () => Promise.resolve() : ack });
      // This also acknowledges what nobody listens to, such as a button that only opens a link.
      await ack();
    } finally {
      cancelTimer?.();
    }
  }

  return {
    /** Resolves when the event is handled, and rejects where Slack must deliver it again. */
    processEvent(event: ReceiverEvent): Promise<void> {
      const work = withLookupTime(clock, () => process(event));
      const settled = Promise.allSettled([work]);
      const sets = isEvent(event.body) ? [inFlight] : [inFlight, callsInFlight];
      for (const set of sets) set.add(settled);
      void settled.then(() => {
        for (const set of sets) set.delete(settled);
      });
      return work;
    },
    whenHandled: (): Promise<void> => untilEmpty(inFlight, clock),
    whenCallsHandled: (): Promise<void> => untilEmpty(callsInFlight, clock),
  };
}

/** Resolves when nothing is left, after 2.5 seconds at the latest. */
async function untilEmpty(inFlight: ReadonlySet<Promise<unknown>>, clock: Clock): Promise<void> {
  const wait = async (): Promise<void> => {
    while (inFlight.size > 0) await Promise.all(inFlight);
  };
  await inTime(wait(), maxHandlingMs, { clock });
}

const isEvent = (body: Readonly<Record<string, unknown>>): boolean => body["type"] === "event_callback";

/** Lets only the first acknowledgement through, since a second one is an error of Bolt's over HTTP. */
function acknowledgeOnce(ack: ReceiverEvent["ack"]): ReceiverEvent["ack"] {
  let isDone = false;
  return async (response) => {
    if (isDone) return;
    isDone = true;
    await ack(response);
  };
}

/** The client has no timeout by default. It must not retry, since a repeated post would appear twice. */
const requestTimeoutMs = 20_000;

/** All parts of Slack's SDK share these options. */
export interface Bolt {
  readonly logger: Logger;
  /** Returns a copy each time, because the client changes these options. */
  clientOptions(): WebClientOptions;
  /** @param token is the token of all calls; without it, each call brings its own */
  createClient(token?: string): WebClient;
}

export function createBolt(apiUrl: string, log: Log): Bolt {
  const logger = toBoltLogger(log);
  const clientOptions = (): WebClientOptions => ({
    slackApiUrl: apiUrl,
    logger,
    retryConfig: { retries: 0 },
    rejectRateLimitedCalls: true,
    timeout: requestTimeoutMs,
  });
  return {
    logger,
    clientOptions,
    createClient: (token) => new WebClient(token, clientOptions()),
  };
}

const secrets = /xox[a-z][\w.-]*|xapp-[\w-]+|\?\S+/g;

/** Forwards Bolt's log lines. The debug and info lines are dropped, because they hold payloads. */
function toBoltLogger(log: Log): Logger {
  const line = (parts: readonly unknown[]) => parts.map(String).join(" ").replaceAll(secrets, "…");
  return {
    debug() {},
    info() {},
    warn: (...parts: unknown[]) => {
      log.debug({}, `bolt: ${line(parts)}`);
    },
    error: (...parts: unknown[]) => {
      log.warn({}, `bolt: ${line(parts)}`);
    },
    setLevel() {},
    setName() {},
    getLevel: () => LogLevel.WARN,
  };
}
