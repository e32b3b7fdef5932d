import { once } from "node:events";
import { connect, createServer, type AddressInfo, type Socket } from "node:net";

/** A TCP proxy in front of a local server, for one client that loses its way to it. */
export interface StallingProxy {
  readonly port: number;
  /** From now on nothing passes, and nothing is closed. */
  stall(): void;
  resume(): void;
  /** From now on every connection is closed, also one that is opened later. */
  cut(): void;
  /** From now on new connections lead to the local server on this port. Open ones stay where they are. */
  leadTo(port: number): void;
  close(): Promise<void>;
}

/** Starts a {@link StallingProxy} for the server on this port. */
export async function startStallingProxy(port: number): Promise<StallingProxy> {
  let target = port;
  const sockets = new Set<Socket>();
  let isStalled = false;
  let isCut = false;
  const pipe = (from: Socket, to: Socket): void => {
    sockets.add(from);
    from.setNoDelay(true);
    from.on("data", (bytes) => to.write(bytes));
    from.on("error", () => to.destroy());
    from.on("close", () => {
      sockets.delete(from);
      to.destroy();
    });
    if (isStalled) from.pause();
  };
  const server = createServer((client) => {
    if (isCut) return void client.destroy();
    const upstream = connect(target, "127.0.0.1");
    pipe(client, upstream);
    pipe(upstream, client);
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const cut = (): void => {
    isCut = true;
    for (const socket of sockets) socket.destroy();
  };
  return {
    port: (server.address() as AddressInfo).port,
    stall() {
      isStalled = true;
      for (const socket of sockets) socket.pause();
    },
    resume() {
      isStalled = false;
      for (const socket of sockets) socket.resume();
    },
    cut,
    leadTo(other) {
      target = other;
    },
    async close() {
      cut();
      server.close();
      await once(server, "close");
    },
  };
}
