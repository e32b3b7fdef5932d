import type { Server } from "node:http";
import { randomBytes } from "node:crypto";
import { WebSocketServer, type WebSocket } from "ws";
import { renderGuild, renderUser } from "./render.ts";
import type { World } from "./world.ts";

/** Intent bits of events. */
export const intents = {
  guilds: 1 << 0,
  guildMessages: 1 << 9,
  directMessages: 1 << 12,
  messageContent: 1 << 15,
} as const;

interface Session {
  readonly id: string;
  readonly intents: number;
  sequence: number;
  /** All dispatched events, for RESUME. */
  readonly sent: { readonly sequence: number; readonly packet: string }[];
  socket: WebSocket | undefined;
  isResumable: boolean;
}

/** The simulated gateway. */
export interface Gateway {
  /** Sends an event to every session whose intents include one of `intent` (0: always). */
  dispatch(event: string, data: unknown, intent?: number): void;
  /** Whether a session is identified and connected. */
  isConnected(): boolean;
  /** Intents of the last IDENTIFY; 0 before. */
  identifiedIntents(): number;
  /** How often a client identified and resumed. */
  readonly counts: { identify: number; resume: number };
  /** Drops the connection, as in a network failure. */
  drop(): void;
  /** Sends RECONNECT (op 7). */
  askReconnect(): void;
  /** Sends INVALID_SESSION (op 9). */
  invalidateSession(resumable: boolean): void;
  /** New connections receive no HELLO, as from an overloaded gateway. */
  holdHello(): void;
  /** Sockets that are open on both sides. */
  connections(): number;
  /** Closes with a gateway close code, e.g. 4004 after the token was reset. */
  closeWith(code: number): void;
  close(): Promise<void>;
}

interface Packet {
  readonly op: number;
  readonly d: unknown;
}

