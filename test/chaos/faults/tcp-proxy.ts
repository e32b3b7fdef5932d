import { connect, createServer, type AddressInfo, type Socket } from "node:net";

/** A loopback port in front of a server that may be exchanged for another one. */
export interface TcpProxy {
  readonly port: number;
  /** Ends all connections. New ones go to this port. */
  switchTo(port: number): void;
  close(): Promise<void>;
}

/** Passes connections on to `target`. Where that refuses, they are closed. */
export async function startTcpProxy(target: number): Promise<TcpProxy> {
  let to = target;
  const sockets = new Set<Socket>();
  const server = createServer((near) => {
    const far = connect(to, "127.0.0.1");
    for (const [socket, other] of [
      [near, far],
      [far, near],
    ] as const) {
      sockets.add(socket);
      socket.setNoDelay(true);
      socket.pipe(other);
      // An error is followed by `close`.
      socket.on("error", () => other.destroy());
      socket.on("close", () => {
        sockets.delete(socket);
        other.destroy();
      });
    }
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const cut = (): void => {
    for (const socket of sockets) socket.destroy();
  };
  return {
    port: (server.address() as AddressInfo).port,
    switchTo(port) {
      to = port;
      cut();
    },
    async close() {
      cut();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}
