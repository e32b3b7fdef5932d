import { once } from "node:events";
import { connect, type Socket } from "node:net";

/** Opens a connection and sends these bytes. */
export async function openRaw(url: string, text: string): Promise<Socket> {
  const { port } = new URL(url);
  const socket = connect(Number(port), "127.0.0.1");
  await once(socket, "connect");
  socket.write(text, "latin1");
  return socket;
}

/** Sends a request as it is, and returns all that comes back until the connection is closed. */
export async function askRaw(url: string, text: string): Promise<string> {
  const socket = await openRaw(url, text);
  return await readToEnd(socket);
}

/** Returns all that a connection sends until it is closed, even by a reset. */
export async function readToEnd(socket: Socket): Promise<string> {
  let answer = "";
  socket.on("data", (chunk) => (answer += chunk.toString("latin1")));
  socket.on("error", () => {});
  // This is not `once`, which rejects where the connection is reset.
  if (!socket.closed) await new Promise((resolve) => socket.on("close", resolve));
  return answer;
}

/** Returns the status of a raw answer, or 0 where there is none. */
export function statusOf(answer: string): number {
  return Number(/^HTTP\/1\.1 (\d{3})/.exec(answer)?.[1] ?? 0);
}
