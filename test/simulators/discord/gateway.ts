import type { Server } from "node:http";
import { randomBytes } from "node:crypto";
import { WebSocketServer, type WebSocket } from "ws";
import { emit, guildOf, isOfShard, readShard, replay, type Session } from "./gateway-session.ts";
import { renderGuild, renderUser } from "./render.ts";
import type { SessionStartOptions, SessionStarts } from "./session-starts.ts";
import { guildsOf, type World } from "./world.ts";

/** The bits of intents. */
export const intents = {
  guilds: 1 << 0,
  guildMessages: 1 << 9,
  guildMessageReactions: 1 << 10,
  directMessages: 1 << 12,
  directMessageReactions: 1 << 13,
  messageContent: 1 << 15,
} as const;

/** A name that only a proxy knows is reached over TLS, as Discord's own is. */
export const socketScheme = (host: string): string => (host.startsWith("127.0.0.1:") ? "ws" : "wss");

/** How many packets a client may send on one connection in a minute. */
const maxPackets = 120;
/** How many servers are sent at once after READY. The others follow as the client reads them. */
const guildsAtOnce = 10;

/** How a gateway differs from Discord's. */
export interface GatewayOptions {
  readonly token: string;
  readonly starts: SessionStarts;
  readonly limits: Pick<SessionStartOptions, "maxGuildsPerShard">;
  /** Called when the bot identified too often. Discord then ends all sessions and resets the token. */
  readonly resetToken: () => void;
  /** The heartbeat interval in milliseconds. A client that is silent for twice as long is disconnected. */
  readonly heartbeatMs: number;
  /** How long after a lost connection a session can be resumed, in milliseconds of the world's clock. */
  readonly resumeForMs: number;
}

/**
 * The simulated gateway. A function with a shard id acts on that shard's last session. Without one it acts on
 * the session that connected last.
 */
export interface Gateway {
  /** Sends an event to the sessions of its server's shard that have the intent, or to all if it is 0. */
  dispatch(event: string, data: unknown, intent?: number): void;
  /** Whether a session is identified and connected. */
  isConnected(shardId?: number): boolean;
  /** Returns the intents of the last IDENTIFY, or 0 before the first. */
  identifiedIntents(): number;
  /** How often a client identified and resumed. */
  readonly counts: { identify: number; resume: number };
  /** Every accepted IDENTIFY with its shard and its time on the clock of `performance.now()`. */
  readonly identified: readonly { readonly shard: readonly [number, number]; readonly at: number }[];
  /** Returns how many GUILD_CREATE events were sent at the start of sessions. */
  guildsSent(): number;
  /** What clients did that Discord punishes. */
  readonly violations: readonly string[];
  /** Drops the connection, as a network failure does. */
  drop(shardId?: number): void;
  /** Sends RECONNECT (op 7). */
  askReconnect(shardId?: number): void;
  /** Sends INVALID_SESSION (op 9). */
  invalidateSession(resumable: boolean, shardId?: number): void;
  /** Forgets what was sent, so that no session can be resumed. */
  expireSessions(): void;
  /** Sends no HELLO on new connections, as an overloaded gateway does. */
  holdHello(): void;
  /** Acknowledges no more heartbeats on open connections, as if they were dead. */
  ignoreHeartbeats(): void;
  /** Returns the number of sockets that are open on both sides. */
  connections(): number;
  /** Closes the connection with a gateway close code, for example 4004 after the token was reset. */
  closeWith(code: number, shardId?: number): void;
  close(): Promise<void>;
}

interface Packet {
  readonly op: number;
  readonly d: unknown;
}

