import { randomUUID } from "node:crypto";
import type { WebSocket } from "ws";
import { checkAck } from "./acks.ts";
import type { Clock } from "./clock.ts";
import { sendRequest, toRequest, type RequestEndpoint } from "./http-delivery.ts";
import { type Fields, type Workspace, toText } from "./workspace.ts";

/** One attempt to deliver an envelope to the app. */
export interface Delivery {
  readonly envelopeId: string;
  readonly type: "events_api" | "slash_commands" | "interactive";
  /** The `event_id` of an event. */
  readonly eventId: string | undefined;
  /** The type of the event or interaction, for example `message` or `view_submission`. */
  readonly what: string;
  readonly payload: Fields;
  readonly attempt: number;
  outcome: "waiting" | "acknowledged" | "timeout" | "disconnected" | "refused";
  /** Milliseconds from the sending to the acknowledgement. */
  tookMs?: number;
}

/** The delivering side: open sockets and their envelopes, or requests to an endpoint. */
export interface SocketHub {
  /** All attempts, in order. */
  readonly deliveries: readonly Delivery[];
  /** Acknowledgements that are late, repeated, for unknown envelopes, or with a refused payload. */
  readonly badAcks: readonly string[];
  /** Events that were dropped after their last redelivery. */
  readonly lost: readonly Fields[];
  /** The number of open sockets. Those that are closing get no envelopes. */
  readonly connections: number;
  /** Greets a new connection. The eleventh is refused. */
  connect(socket: WebSocket): void;
  /** Delivers an event. Without acknowledgement it is redelivered at once, after 1 and after 5 minutes. */
  sendEvent(event: Fields, options?: { readonly eventId?: string }): string;
  /** Delivers a command or interaction once. Resolves to the acknowledgement's payload or a failure. */
  sendInteraction(
    type: "slash_commands" | "interactive",
    payload: Fields,
  ): Promise<{ readonly ack: Fields } | { readonly failed: "timeout" | "disconnected" | "refused" }>;
  /** Ends the oldest connection ten seconds after a warning, as Slack does with each every few hours. */
  recycle(): void;
  /** Terminates all connections without a close handshake. */
  cut(): void;
  /**
   * Lets nothing pass over the open connections and tells neither side, as when a router forgets them. Slack
   * gives them up after 30 seconds.
   */
  silence(): void;
}

const ackDeadlineMs = 3000;
/** Slack allows ten connections. @see https://docs.slack.dev/apis/events-api/using-socket-mode */
const maxConnections = 10;
const warningMs = 10_000;
/** When Slack gives up a silent connection. Slack does not document how long it waits. */
const silentMs = 30_000;
/** The delays after a failed attempt. @see https://docs.slack.dev/apis/events-api#retries */
const redeliveryDelaysMs = [200, 60_000, 300_000];

/**
 * Creates a hub without connections.
 * @param endpoint where Slack sends requests. Without it, everything goes to sockets.
 */
