import { once } from "node:events";
import type { RequestListener, Server } from "node:http";
import { connect, type AddressInfo, type Socket } from "node:net";
import { Worker } from "node:worker_threads";
import { afterEach, describe, expect, it } from "vitest";
import { createHttpServer } from "../../../src/support/http/server.ts";
import { holdUpOf } from "../../support/longest-turn.ts";
import { retainedBytes } from "../../support/retained.ts";
import { readToEnd } from "../operations/raw-request.ts";

let server: Server | undefined;
let workers: Worker[] = [];
async function endAttacks(): Promise<void> {
  await Promise.all(workers.map((worker) => worker.terminate()));
  workers = [];
}

afterEach(async () => {
  await endAttacks();
  server?.closeAllConnections();
  server?.close();
});

async function start(listener: RequestListener, decidesContinue = false): Promise<number> {
  server = createHttpServer(listener, { decidesContinue });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  return (server.address() as AddressInfo).port;
}

async function open(port: number, text: string | Buffer = ""): Promise<Socket> {
  const socket = connect(port, "127.0.0.1");
  await once(socket, "connect");
  socket.write(text);
  return socket;
}

const get = (path: string, more = "") => `GET ${path} HTTP/1.1\r\nHost: a\r\n${more}\r\n`;

/** Lets the event loop turn until something has happened. */
async function turnsUntil(isOver: () => boolean): Promise<void> {
  while (!isOver()) await new Promise((resolve) => setImmediate(resolve));
}

/** Attacks from another thread, so that only the server's work is in this one. */
function attack(port: number, connections: number, head: string, unit: string, bytes: number): void {
  const code = `
    const { connect } = require("node:net");
    const { port, connections, head, unit, bytes } = require("node:worker_threads").workerData;
    const rest = Buffer.from(unit.repeat(Math.ceil(bytes / unit.length)));
    for (let n = 0; n < connections; n += 1) {
      const socket = connect(port, "127.0.0.1", () => socket.write(head) && socket.write(rest));
      socket.on("error", () => undefined).resume();
    }`;
  workers.push(new Worker(code, { eval: true, workerData: { port, connections, head, unit, bytes } }));
}

// Attack: 12 MB of `GET /` in a row on one connection, or 64 kB on each of 200, which took 26 s and
// 1.7 GB. What holds: one request of a connection at a time, nothing read behind it; connections
// share turns of a millisecond, the one first that had the least.
describe("requests in a row on one connection", () => {
  it("run one at a time, and are answered in order", async () => {
    let running = 0;
    let most = 0;
    const port = await start((request, response) => {
      running += 1;
      most = Math.max(most, running);
      setImmediate(() => {
        running -= 1;
        response.end(`<${request.url}>`);
      });
    });
    const paths = Array.from({ length: 300 }, (_, n) => `/${n}`);
    const all = paths.map((path) => get(path)).join("") + get("/last", "Connection: close\r\n");
    const answer = await readToEnd(await open(port, all));
    expect(answer.match(/<\/\w+>/g)).toEqual([...paths, "/last"].map((path) => `<${path}>`));
    expect(most).toBe(1);
  });

  it("wait with their bodies for the answer before them", async () => {
    const heard: string[] = [];
    const port = await start((request, response) => {
      let body = "";
      request.setEncoding("utf8").on("data", (piece: string) => (body += piece));
      request.on("end", () => {
        heard.push(body);
        setImmediate(() => response.end(`<${body.length}>`));
      });
    });
    const post = (body: string, more = "") =>
      `POST / HTTP/1.1\r\nHost: a\r\n${more}Content-Length: ${body.length}\r\n\r\n${body}`;
    const bodies = ["a".repeat(100_000), "", "b".repeat(3), "c".repeat(200_000)];
    const all = bodies.map((body) => post(body)).join("") + post("end", "Connection: close\r\n");
    const answer = await readToEnd(await open(port, all));
    expect(answer.match(/<\d+>/g)).toEqual(["<100000>", "<0>", "<3>", "<200000>", "<3>"]);
    expect(heard).toEqual([...bodies, "end"]);
  });

  it("are not read while one before them has no answer", async () => {
    const begun = Promise.withResolvers<undefined>();
    let runs = 0;
    const port = await start(() => {
      runs += 1;
      begun.resolve(undefined);
    });
    const rest = Buffer.from(get("/").repeat(100_000));
    const before = retainedBytes();
    const socket = await open(port, rest);
    await begun.promise;
    // It has read what it reads when the next connection is served.
    const other = await open(port, get("/"));
    await turnsUntil(() => runs === 2);
    // 100,000 requests in memory take 200 MB.
    expect(retainedBytes() - before).toBeLessThan(2_000_000);
    other.destroy();
    socket.destroy();
  });

  it("end with the connection", async () => {
    let runs = 0;
    const closed = Promise.withResolvers<undefined>();
    const port = await start((_, response) => {
      runs += 1;
      response.on("close", () => closed.resolve(undefined));
    });
    const socket = await open(port, get("/").repeat(20));
    socket.on("error", () => undefined);
    await turnsUntil(() => runs > 0);
    socket.resetAndDestroy();
    await closed.promise;
    await new Promise((resolve) => setImmediate(resolve));
    expect(runs).toBe(1);
  });
});

