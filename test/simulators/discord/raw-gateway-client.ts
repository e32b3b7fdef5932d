import { WebSocket } from "ws";
import { until } from "./until.ts";

/** A packet of the gateway. */
export interface RawPacket {
  readonly op: number;
  readonly t?: string | null;
  readonly s?: number | null;
  readonly d: unknown;
}

/** A client of the gateway that sends only what it is told to send. */
export interface RawGatewayClient {
  readonly packets: readonly RawPacket[];
  send(packet: unknown): void;
  identify(token: string, options?: Readonly<Record<string, unknown>>): void;
  /** Resolves to the first packet with that op or of that event. */
  receives(what: number | string): Promise<RawPacket>;
  /** Resolves to the close code. */
  closed(): Promise<number>;
  close(code?: number): void;
}

/** Connects to a simulated gateway. @param path `/gateway`, or the path of `resume_gateway_url` */
export async function connectRaw(origin: string, path = "/gateway"): Promise<RawGatewayClient> {
  const socket = new WebSocket(`${origin.replace("http", "ws")}${path}?v=10&encoding=json`);
  const packets: RawPacket[] = [];
  let code: number | undefined;
  socket.on("message", (data: Buffer) => void packets.push(JSON.parse(data.toString()) as RawPacket));
  socket.on("close", (given: number) => {
    code = given;
  });
  await new Promise<void>((resolve, reject) => {
    socket.once("open", () => resolve());
    socket.once("error", reject);
  });
  const client: RawGatewayClient = {
    packets,
    send: (packet) => socket.send(JSON.stringify(packet)),
    identify(token, options = {}) {
      client.send({
        op: 2,
        d: {
          token,
          intents: 1 | (1 << 9) | (1 << 15),
          properties: { os: "linux", browser: "test", device: "test" },
          ...options,
        },
      });
    },
    receives: (what) =>
      until(() => packets.find((packet) => (typeof what === "number" ? packet.op : packet.t) === what)),
    closed: () => until(() => code),
    close: (given) => socket.close(given),
  };
  return client;
}
