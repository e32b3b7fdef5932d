import { mkdtemp, rm } from "node:fs/promises";
import { createServer, type IncomingMessage } from "node:http";
import { connect, type AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Readable } from "node:stream";
import * as fc from "fast-check";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { createEmbeddedGateway } from "../../../src/embedded-gateway/embedded-gateway.ts";
import { readForm } from "../../../src/embedded-gateway/upload.ts";
import { createDownloader } from "../../../src/media/guarded-download.ts";
import { createUploads } from "../../../src/platforms/web/uploads.ts";
import { createByteCollector } from "../../../src/support/byte-collector.ts";
import { readRequestBody } from "../../../src/support/http/body.ts";
import { createChunkReader } from "../../../src/wire/stream-frames.ts";
import { type GatewayResponse, readText } from "../../../src/wire/transport.ts";
import { cpuMsOf } from "../../support/cpu-time.ts";
import { retainedBytes } from "../../support/retained.ts";
import { silentLog } from "../../support/silent-log.ts";
import { plainSealer, startPageServer } from "../platforms/web/page-server.ts";

/** The inputs are the same every time, unless `FUZZ_SEED` is set. fast-check prints the seed of a failure. */
const seed = Number(process.env["FUZZ_SEED"] ?? 20_261_121);

let directory = "";
beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), "parley-pieces-"));
});
afterAll(async () => {
  await rm(directory, { recursive: true, force: true });
});

type Pieces = AsyncIterable<Buffer>;

const maxBytes = 8_000_000;
/** The stream itself reads nothing ahead, as those of a server. */
const oneAhead = { objectMode: false, highWaterMark: 1 } as const;
const toRequest = (pieces: Pieces): IncomingMessage =>
  Object.assign(Readable.from(pieces, oneAhead), { headers: {} }) as unknown as IncomingMessage;

/** Reads what a server of another sends in HTTP chunks, however they are cut. */
async function download(pieces: Pieces): Promise<Uint8Array> {
  const server = createServer((_, response) => void Readable.from(pieces, oneAhead).pipe(response));
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const host = `127.0.0.1:${(server.address() as AddressInfo).port}`;
  const downloader = createDownloader({ trusted: [{ host, allowHttp: true }], allowPublicHttps: false });
  try {
    const { signal } = new AbortController();
    return (await downloader.download(`http://${host}/`, { maxBytes, timeoutMs: 60_000, signal })).bytes;
  } finally {
    await downloader.close();
    server.close();
  }
}

async function* formOf(pieces: Pieces): Pieces {
  yield Buffer.from('--b\r\nContent-Disposition: form-data; name="file"; filename="a"\r\n\r\n');
  yield* pieces;
  yield Buffer.from("\r\n--b--\r\n");
}

async function packets(body: Readable): Promise<Buffer> {
  const reader = createChunkReader(body);
  const read = createByteCollector(maxBytes);
  for (let next = await reader.next(); next !== undefined; next = await reader.next()) read.add(next);
  return read.take();
}

/** Whatever reads bytes of others to their end. Each returns what it read. */
const readers: Readonly<Record<string, (pieces: Pieces) => Promise<Uint8Array | undefined>>> = {
  "the body of a request": (pieces) => readRequestBody(toRequest(pieces), maxBytes),
  "a form": async (pieces) =>
    (await readForm(formOf(pieces), "multipart/form-data; boundary=b", maxBytes)).bytes,
  "an upload": async (pieces) => {
    const uploads = createUploads(directory, { sealer: plainSealer, maxBytes, maxTotalBytes: 1e9 });
    const upload = await uploads.save(toRequest(pieces), { name: "a", mediaType: "text/plain" });
    const bytes = await uploads.bytesOf(upload);
    await uploads.remove(upload.id);
    return bytes;
  },
  "the answer of a gateway": async (pieces) => {
    const none = (): void => undefined;
    const attempt = { timeouts: { progress: none, alive: none }, callerSignal: new AbortController().signal };
    const body = Readable.from(pieces, oneAhead);
    return Buffer.from(await readText({ ...attempt, body } as unknown as GatewayResponse, maxBytes), "utf8");
  },
  "the packets of a stream": (pieces) => packets(Readable.from(pieces, oneAhead)),
  "a download": download,
};

async function* cut(bytes: Buffer, sizes: readonly number[]): Pieces {
  for (let at = 0, n = 0; at < bytes.length; n += 1) {
    const end = at + (sizes[n % sizes.length] ?? 1);
    yield bytes.subarray(at, end);
    at = end;
  }
}

/** Pieces of one byte, each a part of what came from the network at once. `onEnd` is called at their end. */
async function* tinyPieces(count: number, onEnd: () => void = () => undefined): Pieces {
  for (let at = 0; at < count; at += 1000) {
    const arrived = Buffer.alloc(8 * 1024, "a");
    for (let n = 0; n < 1000; n += 1) yield arrived.subarray(n, n + 1);
    await new Promise((resolve) => setImmediate(resolve));
  }
  onEnd();
}

