import { afterEach, describe, expect, it } from "vitest";
import type { RequestTarget } from "../../../src/core/platform-module.ts";
import {
  type HttpServer,
  type PartReadiness,
  type Readiness,
  startHttpServer,
  toReadiness,
} from "../../../src/operations/http-server.ts";
import { createMetrics } from "../../../src/operations/metrics.ts";
import { createManualClock } from "../../support/manual-clock.ts";
import { silentLog } from "../../support/silent-log.ts";
import { systemClock } from "../../../src/support/clock.ts";
import { askRaw, openRaw, readToEnd, statusOf } from "./raw-request.ts";

let server: HttpServer | undefined;
afterEach(async () => {
  await server?.close();
  server = undefined;
});

/** Starts a server whose one handler serves every path and records what it is given. */
async function start(options: Partial<Parameters<typeof startHttpServer>[0]> = {}) {
  const targets: RequestTarget[] = [];
  const started = await startHttpServer({
    host: "127.0.0.1",
    port: 0,
    allowedHosts: [],
    metrics: createMetrics(),
    clock: systemClock,
    log: silentLog,
    readiness: () => Promise.resolve(toReadiness("0.0.0", {})),
    handlers: [
      (_request, response, target) => {
        targets.push(target);
        response.end("handled");
        return Promise.resolve(true);
      },
    ],
    ...options,
  });
  server = started;
  const own = `127.0.0.1:${new URL(started.url).port}`;
  const ask = async (line: string, host: string | undefined = own, more = "") =>
    statusOf(
      await askRaw(
        started.url,
        `${line} HTTP/1.1\r\n${host === undefined ? "" : `Host: ${host}\r\n`}${more}Connection: close\r\n\r\n`,
      ),
    );
  return { url: started.url, own, port: own.split(":")[1]!, targets, ask };
}

// Attack: A path that the guard and the router read differently.
describe("the request target", () => {
  it.each([
    "//x/api/state",
    "//",
    "///api/state",
    "/api//state",
    "/./api/state",
    "/api/./state",
    "/x/../api/state",
    "/api/..",
    "/%2e/api/state",
    "/api%2fstate",
    "/%61pi/state",
    "/api/state%00",
    "/\\x/api/state",
    "\\api\\state",
    "/api\\state",
    "http://127.0.0.1/api/state",
    "http://evil.example/api/state",
    "//evil.example@127.0.0.1/api/state",
    "@evil.example/api/state",
    "evil.example:80/api/state",
    "/api/state#x",
    "/api/state?a#b",
    "/api;\u00e9",
    "*",
    "?",
    "/metrics/../healthz",
    "//metrics",
    "//readyz",
    "http://127.0.0.1/metrics",
  ])("that has two readings is refused: %s", async (target) => {
    const { ask, targets } = await start();
    expect(await ask(`GET ${target}`)).toBe(400);
    expect(await ask(`POST ${target}`)).toBe(400);
    expect(targets).toEqual([]);
  });

  it("is not changed: another case and trailing dots are other paths", async () => {
    const { ask, targets } = await start();
    for (const path of ["/API/state", "/api./state", "/metrics.", "/Metrics", "/api/state/", "/a:b@c"])
      expect(await ask(`GET ${path}?x=%2e%2e&y=//`), path).toBe(200);
    expect(targets.map(({ path }) => path)).toEqual([
      "/API/state",
      "/api./state",
      "/metrics.",
      "/Metrics",
      "/api/state/",
      "/a:b@c",
    ]);
    expect(targets[0]?.query.get("x")).toBe("..");
  });

  it("of a CONNECT closes the connection", async () => {
    const { ask, targets } = await start();
    expect(await ask("CONNECT 127.0.0.1:80")).toBe(0);
    expect(targets).toEqual([]);
  });
});

