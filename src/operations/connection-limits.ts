import type { Server } from "node:http";
import type { Socket } from "node:net";

/** @see {@link limitConnections} */
export interface ConnectionLimits {
  /** Open connections in all. */
  readonly total: number;
  /** Open connections of one address. A reverse proxy has one address for everybody. */
  readonly perAddress: number;
}

const body = '{"error":{"code":"busy","message":"Too many connections. Try again in a moment."}}';
const refusal = [
  "HTTP/1.1 503 Service Unavailable",
  "Content-Type: application/json; charset=utf-8",
  `Content-Length: ${body.length}`,
  "Cache-Control: no-store",
  "Retry-After: 5",
  "Connection: close",
  "",
  body,
].join("\r\n");

/**
 * Closes connections past the limits with a 503. Past twice the total they are dropped without one.
 * @returns how many are open
 */
export function limitConnections(server: Server, limits: ConnectionLimits): { readonly count: () => number } {
  const byAddress = new Map<string, number>();
  let total = 0;
  server.maxConnections = limits.total * 2;
  server.on("connection", (socket: Socket) => {
    const address = socket.remoteAddress ?? "";
    const own = byAddress.get(address) ?? 0;
    if (total >= limits.total || own >= limits.perAddress) {
      // `end` alone would wait for the client to close its side.
      socket.end(refusal, () => socket.destroySoon());
      return;
    }
    total += 1;
    byAddress.set(address, own + 1);
    socket.once("close", () => {
      total -= 1;
      const left = (byAddress.get(address) ?? 1) - 1;
      if (left === 0) byAddress.delete(address);
      else byAddress.set(address, left);
    });
  });
  return { count: () => total };
}
