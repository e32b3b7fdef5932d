import { once } from "node:events";
import { connect } from "node:net";
import { afterEach, beforeEach, expect, it } from "vitest";
import { startPageServer, type PageServer } from "./page-server.ts";

let server: PageServer;
beforeEach(async () => {
  server = await startPageServer({ maxFileBytes: 1000 });
});
afterEach(() => server.close());

const piece = Buffer.alloc(64 * 1024, "a");

/** Sends the whole request before it reads anything, as some proxies do. Resolves to the answer. */
async function sendAll(headers: string, body: readonly Buffer[]): Promise<string> {
  const [host, port] = server.host.split(":");
  const socket = connect(Number(port), host);
  await once(socket, "connect");
  socket.pause();
  socket.write(
    `POST /api/uploads?name=a HTTP/1.1\r\nHost: ${server.host}\r\nX-Parley: 1\r\n${headers}\r\n\r\n`,
  );
  for (const part of body) if (!socket.write(part)) await once(socket, "drain");
  let answer = "";
  for await (const chunk of socket.setEncoding("latin1")) {
    answer += chunk as string;
    if (/\r\n\r\n\{.*\}$/s.test(answer)) break;
  }
  return answer;
}

it.each([
  ["announced", "Content-Length: 40960000", Array.from({ length: 625 }, () => piece)],
  [
    "chunked",
    "Transfer-Encoding: chunked",
    [
      ...Array.from({ length: 625 }, () =>
        Buffer.concat([Buffer.from("10000\r\n"), piece, Buffer.from("\r\n")]),
      ),
      Buffer.from("0\r\n\r\n"),
    ],
  ],
])("a client that sends all of a file that is too large is told so (%s)", async (_, headers, body) => {
  for (let attempt = 0; attempt < 5; attempt++)
    expect(await sendAll(headers, body)).toMatch(/^HTTP\/1\.1 413 [\s\S]*attachment-too-large/);
});