describe("the Host header", () => {
  const paths = ["/healthz", "/readyz", "/metrics", "/api/state", "/"];

  // Attack: DNS rebinding, of the metrics too; two `Host` headers.
  it("of another name gets nothing, at any endpoint", async () => {
    const { ask, own, port, targets } = await start();
    const foreign = [
      `evil.example:${port}`,
      "127.0.0.1",
      "localhost:1",
      `localhost.:${port}`,
      `${own}@evil.example`,
      `evil.example@${own}`,
      `127.1:${port}`,
      `2130706433:${port}`,
      `0x7f000001:${port}`,
      `127.0.0.1:0${port}`,
      `127.0.0.1:${port}:80`,
      `192.168.1.1:${port}`,
      `127.0.0.1.nip.example:${port}`,
      `${own}, evil.example`,
      `${own}/x`,
      "",
    ];
    for (const host of foreign)
      for (const path of paths) expect(await ask(`GET ${path}`, host), `${path} of ${host}`).toBe(421);
    expect(targets).toEqual([]);
  });

  it("must be there once", async () => {
    const { url, own, targets } = await start();
    const twice = `GET /metrics HTTP/1.1\r\nHost: ${own}\r\nHost: evil.example\r\nConnection: close\r\n\r\n`;
    expect([400, 421]).toContain(statusOf(await askRaw(url, twice)));
    expect([400, 421]).toContain(statusOf(await askRaw(url, "GET / HTTP/1.1\r\nConnection: close\r\n\r\n")));
    expect([400, 421]).toContain(statusOf(await askRaw(url, "GET / HTTP/1.0\r\n\r\n")));
    const padded = `GET / HTTP/1.1\r\nHost: ${own}\r\n${"a:\r\n".repeat(2500)}Host: evil.example\r\nConnection: close\r\n\r\n`;
    expect([400, 421]).toContain(statusOf(await askRaw(url, padded)));
    expect(targets).toEqual([]);
  });

  it("may be a loopback name with the bound port, or a configured name", async () => {
    const { ask, port } = await start({ allowedHosts: ["parley:3000", "Chat.example.org"] });
    const hosts = [
      `127.0.0.1:${port}`,
      `localhost:${port}`,
      `LOCALHOST:${port}`,
      `[::1]:${port}`,
      "parley:3000",
      "chat.example.org",
    ];
    for (const host of hosts)
      for (const path of paths) expect(await ask(`GET ${path}`, host), `${path} of ${host}`).toBe(200);
    expect(await ask("GET /metrics", "parley:3001")).toBe(421);
  });

  it("may be an IP address on a public bind: a probe of a pod or a scraper by address", async () => {
    const { ask } = await start({ host: "0.0.0.0" });
    for (const host of ["10.1.2.3:3000", "[fe80::1]:3000", "localhost:8080"])
      for (const path of ["/readyz", "/metrics"]) expect(await ask(`GET ${path}`, host), host).toBe(200);
    for (const host of ["evil.example", "10.1.2.3.nip.example:3000", "parley:3000"])
      expect(await ask("GET /metrics", host), host).toBe(421);
  });
});

describe("the endpoints for operators", () => {
  it("are read only, and cannot be used by a page of another site", async () => {
    const { url, own, ask } = await start();
    for (const path of ["/healthz", "/readyz", "/metrics"]) {
      expect(await ask(`POST ${path}`, own, "Content-Length: 0\r\n")).toBe(405);
      const answer = await fetch(`${url}${path}`);
      expect(answer.headers.get("cross-origin-resource-policy")).toBe("same-origin");
      expect(answer.headers.get("x-content-type-options")).toBe("nosniff");
      expect(answer.headers.get("access-control-allow-origin")).toBeNull();
      await answer.text();
    }
  });

  it("ask the store once for all who ask at the same time", async () => {
    let checks = 0;
    const gate = Promise.withResolvers<Readiness>();
    const { url } = await start({
      readiness: () => {
        checks += 1;
        return gate.promise;
      },
    });
    const asked = Array.from({ length: 20 }, () => fetch(`${url}/readyz`));
    await expect.poll(() => checks).toBe(1);
    gate.resolve(toReadiness("0.0.0", { store: { status: "not-ready", problems: ["cannot be reached"] } }));
    for (const answer of await Promise.all(asked)) expect(answer.status).toBe(503);
    expect(checks).toBeLessThan(20);
  });
});

