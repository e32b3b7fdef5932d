import type { WebSocket } from "ws";

/** Events of a session that are kept for RESUME at most. */
const maxKept = 10_000;

/** A session of one shard. */
export interface Session {
  readonly id: string;
  readonly intents: number;
  /** `[id, count]`, as identified. */
  readonly shard: readonly [number, number];
  sequence: number;
  /** Dispatched events, oldest first. A large one is rendered again. */
  readonly sent: { readonly sequence: number; readonly packet: string | (() => string) }[];
  socket: WebSocket | undefined;
  isResumable: boolean;
  /** When its connection ended, on the world's clock. */
  endedAt: number | undefined;
}

/** Sends an event and keeps it for RESUME. @param isLarge rendered again for RESUME, not kept as text */
export function emit(
  session: Session,
  event: string,
  render: () => unknown,
  { isLarge = false, done = undefined as (() => void) | undefined } = {},
): void {
  session.sequence += 1;
  const sequence = session.sequence;
  const toPacket = (): string => JSON.stringify({ op: 0, t: event, s: sequence, d: render() });
  const packet = toPacket();
  session.sent.push({ sequence, packet: isLarge ? toPacket : packet });
  if (session.sent.length > maxKept) session.sent.shift();
  if (session.socket === undefined) done?.();
  else session.socket.send(packet, () => done?.());
}

/** Sends again what follows a sequence number. False: it is no longer kept. */
export function replay(session: Session, after: number): boolean {
  const first = session.sent[0]?.sequence ?? session.sequence + 1;
  if (after < first - 1) return false;
  for (const { sequence, packet } of session.sent)
    if (sequence > after) session.socket?.send(typeof packet === "string" ? packet : packet());
  return true;
}

/** Whether a shard gets what happens in a server; direct messages go to the first. */
export function isOfShard(guildId: string | undefined, [id, count]: readonly [number, number]): boolean {
  if (guildId === undefined) return id === 0;
  return Number((BigInt(guildId) >> 22n) % BigInt(count)) === id;
}

/** The server that an event is of. */
export function guildOf(event: string, data: unknown): string | undefined {
  const { id, guild_id: guildId } = data as { readonly id?: string; readonly guild_id?: string };
  return ["GUILD_CREATE", "GUILD_UPDATE", "GUILD_DELETE"].includes(event) ? id : guildId;
}

/** The shard of an IDENTIFY; the only one where it names none. `undefined`: no valid one. */
export function readShard(given: unknown): readonly [number, number] | undefined {
  if (given === undefined || given === null) return [0, 1];
  if (!Array.isArray(given) || given.length !== 2) return undefined;
  const [id, count] = given as readonly unknown[];
  if (typeof id !== "number" || typeof count !== "number") return undefined;
  if (!Number.isInteger(id) || !Number.isInteger(count)) return undefined;
  return id >= 0 && id < count ? [id, count] : undefined;
}
