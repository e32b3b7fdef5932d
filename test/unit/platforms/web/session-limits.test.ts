import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { afterEach, describe, expect, it } from "vitest";
import { z } from "zod";
import { readBody } from "../../../../src/platforms/web/http.ts";
import { defaultSessionLimits } from "../../../../src/platforms/web/api-context.ts";
import { askRaw, openRaw, readToEnd, statusOf } from "../../operations/raw-request.ts";
import type { SnapshotView } from "../../../../src/platforms/web/views.ts";
import { storedMessage } from "./fake-receiver.ts";
import { followEvents, startPageServer, type PageServer } from "./page-server.ts";

const path = `/api/conversations/${"c".repeat(24)}`;

let server: PageServer | undefined;
afterEach(async () => {
  await server?.close();
  server = undefined;
});

describe("a session", () => {
  // Attack: Streams, requests and downloads without end.
  it("may have so many event streams, and another one when one has ended", async () => {
    server = await startPageServer({ limits: { ...defaultSessionLimits, streamsPerSession: 2 } });
    const { ask, host } = server;
    const first = await followEvents(host, `${path}/events`);
    await followEvents(host, `${path}/events`);
    const refused = await ask(`${path}/events`);
    expect([refused.status, refused.headers["retry-after"]]).toEqual([429, "10"]);
    await first.until(() => true);
    await expect
      .poll(async () => {
        const response = await fetch(`http://${host}${path}/events`);
        await response.body?.cancel();
        return response.status;
      })
      .toBe(200);
  });

  it("opens a chat of 8 million characters, one at a time where nobody reads", async () => {
    server = await startPageServer();
    const { host, receiver } = server;
    const text = "é".repeat(50_000);
    receiver.stored.set(
      `web:${"c".repeat(24)}`,
      Array.from({ length: 160 }, (_, n) => storedMessage(`m${n}`, "user", text)),
    );
    const { until } = await followEvents(host, `${path}/events?max=2000`);
    const [snapshot] = await until((events) => events.length > 0);
    expect((snapshot!.data as SnapshotView).items).toHaveLength(160);
    const stalled = await openRaw(
      `http://${host}`,
      `GET ${path}/events?max=2000 HTTP/1.1\r\nHost: ${host}\r\n\r\n`,
    );
    stalled.pause();
    await expect.poll(() => stalled.bytesRead).toBeGreaterThan(0);
    // Another window waits for the memory.
    let isAnswered = false;
    const waiting = followEvents(host, `${path}/events?max=2000`).finally(() => (isAnswered = true));
    expect((await server.ask("/api/state")).status).toBe(200);
    expect(isAnswered).toBe(false);
    stalled.destroy();
    await (await waiting).until(() => true);
  });

  it("may make so many requests a minute", async () => {
    server = await startPageServer({ limits: { ...defaultSessionLimits, requestsPerMinute: 3 } });
    const { ask } = server;
    for (let index = 0; index < 3; index++) expect((await ask("/api/state")).status).toBe(200);
    const refused = await ask("/api/state");
    expect(refused.status).toBe(429);
    expect(Number(refused.headers["retry-after"])).toBeLessThanOrEqual(20);
    expect(JSON.stringify(refused.json())).toContain("Too many requests. Try again in");
    expect((await ask("/")).status).toBe(200);
  });

  it("may have so many files sent at once; the others wait, also for clients that do not read", async () => {
    server = await startPageServer({
      limits: { ...defaultSessionLimits, filesPerSession: 1 },
      maxFileBytes: 20_000_000,
    });
    const { ask, host } = server;
    const uploaded = await ask("/api/uploads?name=a", {
      method: "POST",
      headers: { "x-parley": "1" },
      body: new Uint8Array(20_000_000),
    });
    const file = `/api/uploads/${String(uploaded.json()["id"])}`;
    const request = `GET ${file} HTTP/1.1\r\nHost: ${host}\r\n\r\n`;
    const stalled = await openRaw(`http://${host}`, request);
    stalled.pause();
    await expect.poll(() => stalled.bytesRead).toBeGreaterThan(0);
    let isAnswered = false;
    const waiting = ask(file).finally(() => (isAnswered = true));
    expect((await ask("/api/state")).status).toBe(200);
    expect(isAnswered).toBe(false);
    stalled.destroy();
    expect((await waiting).status).toBe(200);
  });
});

describe("a stranger, before the login", () => {
  it("cannot send a large login", async () => {
    server = await startPageServer({ password: "correct horse" });
    const answer = await server.askAsPage("POST", "/api/login", { password: "a".repeat(5000) });
    expect(answer.status).toBe(413);
  });

  // Attack: A slow body before the login.
  it("is disconnected when the body of a login does not come", async () => {
    const server = createServer((request, response) => {
      void readBody(request, z.object({}), { timeoutMs: 50 }).catch(() => response.destroy());
    });
    server.listen(0, "127.0.0.1");
    await once(server, "listening");
    const { port } = server.address() as AddressInfo;
    const socket = await openRaw(
      `http://127.0.0.1:${port}`,
      "POST / HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nContent-Length: 9\r\n\r\n{",
    );
    expect(await readToEnd(socket)).toBe("");
    server.close();
  });

  it("cannot pass by the login with another form of a path", async () => {
    server = await startPageServer({ password: "correct horse" });
    const { host } = server;
    for (const target of ["//x/api/state", "/./api/state", "/%61pi/state", `http://${host}/api/state`]) {
      const answer = await askRaw(
        `http://${host}`,
        `GET ${target} HTTP/1.1\r\nHost: ${host}\r\nConnection: close\r\n\r\n`,
      );
      expect(statusOf(answer), target).toBe(400);
    }
  });

  it("cannot pass by the check of the origin with another form of a path", async () => {
    server = await startPageServer();
    const { host } = server;
    for (const target of ["//x/api/state", "/x/../api/state", "/api\\state"]) {
      const answer = await askRaw(
        `http://${host}`,
        `GET ${target} HTTP/1.1\r\nHost: ${host}\r\nOrigin: https://evil.example\r\nConnection: close\r\n\r\n`,
      );
      expect(statusOf(answer), target).toBe(400);
    }
  });

  it("is disconnected when an upload's announced bytes do not come before the login", async () => {
    server = await startPageServer({ password: "correct horse" });
    const { host } = server;
    const socket = await openRaw(
      `http://${host}`,
      `POST /api/uploads HTTP/1.1\r\nHost: ${host}\r\nX-Parley: 1\r\nContent-Length: 25000000\r\nConnection: close\r\n\r\nx`,
    );
    expect(statusOf(await readToEnd(socket))).toBe(401);
  });
});