describe("/readyz", () => {
  const ready: PartReadiness = { status: "ready" };
  const warned: PartReadiness = { status: "ready", warnings: ["Redis lost its data"] };
  const degraded: PartReadiness = {
    status: "degraded",
    state: "unreachable",
    problems: ["does not respond"],
  };
  const missing: PartReadiness = { status: "not-ready", problems: ["cannot be reached"] };

  it.each([
    [{ store: ready, slack: ready }, 200, "ready"],
    [{ store: warned, slack: ready }, 200, "ready"],
    [{ store: ready, gateway: degraded }, 200, "degraded"],
    [{ store: missing, slack: ready }, 503, "not-ready"],
    [{ store: missing, gateway: degraded, slack: missing }, 503, "not-ready"],
  ] as const)("with %j answers %i and each part as JSON", async (parts, status, state) => {
    const { url } = await start({ readiness: async () => toReadiness("1.2.3", parts) });
    const answer = await fetch(`${url}/readyz`);
    expect(answer.status).toBe(status);
    expect(answer.headers.get("content-type")).toMatch(/^application\/json/);
    expect(await answer.json()).toEqual({ status: state, version: "1.2.3", parts });
  });
});

describe("/metrics", () => {
  // Attack: `GET /metrics` in a row, 188 kB, which took 10 s. What holds: the text is made at
  // most once a second.
  it("are as they were at most a second ago, however often they are asked for", async () => {
    let made = 0;
    const clock = createManualClock();
    const text = () => Promise.resolve({ body: `made ${(made += 1)}`, contentType: "text/plain" });
    const { url } = await start({ metrics: { ...createMetrics(), text }, clock });
    const read = async () => await (await fetch(`${url}/metrics`)).text();
    expect(await Promise.all([read(), read()])).toEqual(["made 1", "made 1"]);
    await clock.advance(999);
    expect(await read()).toBe("made 1");
    await clock.advance(1);
    expect(await read()).toBe("made 2");
  });
});

// Attack: Slow headers, silent connections, too many connections.
describe("a client that wants too much", () => {
  it("gets a 503 past the connections of one address, and a place when one is closed", async () => {
    const { url, ask } = await start({ connections: { total: 8, perAddress: 3 } });
    const idle = await Promise.all([1, 2, 3].map(() => openRaw(url, "GET /healthz HTTP/1.1\r\n")));
    const refused = await askRaw(url, "");
    expect(statusOf(refused)).toBe(503);
    expect(refused).toContain("Retry-After: 5");
    for (const socket of idle) socket.destroy();
    await expect.poll(() => ask("GET /healthz")).toBe(200);
  });

  it("is disconnected when its headers do not end, or never begin", async () => {
    const { url } = await start({ headersTimeoutMs: 200 });
    const slow = await openRaw(url, "GET /healthz HTTP/1.1\r\nX-A: ");
    const drip = setInterval(() => slow.write("a"), 50);
    const silent = await openRaw(url, "");
    const [answer] = await Promise.all([readToEnd(slow), readToEnd(silent)]);
    clearInterval(drip);
    expect([0, 408]).toContain(statusOf(answer));
  });

  it("gets a 431 for headers over 16 KiB", async () => {
    const { ask, own } = await start();
    expect(await ask("GET /", own, `X-A: ${"a".repeat(17 * 1024)}\r\n`)).toBe(431);
  });

  // Attack: Request smuggling.
  it("cannot hide a request in another one's body", async () => {
    const { url, own, targets } = await start();
    const smuggled = `GET /api/hidden HTTP/1.1\r\nHost: ${own}\r\n\r\n`;
    for (const framing of [
      `Content-Length: ${smuggled.length}\r\nTransfer-Encoding: chunked\r\n`,
      "Content-Length: 0\r\nContent-Length: 5\r\n",
      "Transfer-Encoding: chunked, identity\r\n",
      "Transfer-Encoding: xchunked\r\n",
    ]) {
      const socket = await openRaw(url, `POST / HTTP/1.1\r\nHost: ${own}\r\n${framing}\r\n${smuggled}`);
      const answer = await readToEnd(socket);
      expect([0, 400], framing).toContain(statusOf(answer));
    }
    expect(targets).toEqual([]);
  });

  it("does not keep the server from closing", async () => {
    const { url } = await start();
    const socket = await openRaw(url, "POST / HTTP/1.1\r\n");
    const ended = readToEnd(socket);
    await server?.close();
    server = undefined;
    expect(await ended).toBe("");
  });
});
