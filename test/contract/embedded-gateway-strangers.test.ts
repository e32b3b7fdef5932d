import { once } from "node:events";
import { request as httpRequest } from "node:http";
import { connect, type Socket } from "node:net";
import { networkInterfaces } from "node:os";
import { afterEach, describe, expect, it, vi } from "vitest";
import { createEmbeddedGateway } from "../../src/embedded-gateway/embedded-gateway.ts";
import { createManualClock } from "../support/manual-clock.ts";
import { readToEnd } from "../unit/operations/raw-request.ts";
import { createQuietLog } from "../support/quiet-log.ts";

/** These tests do what can be done to a gateway without one of its keys. */

const closers: (() => Promise<void>)[] = [];

afterEach(async () => {
  for (const close of closers.splice(0)) await close();
});

async function start(options: Partial<Parameters<typeof createEmbeddedGateway>[0]> = {}) {
  const gateway = createEmbeddedGateway({
    host: "127.0.0.1",
    port: 0,
    log: createQuietLog(),
    sandboxWordDelayMs: 0,
    drainMs: 100,
    ...options,
  });
  const { url } = await gateway.listen();
  closers.push(() => gateway.close());
  return { url, port: Number(new URL(url).port) };
}

/** Sends a request with headers that `fetch` does not let through. */
async function send(
  url: string,
  headers: Record<string, string>,
  { method = "GET", body = "" } = {},
): Promise<{ status: number; headers: Record<string, unknown>; text: string }> {
  return new Promise((resolve, reject) => {
    const sent = httpRequest(url, { method, headers }, (response) => {
      let text = "";
      response.setEncoding("utf8");
      response.on("data", (chunk: string) => (text += chunk));
      response.on("end", () =>
        resolve({ status: response.statusCode ?? 0, headers: response.headers, text }),
      );
    });
    sent.on("error", reject);
    sent.end(body);
  });
}

const transcription = {
  method: "POST",
  body: '--b\r\nContent-Disposition: form-data; name="model"\r\n\r\nsandbox/none\r\n--b--\r\n',
};
const form = { "content-type": "multipart/form-data; boundary=b" };

describe("a gateway with several keys", () => {
  it("takes each of them and no other", async () => {
    const { url } = await start({ apiKeys: ["one-key", "another-key"] });
    const status = async (headers: Record<string, string>) =>
      (await send(`${url}/v1/models`, headers)).status;
    for (const key of ["one-key", "another-key"])
      expect(await status({ authorization: `Bearer ${key}` })).toBe(200);
    for (const headers of [{}, { host: "localhost" }, { authorization: "Bearer one-key,another-key" }])
      expect(await status(headers)).toBe(401);
  });
});

// Attack: Reach a gateway without keys from elsewhere: `Host: localhost`, a proxy, DNS rebinding.
// What holds: both ends and the bind must be loopback, nothing forwarded, a loopback Host.
describe("a gateway without keys", () => {
  it("serves this machine only, whatever the Host header says", async () => {
    const { url, port } = await start();
    expect((await send(`${url}/v1/models`, { host: `localhost:${port}` })).status).toBe(200);
    for (const headers of [
      { host: "evil.example" },
      { host: "127.0.0.1.evil.example" },
      { host: "localhost", "x-forwarded-for": "203.0.113.7" },
      { host: "localhost", forwarded: "for=203.0.113.7" },
      { host: "localhost", "x-real-ip": "203.0.113.7" },
      { host: "localhost", via: "1.1 proxy" },
    ]) {
      const answer = await send(`${url}/v1/models`, headers);
      expect([headers, answer.status]).toEqual([headers, 403]);
    }
    const outside = Object.values(networkInterfaces())
      .flat()
      .find((address) => address?.family === "IPv4" && !address.internal);
    if (outside === undefined) return;
    await expect(send(`http://${outside.address}:${port}/v1/models`, { host: "localhost" })).rejects.toThrow(
      /ECONNREFUSED/,
    );
  });

  // Attack: Drive it from a web site, also by a form without preflight. What holds: foreign
  // `Origin` and `Sec-Fetch-Site` are refused on all paths; no CORS.
  it.each([
    [{ origin: "https://evil.example" }],
    [{ origin: "null" }],
    [{ origin: "http://localhost:1" }],
    [{ "sec-fetch-site": "cross-site" }],
    [{ "sec-fetch-site": "same-site" }],
  ])("refuses a web site that sends %j, on all routes and without CORS headers", async (site) => {
    const { url } = await start();
    for (const [path, options] of [
      ["/v1/models", {}],
      ["/healthz", {}],
      ["/pictures/none.png", {}],
      ["/v1/audio/transcriptions", transcription],
      ["/v1/audio/transcriptions", { method: "OPTIONS" }],
    ] as const) {
      const answer = await send(url + path, { ...form, ...site }, options);
      expect([path, answer.status]).toEqual([path, 403]);
      expect(answer.text).toContain("origin_not_allowed");
      expect(Object.keys(answer.headers).filter((name) => name.startsWith("access-control"))).toEqual([]);
    }
  });

  it("serves its own origin and a typed address", async () => {
    const { url, port } = await start();
    const own = { origin: url, "sec-fetch-site": "same-origin" };
    expect((await send(`${url}/v1/models`, own)).status).toBe(200);
    expect((await send(`${url}/v1/models`, { "sec-fetch-site": "none" })).status).toBe(200);
    // This is DNS rebinding: the site's name leads to this machine, so that its origin equals the Host
    // header.
    const rebound = { host: `evil.example:${port}`, origin: `http://evil.example:${port}` };
    expect((await send(`${url}/v1/models`, rebound)).status).toBe(403);
  });
});

