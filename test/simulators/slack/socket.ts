import { randomUUID } from "node:crypto";
import type { WebSocket } from "ws";
import type { Clock } from "./clock.ts";
import { type Fields, type Workspace, toText } from "./workspace.ts";

/** One attempt to deliver an envelope to the app. */
export interface Delivery {
  readonly envelopeId: string;
  readonly type: "events_api" | "slash_commands" | "interactive";
  /** `event_id` of an event. */
  readonly eventId: string | undefined;
  /** Type of the event or interaction, e.g. `message`, `view_submission`. */
  readonly what: string;
  readonly payload: Fields;
  readonly attempt: number;
  outcome: "waiting" | "acknowledged" | "timeout" | "disconnected";
}

/** The Socket Mode side: open sockets and their envelopes. */
export interface SocketHub {
  /** All attempts, in order. */
  readonly deliveries: readonly Delivery[];
  /** Acknowledgements that are late, repeated or of unknown envelopes. */
  readonly badAcks: readonly string[];
  /** Events dropped after their last redelivery. */
  readonly lost: readonly Fields[];
  readonly connections: number;
  connect(socket: WebSocket): void;
  /** Delivers an event and, while unacknowledged, redelivers it: at once, after 1 minute, after 5 minutes. */
  sendEvent(event: Fields, options?: { readonly eventId?: string }): string;
  /** Delivers a command or interaction once. Resolves to the acknowledgement's payload, or why there is none. */
  sendInteraction(
    type: "slash_commands" | "interactive",
    payload: Fields,
  ): Promise<{ readonly ack: Fields } | { readonly failed: "timeout" | "disconnected" }>;
  /** Asks all connections to reconnect, as Slack does every few hours. */
  recycle(): void;
  /** Terminates all connections without a close handshake. */
  cut(): void;
}

const ackDeadlineMs = 3000;
/** Delays after a failed attempt. @see https://docs.slack.dev/apis/events-api#retries */
const redeliveryDelaysMs = [200, 60_000, 300_000];

/** A hub without connections. */
export function createSocketHub(workspace: Workspace, clock: Clock): SocketHub {
  const sockets = new Set<WebSocket>();
  const deliveries: Delivery[] = [];
  const badAcks: string[] = [];
  const lost: Fields[] = [];
  const waiting = new Map<
    string,
    { socket: WebSocket; settle: (result: Delivery["outcome"], ack: Fields) => void }
  >();
  let turn = 0;

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
    open.settle("acknowledged", (message["payload"] ?? {}) as Fields);
  }

  function deliver(
    delivery: Omit<Delivery, "envelopeId" | "outcome">,
    extra: Fields,
    done: (outcome: Delivery["outcome"], ack: Fields) => void,
  ): void {
    const open = [...sockets].filter((socket) => socket.readyState === socket.OPEN);
    const made: Delivery = { ...delivery, envelopeId: randomUUID(), outcome: "waiting" };
    deliveries.push(made);
    const socket = open[(turn += 1) % Math.max(1, open.length)];
    const settle = (outcome: Delivery["outcome"], ack: Fields) => {
      cancel();
      waiting.delete(made.envelopeId);
      made.outcome = outcome;
      done(outcome, ack);
    };
    if (socket === undefined) {
      made.outcome = "disconnected";
      queueMicrotask(() => done("disconnected", {}));
      return;
    }
    const cancel = clock.after(ackDeadlineMs, () => settle("timeout", {}));
    waiting.set(made.envelopeId, { socket, settle });
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

  function attemptEvent(payload: Fields, eventId: string, attempt: number, reason: string | undefined): void {
    const event = payload["event"] as Fields;
    deliver(
      { type: "events_api", what: toText(event["type"]), eventId, payload, attempt },
      { retry_attempt: attempt, retry_reason: reason ?? "" },
      (outcome) => {
        if (outcome === "acknowledged") return;
        const delay = redeliveryDelaysMs[attempt];
        if (delay === undefined) {
          lost.push(payload);
          return;
        }
        clock.after(delay, () => attemptEvent(payload, eventId, attempt + 1, outcome));
      },
    );
  }

  return {
    deliveries,
    badAcks,
    lost,
    get connections() {
      return sockets.size;
    },
    connect(socket) {
      sockets.add(socket);
      const beat = setInterval(() => socket.ping(), 5000);
      socket.on("message", (data) => receive((data as Buffer).toString("utf8")));
      socket.on("close", () => {
        clearInterval(beat);
        sockets.delete(socket);
        for (const open of waiting.values()) if (open.socket === socket) open.settle("disconnected", {});
      });
      socket.send(
        JSON.stringify({
          type: "hello",
          num_connections: sockets.size,
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
            enterprise_id: null,
            team_id: workspace.teamId,
            user_id: workspace.botUserId,
            is_bot: true,
            is_enterprise_install: false,
          },
        ],
        is_ext_shared_channel: false,
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
              : { failed: outcome === "timeout" ? "timeout" : "disconnected" },
          ),
        );
      }),
    recycle() {
      for (const socket of sockets)
        socket.send(JSON.stringify({ type: "disconnect", reason: "refresh_requested" }));
    },
    cut() {
      for (const socket of sockets) socket.terminate();
    },
  };
}