describe.each(Object.entries(readers))("%s", (_, read) => {
  it("is the same, wherever it is cut", async () => {
    const size = fc.oneof(fc.constant(1), fc.integer({ min: 1, max: 5000 }));
    await fc.assert(
      fc.asyncProperty(
        fc.string({ minLength: 1, maxLength: 40, unit: "grapheme" }),
        fc.integer({ min: 1, max: 300 }),
        fc.array(size, { minLength: 1, maxLength: 20 }),
        async (text, times, sizes) => {
          // A form's own delimiter would end it.
          const bytes = Buffer.from(`x${text.replaceAll("-", "_").repeat(times)}`);
          expect(bytes.equals((await read(cut(bytes, sizes))) ?? Buffer.of())).toBe(true);
        },
      ),
      { seed, numRuns: 30 },
    );
  });

  it("keeps nothing of a piece but its bytes", async () => {
    let most = 0;
    const before = retainedBytes();
    const whole = await read(tinyPieces(100_000, () => (most = retainedBytes() - before)));
    expect(whole).toHaveLength(100_000);
    // As 100,000 buffers they take 15 MB.
    expect(most).toBeLessThan(4_000_000);
  });

  it("takes four times as long for four times the pieces", async () => {
    await read(tinyPieces(1000));
    const few = await cpuMsOf(() => read(tinyPieces(20_000)), 3);
    const many = await cpuMsOf(() => read(tinyPieces(80_000)), 3);
    // Quadratic work takes sixteen times as long.
    expect(many / few).toBeLessThan(9);
  }, 60_000);
});

/** What HTTP is made of, and what it is not. */
const token = fc.oneof(
  fc.constantFrom(
    ..."GET |POST |HEAD |PUT |/|/metrics|/readyz|/api/login|/api/uploads?name=a|/v1/models|/v1/chat/completions".split(
      "|",
    ),
    ..." HTTP/1.1\r\n| HTTP/1.0\r\n|Host: a\r\n|Host: HOST\r\n|X-Parley: 1\r\n|\r\n|\n|\r|:|;a=b|0\r\n\r\n|1\r\na\r\n".split(
      "|",
    ),
    "Content-Type: application/json\r\n",
    "Content-Length: 9\r\n",
    "Content-Length: 99999999999\r\n",
    "Transfer-Encoding: chunked\r\n",
    "Expect: 100-continue\r\n",
    "Connection: close\r\n",
    "Upgrade: websocket\r\nConnection: Upgrade\r\n",
    "GET / HTTP/1.1\r\nHost: HOST\r\n\r\n",
    "GET /x HTTP/1.1\r\nHost: HOST\r\n\r\n",
    "POST /api/login HTTP/1.1\r\nHost: HOST\r\nX-Parley: 1\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n",
    "POST /v1/chat/completions HTTP/1.1\r\nHost: HOST\r\nAuthorization: Bearer k\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n",
  ),
  fc.string({ maxLength: 8 }),
);
const connection = fc.record({
  tokens: fc.array(fc.record({ token, times: fc.constantFrom(1, 1, 1, 3, 500) }), { maxLength: 12 }),
  sizes: fc.array(fc.constantFrom(1, 7, 1000, 65_536), { minLength: 1, maxLength: 3 }),
  end: fc.constantFrom("end", "destroy", "wait"),
});

interface Sent {
  readonly tokens: readonly { readonly token: string; readonly times: number }[];
  readonly sizes: readonly number[];
  readonly end: string;
}

/** Sends it and resolves when the connection is closed, at the latest after what a client waits for. */
async function send(port: number, { tokens, sizes, end }: Sent): Promise<void> {
  const text = tokens.map((each) => each.token.repeat(each.times)).join("");
  const bytes = Buffer.from(text.replaceAll("HOST", `127.0.0.1:${port}`), "latin1");
  const socket = connect({ port, host: "127.0.0.1", noDelay: true });
  socket.on("error", () => undefined).resume();
  const closed = new Promise((resolve) => socket.on("close", resolve));
  let pieces = 0;
  for await (const piece of cut(bytes, sizes)) {
    if (socket.destroyed) break;
    // Past so many the rest comes at once, since each is a packet of its own.
    socket.write((pieces += 1) < 300 ? piece : bytes.subarray(piece.byteOffset - bytes.byteOffset));
    if (pieces >= 300) break;
    if (pieces % 20 === 0) await new Promise((resolve) => setImmediate(resolve));
  }
  if (end === "destroy") socket.destroy();
  else socket.end();
  await closed;
}

async function healthz(port: number): Promise<string> {
  const answer = await fetch(`http://127.0.0.1:${port}/healthz`, { headers: { connection: "close" } });
  return `${answer.status} ${await answer.text()}`;
}

const servers: Readonly<
  Record<string, () => Promise<{ readonly port: number; readonly close: () => Promise<void> }>>
> = {
  "the page's server": async () => {
    const page = await startPageServer({ password: "a password" });
    return { port: Number(page.host.split(":")[1]), close: () => page.close() };
  },
  "the embedded gateway": async () => {
    const gateway = createEmbeddedGateway({ host: "127.0.0.1", port: 0, apiKeys: ["k"], log: silentLog });
    const { url } = await gateway.listen();
    return { port: Number(new URL(url).port), close: () => gateway.close() };
  },
};

describe.each(Object.entries(servers))("%s", (_, start) => {
  it("stays well, whatever comes, cut anywhere, on several connections", async () => {
    const { port, close } = await start();
    const run = async (connections: readonly Sent[]): Promise<void> => {
      await Promise.all([...connections.map((each) => send(port, each)), healthz(port)]);
      expect(await healthz(port)).toMatch(/^200/);
    };
    try {
      await run([
        { tokens: [{ token: "GET / HTTP/1.1\r\nHost: HOST\r\n\r\n", times: 5 }], sizes: [9], end: "end" },
      ]);
      const before = retainedBytes();
      await fc.assert(fc.asyncProperty(fc.array(connection, { minLength: 1, maxLength: 4 }), run), {
        seed,
        numRuns: 60,
        interruptAfterTimeLimit: 20_000,
        markInterruptAsFailure: false,
      });
      expect(retainedBytes() - before).toBeLessThan(20_000_000);
    } finally {
      await close();
    }
  }, 90_000);
});