export function createSocketHub(
  workspace: Pick<Workspace, "appId" | "botUserId" | "teamId" | "id"> & Partial<Workspace>,
  clock: Clock,
  endpoint?: RequestEndpoint,
): SocketHub {
  const sockets = new Set<WebSocket>();
  const deliveries: Delivery[] = [];
  const badAcks: string[] = [];
  const lost: Fields[] = [];
  const waiting = new Map<
    string,
    {
      made: Delivery;
      socket: WebSocket;
      settle: (result: Delivery["outcome"], ack: Fields) => void;
    }
  >();
  const silent = new WeakSet<WebSocket>();
  let turn = 0;
  const openSockets = (): WebSocket[] => [...sockets].filter((socket) => socket.readyState === socket.OPEN);

  function receive(raw: string): void {
    const message = JSON.parse(raw) as Fields;
    const id = toText(message["envelope_id"]);
    const open = waiting.get(id);
    if (open === undefined) {
      const known = deliveries.find((delivery) => delivery.envelopeId === id);
      badAcks.push(
        known === undefined ? `unknown envelope ${id}` : `${known.what}: already ${known.outcome}`,
      );
      return;
    }
    const ack = (message["payload"] ?? {}) as Fields;
    const problem = checkAck(open.made.type, open.made.payload, ack);
    if (problem !== undefined) badAcks.push(`${open.made.what}: ${problem}`);
    open.settle("acknowledged", ack);
  }

  function deliver(
    delivery: Omit<Delivery, "envelopeId" | "outcome">,
    extra: Fields,
    done: (outcome: Delivery["outcome"], ack: Fields, reason?: string) => void,
  ): void {
    const open = openSockets();
    const made: Delivery = { ...delivery, envelopeId: randomUUID(), outcome: "waiting" };
    deliveries.push(made);
    if (endpoint !== undefined) return void request(made, endpoint, toText(extra["retry_reason"]), done);
    const sentAt = performance.now();
    const socket = open[(turn += 1) % Math.max(1, open.length)];
    const settle = (outcome: Delivery["outcome"], ack: Fields) => {
      cancel();
      waiting.delete(made.envelopeId);
      made.outcome = outcome;
      made.tookMs = performance.now() - sentAt;
      done(outcome, ack);
    };
    if (socket === undefined) {
      made.outcome = "disconnected";
      queueMicrotask(() => done("disconnected", {}));
      return;
    }
    const cancel = clock.after(ackDeadlineMs, () => settle("timeout", {}));
    waiting.set(made.envelopeId, { made, socket, settle });
    if (silent.has(socket)) return;
    socket.send(
      JSON.stringify({
        envelope_id: made.envelopeId,
        type: made.type,
        payload: made.payload,
        accepts_response_payload: made.type !== "events_api",
        ...extra,
      }),
    );
  }

  async function request(
    made: Delivery,
    to: RequestEndpoint,
    reason: string,
    done: (outcome: Delivery["outcome"], ack: Fields, reason?: string) => void,
  ): Promise<void> {
    const { type, payload, attempt } = made;
    const result = await sendRequest(to.url, toRequest(to, type, payload, { attempt, reason }), clock);
    made.outcome = result.outcome;
    if (result.outcome !== "acknowledged") return done(result.outcome, {}, result.reason);
    made.tookMs = result.tookMs;
    const problem = checkAck(type, payload, result.ack);
    if (problem !== undefined) badAcks.push(`${made.what}: ${problem}`);
    done("acknowledged", result.ack);
  }

  function attemptEvent(payload: Fields, eventId: string, attempt: number, reason: string | undefined): void {
    const event = payload["event"] as Fields;
    deliver(
      { type: "events_api", what: toText(event["type"]), eventId, payload, attempt },
      { retry_attempt: attempt, retry_reason: reason ?? "" },
      (outcome, _ack, why = outcome) => {
        if (outcome === "acknowledged") return;
        const delay = redeliveryDelaysMs[attempt];
        if (delay === undefined) {
          lost.push(payload);
          return;
        }
        clock.after(delay, () => attemptEvent(payload, eventId, attempt + 1, why));
      },
    );
  }

  /** Whether people of other workspaces are in a channel. */
  function isShared(channel: string): boolean {
    const members = [...(workspace.channels?.get(channel)?.members ?? [])];
    return members.some((id) => (workspace.users?.get(id)?.teamId ?? workspace.teamId) !== workspace.teamId);
  }

  return {
    deliveries,
    badAcks,
    lost,
    get connections() {
      return openSockets().length;
    },
    connect(socket) {
      if (openSockets().length >= maxConnections) {
        socket.send(JSON.stringify({ type: "disconnect", reason: "too_many_websockets" }));
        return socket.close(1000);
      }
      sockets.add(socket);
      const beat = setInterval(() => {
        if (!silent.has(socket)) socket.ping();
      }, 5000);
      socket.on("message", (data) => receive((data as Buffer).toString("utf8")));
      socket.on("close", () => {
        clearInterval(beat);
        sockets.delete(socket);
        for (const open of waiting.values()) if (open.socket === socket) open.settle("disconnected", {});
      });
      socket.send(
        JSON.stringify({
          type: "hello",
          num_connections: openSockets().length,
          connection_info: { app_id: workspace.appId },
          debug_info: { host: "simulator", approximate_connection_time: 18_060 },
        }),
      );
    },
    sendEvent(event, options = {}) {
      const eventId = options.eventId ?? workspace.id("Ev");
      const payload: Fields = {
        token: "simulator",
        team_id: workspace.teamId,
        api_app_id: workspace.appId,
        type: "event_callback",
        event_id: eventId,
        event_time: Math.floor(clock.now() / 1000),
        event,
        authorizations: [
          {
            enterprise_id: workspace.enterpriseId ?? null,
            team_id: workspace.teamId,
            user_id: workspace.botUserId,
            is_bot: true,
            is_enterprise_install: workspace.enterpriseId !== undefined,
          },
        ],
        is_ext_shared_channel: isShared(toText(event["channel"])),
      };
      attemptEvent(payload, eventId, 0, undefined);
      return eventId;
    },
    sendInteraction: (type, payload) =>
      new Promise((resolve) => {
        const what = type === "slash_commands" ? toText(payload["command"]) : toText(payload["type"]);
        deliver({ type, what, eventId: undefined, payload, attempt: 0 }, {}, (outcome, ack) =>
          resolve(
            outcome === "acknowledged"
              ? { ack }
              : { failed: outcome === "timeout" || outcome === "refused" ? outcome : "disconnected" },
          ),
        );
      }),
    recycle() {
      const [ending] = openSockets();
      if (ending === undefined) return;
      const say = (reason: string) => ending.send(JSON.stringify({ type: "disconnect", reason }));
      say("warning");
      clock.after(warningMs, () => {
        if (ending.readyState !== ending.OPEN) return ending.terminate();
        say("refresh_requested");
        ending.close(1000);
      });
    },
    cut() {
      for (const socket of sockets) socket.terminate();
    },
    silence() {
      for (const socket of sockets) {
        silent.add(socket);
        // The socket is not read, so neither pings nor the close handshake are answered.
        socket.pause();
        clock.after(silentMs, () => socket.terminate());
      }
    },
  };
}