/** Serves `/gateway` on the HTTP server: HELLO, IDENTIFY, heartbeats, RESUME, dispatches. JSON, no compression. */
export function createGateway(
  server: Server,
  world: World,
  options: { readonly token: string; readonly shardCount?: number },
): Gateway {
  const sockets = new WebSocketServer({ noServer: true });
  const sessions = new Map<string, Session>();
  let current: Session | undefined;
  let lastIntents = 0;
  /** Clients that have answered a ping: their side is open too. */
  const answering = new Set<WebSocket>();
  let isHeld = false;
  const counts = { identify: 0, resume: 0 };

  server.on("upgrade", (request, socket, head) => {
    const url = new URL(request.url ?? "/", "http://localhost");
    if (url.pathname !== "/gateway/" && url.pathname !== "/gateway") {
      socket.destroy();
      return;
    }
    sockets.handleUpgrade(request, socket, head, (webSocket) => {
      if (url.searchParams.get("v") !== "10" || url.searchParams.get("encoding") !== "json") {
        webSocket.close(4012, "Invalid API version");
        return;
      }
      serve(webSocket);
    });
  });

  function serve(socket: WebSocket): void {
    let session: Session | undefined;
    socket.ping();
    socket.on("pong", () => answering.add(socket));
    socket.on("close", () => answering.delete(socket));
    if (isHeld) return;
    send(socket, { op: 10, d: { heartbeat_interval: 41_250, _trace: ["[]"] } });
    socket.on("message", (raw: Buffer) => {
      const packet = parse(raw);
      if (packet === undefined) return socket.close(4002, "Error while decoding payload.");
      switch (packet.op) {
        case 1:
          return send(socket, { op: 11 });
        case 2:
          if (session !== undefined) return socket.close(4005, "Already authenticated.");
          session = identify(socket, packet.d as Record<string, unknown>);
          return;
        case 6:
          session = resume(socket, packet.d as Record<string, unknown>);
          return;
        case 3:
        case 4:
        case 8:
          if (session === undefined) socket.close(4003, "Not authenticated.");
          return;
        default:
          return socket.close(4001, "Unknown opcode.");
      }
    });
    socket.on("close", () => {
      if (session?.socket === socket) session.socket = undefined;
    });
  }

  function identify(socket: WebSocket, data: Record<string, unknown>): Session | undefined {
    counts.identify += 1;
    if (data["token"] !== options.token) {
      socket.close(4004, "Authentication failed.");
      return undefined;
    }
    const asked = Number(data["intents"]);
    if (!Number.isInteger(asked) || asked < 0) {
      socket.close(4013, "Invalid intent(s).");
      return undefined;
    }
    if ((asked & intents.messageContent) !== 0 && !world.messageContentAllowed) {
      socket.close(4014, "Disallowed intent(s).");
      return undefined;
    }
    const properties = data["properties"] as Record<string, unknown> | undefined;
    if (properties?.["os"] === undefined || properties["browser"] === undefined) {
      socket.close(4002, "Error while decoding payload.");
      return undefined;
    }
    lastIntents = asked;
    const session: Session = {
      id: randomBytes(16).toString("hex"),
      intents: asked,
      sequence: 0,
      sent: [],
      socket,
      isResumable: true,
    };
    sessions.set(session.id, session);
    current = session;
    emit(session, "READY", {
      v: 10,
      user: { ...renderUser(world.bot), verified: true, mfa_enabled: true, email: null },
      guilds: [{ id: world.guild.id, unavailable: true }],
      session_id: session.id,
      session_type: "normal",
      resume_gateway_url: world.origin.replace("http", "ws") + "/gateway",
      application: { id: world.applicationId, flags: 0 },
      private_channels: [],
      relationships: [],
      presences: [],
      guild_join_requests: [],
      geo_ordered_rtc_regions: [],
      shard: [0, 1],
    });
    if ((asked & intents.guilds) !== 0) emit(session, "GUILD_CREATE", renderGuild(world));
    return session;
  }

  function resume(socket: WebSocket, data: Record<string, unknown>): Session | undefined {
    counts.resume += 1;
    if (data["token"] !== options.token) {
      socket.close(4004, "Authentication failed.");
      return undefined;
    }
    const session = sessions.get(String(data["session_id"]));
    if (session === undefined || !session.isResumable) {
      send(socket, { op: 9, d: false });
      return undefined;
    }
    const seen = Number(data["seq"]);
    if (seen > session.sequence) {
      socket.close(4007, "Invalid seq.");
      return undefined;
    }
    session.socket = socket;
    current = session;
    for (const { sequence, packet } of session.sent) if (sequence > seen) socket.send(packet);
    emit(session, "RESUMED", { _trace: [] });
    return session;
  }

  function emit(session: Session, event: string, data: unknown): void {
    session.sequence += 1;
    const packet = JSON.stringify({ op: 0, t: event, s: session.sequence, d: data });
    session.sent.push({ sequence: session.sequence, packet });
    session.socket?.send(packet);
  }

  return {
    dispatch(event, data, intent = 0) {
      // All sessions of a bot on the same shard receive all events.
      for (const session of sessions.values()) {
        if (intent === 0 || (session.intents & intent) !== 0) emit(session, event, data);
      }
    },
    isConnected: () => current?.socket !== undefined,
    identifiedIntents: () => lastIntents,
    counts,
    drop() {
      current?.socket?.terminate();
    },
    askReconnect() {
      if (current?.socket !== undefined) send(current.socket, { op: 7, d: null });
    },
    invalidateSession(resumable) {
      if (current === undefined) return;
      current.isResumable = resumable;
      if (current.socket !== undefined) send(current.socket, { op: 9, d: resumable });
    },
    holdHello() {
      isHeld = true;
    },
    connections: () => answering.size,
    closeWith(code) {
      current?.socket?.close(code);
    },
    async close() {
      for (const client of sockets.clients) client.terminate();
      await new Promise<void>((resolve) => {
        sockets.close(() => resolve());
      });
    },
  };
}

function send(socket: WebSocket, packet: unknown): void {
  socket.send(JSON.stringify(packet));
}

function parse(raw: Buffer): Packet | undefined {
  try {
    return JSON.parse(raw.toString()) as Packet;
  } catch {
    return undefined;
  }
}