// Attack: Slow headers or bodies, many connections, large uploads without a key. What holds:
// timeouts, a connection limit, 16 KiB of headers, 256 KiB of a refused body, no `100 Continue`.
describe("a stranger without a key", () => {
  const open = async (port: number): Promise<{ socket: Socket; received: () => string }> => {
    let text = "";
    const socket = connect(port, "127.0.0.1");
    socket.setEncoding("utf8");
    socket.on("data", (chunk: string) => (text += chunk));
    socket.on("error", () => {});
    await once(socket, "connect");
    return { socket, received: () => text };
  };

  it("gets a 401 for an upload of which hardly anything is read", async () => {
    const { port } = await start({ apiKeys: ["test-key"] });
    const { socket, received } = await open(port);
    const total = 200 * 1024 * 1024;
    socket.write(
      `POST /v1/audio/transcriptions HTTP/1.1\r\nhost: x\r\ncontent-type: multipart/form-data; boundary=b\r\ncontent-length: ${total}\r\n\r\n`,
    );
    const chunk = Buffer.alloc(64 * 1024);
    const push = (): void => {
      while (!socket.destroyed && socket.bytesWritten < total) {
        if (!socket.write(chunk)) return void socket.once("drain", push);
      }
    };
    push();
    await vi.waitFor(() => expect(socket.destroyed).toBe(true), { timeout: 8000 });
    expect(received()).toContain("HTTP/1.1 401");
    // The kernel buffers some megabytes on both sides.
    expect(socket.bytesWritten).toBeLessThan(32 * 1024 * 1024);
  });

  it("is not asked to continue", async () => {
    const { port } = await start({ apiKeys: ["test-key"] });
    const { socket, received } = await open(port);
    socket.write(
      "POST /v1/audio/transcriptions HTTP/1.1\r\nhost: x\r\nexpect: 100-continue\r\ncontent-length: 1000\r\n\r\n",
    );
    await vi.waitFor(() => expect(received()).toContain("401"));
    expect(received()).not.toContain("100 Continue");
    socket.destroy();
  });

  it("cannot keep connections open by sending headers or bodies slowly", async () => {
    const { port } = await start({ apiKeys: ["test-key"], headersTimeoutMs: 300, requestTimeoutMs: 600 });
    const slow = await open(port);
    slow.socket.write("GET /v1/models HTTP/1.1\r\nx-slow: ");
    const drip = setInterval(() => slow.socket.write("x"), 50);
    const body = await open(port);
    body.socket.write(
      "POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\nauthorization: Bearer test-key\r\ncontent-type: application/json\r\ncontent-length: 1000\r\n\r\n{",
    );
    await Promise.all([once(slow.socket, "close"), once(body.socket, "close")]);
    clearInterval(drip);
    expect(slow.received()).toContain("408");
  });

  it("cannot open more connections than the limit, nor send more headers", async () => {
    const connections = { total: 30, perAddress: 20 };
    const { port, url } = await start({ apiKeys: ["test-key"], connections });
    const sockets = await Promise.all(Array.from({ length: 20 }, () => open(port)));
    const extra = await open(port);
    await once(extra.socket, "close");
    expect(extra.received()).toContain("503");
    // Another address still has places.
    const other = connect({ port, host: "127.0.0.1", localAddress: "127.0.0.2" });
    other.write("GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n");
    expect((await other.toArray()).join("")).toContain("200 OK");
    for (const { socket } of sockets) socket.destroy();
    await vi.waitFor(async () => expect((await fetch(`${url}/healthz`)).status).toBe(200));
    const large = await send(`${url}/v1/models`, { "x-large": "x".repeat(20_000) });
    expect(large.status).toBe(431);
  });
});

