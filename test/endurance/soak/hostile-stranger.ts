/**
 * Somebody without a login, in a process of his own, so that what he costs is not the test's: requests in
 * rows, bodies in chunks of one byte, header lines, and what is no HTTP. He does not read a third of his
 * answers, and comes back where he is disconnected. What he sends is bounded, so that the server is measured
 * and not the machine.
 */
import { connect } from "node:net";

/** What the stranger has done so far. */
export interface StrangersDeeds {
  readonly sentBytes: number;
  readonly connections: number;
  readonly readBytes: number;
}

const [, , port = ""] = process.argv;
const tickMs = 100;
const bytesPerTick = 8000;
const connectionsOfEach = 3;

const host = `Host: 127.0.0.1:${port}\r\n`;
const chunkedPost = (path: string): string =>
  `POST ${path} HTTP/1.1\r\n${host}X-Parley: 1\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n`;

/** What each connection sends first, and then again and again. */
const ways: readonly (readonly [head: string, unit: string])[] = [
  ...["/", "/metrics", "/readyz", "/x", "/page/page.js"].map(
    (path) => ["", `GET ${path} HTTP/1.1\r\n${host}\r\n`] as const,
  ),
  ["", "GET / HTTP/1.1\r\nHost: another\r\n\r\n"],
  ...["/api/login", "/api/uploads?name=a", "/x"].map((path) => [chunkedPost(path), "1\r\n1\r\n"] as const),
  [`GET / HTTP/1.1\r\n${host}`, "a: b\r\n"],
  ["", "\0"],
];

let sentBytes = 0;
let connections = 0;
let readBytes = 0;

function open(index: number): void {
  const [head, unit] = ways[index % ways.length]!;
  const block = unit.repeat(Math.ceil(bytesPerTick / unit.length));
  let timer: NodeJS.Timeout | undefined;
  const socket = connect(Number(port), "127.0.0.1", () => {
    connections += 1;
    socket.write(head);
    timer = setInterval(() => {
      if (socket.writableNeedDrain) return;
      socket.write(block);
      sentBytes += block.length;
    }, tickMs);
  });
  if (index % 3 !== 0) socket.on("data", (piece: Buffer) => (readBytes += piece.length));
  socket.on("error", () => undefined);
  socket.on("close", () => {
    clearInterval(timer);
    setTimeout(open, 200, index);
  });
}

for (let index = 0; index < ways.length * connectionsOfEach; index += 1) open(index);
setInterval(() => process.send?.({ sentBytes, connections, readBytes } satisfies StrangersDeeds), 1000);
process.on("disconnect", () => process.exit());
