import type { WebSocket } from "ws";

/** How many events of a session are kept for RESUME at most. */
const maxKept = 10_000;

/** A session of one shard. */
export interface Session {
  readonly id: string;
  readonly intents: number;
  /** `[id, count]`, as in the IDENTIFY. */
  readonly shard: readonly [number, number];
  sequence: number;
  /** The dispatched events, oldest first. A large one is not kept as text but rendered again. */
  readonly sent: { readonly sequence: number; readonly packet: string | (() => string) }[];
  socket: WebSocket | undefined;
  isResumable: boolean;
  /** When its connection ended, on the world's clock. */
  endedAt: number | undefined;
}

/** Sends an event and keeps it for RESUME. @param isLarge whether to render it again instead of keeping it */
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

/** Sends again what follows a sequence number. Returns false if those events are not kept any more. */
export function replay(session: Session, after: number): boolean {
  const first = session.sent[0]?.sequence ?? session.sequence + 1;
  if (after < first - 1) return false;
  for (const { sequence, packet } of session.sent)
    if (sequence > after) session.socket?.send(typeof packet === "string" ? packet : packet());
  return true;
}

/** Whether a shard gets the events of a server. Direct messages go to the first shard. */
export function isOfShard(guildId: string | undefined, [id, count]: readonly [number, number]): boolean {
  if (guildId === undefined) return id === 0;
  return Number((BigInt(guildId) >> 22n) % BigInt(count)) === id;
}

/** Returns the server that an event belongs to. */
export function guildOf(event: string, data: unknown): string | undefined {
  const { id, guild_id: guildId } = data as { readonly id?: string; readonly guild_id?: string };
  return ["GUILD_CREATE", "GUILD_UPDATE", "GUILD_DELETE"].includes(event) ? id : guildId;
}

/** Returns the shard that an IDENTIFY names, `[0, 1]` if it names none, or `undefined` if it is invalid. */
export function readShard(given: unknown): readonly [number, number] | undefined {
  if (given === undefined || given === null) return [0, 1];
  if (!Array.isArray(given) || given.length !== 2) return undefined;
  const [id, count] = given as readonly unknown[];
  if (typeof id !== "number" || typeof count !== "number") return undefined;
  if (!Number.isInteger(id) || !Number.isInteger(count)) return undefined;
  return id >= 0 && id < count ? [id, count] : undefined;
}