// Attack: JSON bombs and prototype keys. What holds: depth and number of values are checked before
// parsing; look-ups by own keys.
describe("a JSON body", () => {
  const post = (url: string, body: string) =>
    send(
      `${url}/v1/chat/completions`,
      { authorization: "Bearer test-key", "content-type": "application/json" },
      { method: "POST", body },
    );

  it.each([
    ["nests deeply", `{"model":"sandbox/chat","messages":${"[".repeat(5_000_000)}`],
    [
      "nests deeply in an unknown field",
      `{"model":"sandbox/chat","messages":[{"role":"user","content":"x"}],"x":${"[".repeat(20_000)}${"]".repeat(20_000)}}`,
    ],
    ["has millions of values", `{"messages":[${"{},".repeat(5_000_000)}{}]}`],
  ])("that %s is refused before it is parsed", async (_, body) => {
    const { url } = await start({ apiKeys: ["test-key"] });
    const before = process.memoryUsage().heapUsed;
    const answer = await post(url, body);
    expect(answer.status).toBe(400);
    expect(answer.text).toContain("nested too deeply");
    expect(process.memoryUsage().heapUsed - before).toBeLessThan(200 * 1024 * 1024);
  });

  it("with prototype keys changes nothing", async () => {
    const { url } = await start({ apiKeys: ["test-key"] });
    const messages = '"messages":[{"role":"user","content":"hello"}]';
    const own = await post(url, `{"__proto__":{"model":"sandbox/chat"},${messages}}`);
    expect(own.status).toBe(400);
    expect(own.text).toContain("'model'");
    for (const model of ["__proto__", "constructor", "toString", "__proto__/x"])
      expect((await post(url, `{"model":"${model}",${messages}}`)).status).toBe(404);
    const polluting = `{"model":"sandbox/chat",${messages},"__proto__":{"polluted":1},"constructor":{"prototype":{"polluted":1}}}`;
    expect((await post(url, polluting)).status).toBe(200);
    expect(({} as Record<string, unknown>)["polluted"]).toBeUndefined();
  });
});

// Attack: Bodies of a key that hold the gateway's memory and do not arrive. What holds: a share for
// each key; while another key's wait, one has ten seconds.
describe("bodies of a key that do not arrive", () => {
  it("keep those of another waiting for ten seconds each at most, and it is told so", async () => {
    const clock = createManualClock();
    const { url, port } = await start({ apiKeys: ["mallory", "trudy", "ada"], clock });
    const post = (secret: string, length: number) =>
      `POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer ${secret}\r\nContent-Type: application/json\r\nContent-Length: ${length}\r\n\r\n{`;
    const slow = await Promise.all(
      ["mallory", "trudy"].map(async (secret) => {
        const socket = connect(port, "127.0.0.1").on("error", () => {});
        await once(socket, "connect");
        socket.write(post(secret, 30_000_000));
        return socket;
      }),
    );
    await expect.poll(() => clock.waiting()).toBe(1);
    const answers = slow.map(async (socket) => (await readToEnd(socket)).split("\r\n", 1)[0]);
    const content = `hello ${"x".repeat(20_000_000)}`;
    const asked = fetch(`${url}/v1/chat/completions`, {
      method: "POST",
      headers: { authorization: "Bearer ada", "content-type": "application/json" },
      body: JSON.stringify({ model: "sandbox", messages: [{ role: "user", content }] }),
    });
    const state = { isAnswered: false };
    void asked.finally(() => (state.isAnswered = true));
    for (let second = 0; second < 25 && !state.isAnswered; second += 1) await clock.advance(1000);
    expect((await asked).status).not.toBe(408);
    expect(await answers[0]).toContain("408");
    for (const socket of slow) socket.destroy();
    await Promise.all(answers);
  });
});