describe("the event loop", () => {
  it.each([
    ["requests in a row", "", get("/")],
    ["chunks of one byte", "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n", "1\r\n1\r\n"],
    ["header lines", "GET / HTTP/1.1\r\nHost: a\r\n", "a:b\r\n"],
    ["no HTTP at all", "", "\0"],
  ])("has turns for others while 40 connections send %s", async (_, head, unit) => {
    const port = await start((request, response) => {
      request.on("data", () => {});
      request.on("end", () => response.end("x".repeat(1000)));
    });
    let opened = 0;
    server!.on("connection", () => (opened += 1));
    const problem = await holdUpOf(async () => {
      await endAttacks();
      opened = 0;
      attack(port, 40, head, unit, 400_000);
      await turnsUntil(() => opened === 40);
      const deadline = performance.now() + 1000;
      await turnsUntil(() => performance.now() > deadline);
    });
    expect(problem).toBeUndefined();
  });

  it("serves a new connection soon while others keep it busy", async () => {
    const port = await start((request, response) => {
      request.resume();
      response.end("x");
    });
    attack(port, 40, "", get("/"), 1_000_000);
    let served = 0;
    server!.on("request", () => (served += 1));
    await turnsUntil(() => served >= 200);
    const before = served;
    expect(await readToEnd(await open(port, get("/", "Connection: close\r\n")))).toContain("200 OK");
    // Each of the others had some turns meanwhile, and not all of its 27,000 requests.
    expect(served - before).toBeLessThan(2000);
  });
});

describe("a connection", () => {
  it("carries large bodies both ways unchanged, to a client that reads slowly too", async () => {
    const port = await start((request, response) => void request.pipe(response));
    const sent = Buffer.alloc(3_000_000);
    for (let at = 0; at < sent.length; at += 4) sent.writeUInt32LE(at, at);
    const socket = await open(
      port,
      `POST / HTTP/1.0\r\nConnection: close\r\nContent-Length: ${sent.length}\r\n\r\n`,
    );
    socket.write(sent);
    const pieces: Buffer[] = [];
    for await (const piece of socket) {
      pieces.push(piece as Buffer);
      await new Promise((resolve) => setImmediate(resolve));
    }
    const answer = Buffer.concat(pieces);
    expect(answer.subarray(answer.indexOf("\r\n\r\n") + 4).equals(sent)).toBe(true);
  });

  it("asks for a body only where the listener does", async () => {
    const seen: string[] = [];
    const port = await start((request, response) => {
      seen.push(String(request.headers.expect));
      response.end("no");
    }, true);
    const head = "POST / HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 5\r\n";
    const answer = await readToEnd(await open(port, `${head}Connection: close\r\n\r\n`));
    expect(answer).not.toContain("100 Continue");
    expect(answer).toContain("200 OK");
    expect(seen).toEqual(["100-continue"]);
  });
});