/** Serves `/gateway` on the HTTP server, as JSON without compression. */
export function createGateway(server: Server, world: World, options: GatewayOptions): Gateway {
  const sockets = new WebSocketServer({ noServer: true });
  const sessions = new Map<string, Session>();
  let current: Session | undefined;
  let lastIntents = 0;
  /** Clients that have answered a ping, so their side is open too. */
  const answering = new Set<WebSocket>();
  const deaf = new WeakSet<WebSocket>();
  let isHeld = false;
  const counts = { identify: 0, resume: 0 };
  const identified: { shard: readonly [number, number]; at: number }[] = [];
  const violations: string[] = [];
  let guildsSent = 0;

  server.on("upgrade", (request, socket, head) => {
    const url = new URL(request.url ?? "/", "http://localhost");
    const path = url.pathname.replace(/\/$/, "");
    if (path !== "/gateway" && path !== "/resume") {
      socket.destroy();
      return;
    }
    sockets.handleUpgrade(request, socket, head, (webSocket) => {
      if (url.searchParams.get("v") !== "10" || url.searchParams.get("encoding") !== "json") {
        webSocket.close(4012, "Invalid API version");
        return;
      }
      serve(webSocket, path === "/resume", request.headers.host ?? "");
    });
  });

  function serve(socket: WebSocket, isForResume: boolean, host: string): void {
    let session: Session | undefined;
    socket.ping();
    socket.on("pong", () => answering.add(socket));
    socket.on("close", () => answering.delete(socket));
    if (isHeld) return;
    send(socket, { op: 10, d: { heartbeat_interval: options.heartbeatMs, _trace: ["[]"] } });
    const silence = setTimeout(() => socket.close(4009, "Session timed out."), options.heartbeatMs * 2);
    silence.unref();
    let minute = { startedAt: performance.now(), packets: 0 };
    socket.on("message", (raw: Buffer) => {
      if (performance.now() - minute.startedAt > 60_000)
        minute = { startedAt: performance.now(), packets: 0 };
      minute.packets += 1;
      if (minute.packets > maxPackets) {
        violations.push("more than 120 packets in a minute");
        return socket.close(4008, "Rate limited.");
      }
      const packet = parse(raw);
      if (packet === undefined) return socket.close(4002, "Error while decoding payload.");
      switch (packet.op) {
        case 1:
          silence.refresh();
          return deaf.has(socket) ? undefined : send(socket, { op: 11 });
        case 2:
          if (session !== undefined) return socket.close(4005, "Already authenticated.");
          session = identify(socket, packet.d as Record<string, unknown>, host);
          return;
        case 6:
          if (!isForResume) violations.push("RESUME elsewhere than at resume_gateway_url");
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
    socket.on("close", (code: number) => {
      clearTimeout(silence);
      if (session?.socket !== socket) return;
      session.socket = undefined;
      session.endedAt = world.now();
      // With these codes the client gives the session up.
      if (code === 1000 || code === 1001) session.isResumable = false;
      if (!session.isResumable) sessions.delete(session.id);
    });
  }

  function identify(socket: WebSocket, data: Record<string, unknown>, host: string): Session | undefined {
    counts.identify += 1;
    const refuse = (code: number, reason: string): undefined => {
      socket.close(code, reason);
      return undefined;
    };
    if (data["token"] !== options.token) return refuse(4004, "Authentication failed.");
    const shard = readShard(data["shard"]);
    if (shard === undefined) return refuse(4010, "Invalid shard.");
    switch (options.starts.take(shard[0])) {
      case "exhausted":
        violations.push("more IDENTIFYs than allowed: the token was reset");
        options.resetToken();
        for (const client of sockets.clients) client.close(4004, "Authentication failed.");
        return undefined;
      case "too-soon":
        violations.push(`shard ${shard[0]} identified too soon`);
        send(socket, { op: 9, d: false });
        return undefined;
      case "allowed":
        break;
    }
    const asked = Number(data["intents"]);
    if (!Number.isInteger(asked) || asked < 0) return refuse(4013, "Invalid intent(s).");
    if ((asked & intents.messageContent) !== 0 && !world.messageContentAllowed)
      return refuse(4014, "Disallowed intent(s).");
    const properties = data["properties"] as Record<string, unknown> | undefined;
    if (properties?.["os"] === undefined || properties["browser"] === undefined)
      return refuse(4002, "Error while decoding payload.");
    const guilds = guildsOf(world).filter(({ id }) => isOfShard(id, shard));
    if (guilds.length > options.limits.maxGuildsPerShard) return refuse(4011, "Sharding required.");
    lastIntents = asked;
    identified.push({ shard, at: performance.now() });
    const session: Session = {
      id: randomBytes(16).toString("hex"),
      intents: asked,
      shard,
      sequence: 0,
      sent: [],
      socket,
      isResumable: true,
      endedAt: undefined,
    };
    sessions.set(session.id, session);
    current = session;
    emit(session, "READY", () => ({
      v: 10,
      user: { ...renderUser(world.bot), verified: true, mfa_enabled: true, email: null },
      guilds: guilds.map(({ id }) => ({ id, unavailable: true })),
      session_id: session.id,
      session_type: "normal",
      resume_gateway_url: `${socketScheme(host)}://${host}/resume`,
      application: { id: world.applicationId, flags: 0 },
      private_channels: [],
      relationships: [],
      presences: [],
      guild_join_requests: [],
      geo_ordered_rtc_regions: [],
      shard,
    }));
    if ((asked & intents.guilds) !== 0) sendGuilds(session, guilds);
    return session;
  }

  /** Sends a large bot's servers as the bot reads them. */
  function sendGuilds(session: Session, guilds: ReturnType<typeof guildsOf>): void {
    const isLarge = guilds.length > guildsAtOnce;
    const [first, rest] = [guilds.slice(0, guildsAtOnce), guilds.slice(guildsAtOnce)];
    const next = (): void => {
      const guild = rest.shift();
      if (guild === undefined || session.socket === undefined) return;
      guildsSent += 1;
      emit(session, "GUILD_CREATE", () => renderGuild(world, guild), { isLarge, done: next });
    };
    guildsSent += first.length;
    for (const [index, guild] of first.entries())
      emit(session, "GUILD_CREATE", () => renderGuild(world, guild), {
        isLarge,
        ...(index === first.length - 1 ? { done: next } : {}),
      });
  }

  function resume(socket: WebSocket, data: Record<string, unknown>): Session | undefined {
    counts.resume += 1;
    if (data["token"] !== options.token) {
      socket.close(4004, "Authentication failed.");
      return undefined;
    }
    const session = sessions.get(String(data["session_id"]));
    const isOver = (session?.endedAt ?? Infinity) + options.resumeForMs < world.now();
    if (session === undefined || !session.isResumable || isOver) {
      send(socket, { op: 9, d: false });
      return undefined;
    }
    const seen = Number(data["seq"]);
    if (seen > session.sequence) {
      socket.close(4007, "Invalid seq.");
      return undefined;
    }
    session.socket = socket;
    session.endedAt = undefined;
    current = session;
    if (!replay(session, seen)) {
      sessions.delete(session.id);
      session.socket = undefined;
      send(socket, { op: 9, d: false });
      return undefined;
    }
    emit(session, "RESUMED", () => ({ _trace: [] }));
    return session;
  }

  const sessionOf = (shardId: number | undefined): Session | undefined =>
    shardId === undefined ? current : [...sessions.values()].findLast(({ shard }) => shard[0] === shardId);

  return {
    dispatch(event, data, intent = 0) {
      const guildId = guildOf(event, data);
      // All sessions of a bot on the same shard receive all events.
      for (const session of sessions.values()) {
        const isMeant = intent === 0 || (session.intents & intent) !== 0;
        if (isMeant && isOfShard(guildId, session.shard)) emit(session, event, () => data);
      }
    },
    isConnected: (shardId) => sessionOf(shardId)?.socket !== undefined,
    identifiedIntents: () => lastIntents,
    counts,
    identified,
    guildsSent: () => guildsSent,
    violations,
    drop(shardId) {
      sessionOf(shardId)?.socket?.terminate();
    },
    askReconnect(shardId) {
      const socket = sessionOf(shardId)?.socket;
      if (socket !== undefined) send(socket, { op: 7, d: null });
    },
    invalidateSession(resumable, shardId) {
      const session = sessionOf(shardId);
      if (session === undefined) return;
      session.isResumable = resumable;
      if (session.socket !== undefined) send(session.socket, { op: 9, d: resumable });
    },
    expireSessions() {
      for (const session of sessions.values()) session.isResumable = false;
    },
    holdHello() {
      isHeld = true;
    },
    ignoreHeartbeats() {
      for (const client of sockets.clients) deaf.add(client);
    },
    connections: () => answering.size,
    closeWith(code, shardId) {
      sessionOf(shardId)?.socket?.close(code);
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
