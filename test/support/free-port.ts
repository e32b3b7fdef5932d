import { randomInt } from "node:crypto";
import { once } from "node:events";
import { createServer } from "node:net";

/** Systems give ports above this range to outgoing connections and to servers that ask for any port. */
const lowest = 10_000;
const past = 16_000;
const tries = 50;

/**
 * Resolves to a port of 127.0.0.1 that nothing listens on, for a program that must be told its port. It stays
 * free until the program listens, since systems give this range to no other connection by chance.
 */
export async function freePort(): Promise<number> {
  for (let tried = 0; tried < tries; tried++) {
    const port = randomInt(lowest, past);
    if (await isFree(port)) return port;
  }
  throw new Error(`no free port from ${lowest} to ${past - 1} in ${tries} tries`);
}

async function isFree(port: number): Promise<boolean> {
  const server = createServer().listen(port, "127.0.0.1");
  try {
    await once(server, "listening");
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "EADDRINUSE") return false;
    throw error;
  }
  server.close();
  await once(server, "close");
  return true;
}
