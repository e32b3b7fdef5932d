import { describe, expect, it, vi } from "vitest";
import {
  key,
  messages,
  readRaw,
  startGateway,
  startServer,
  startUpstream,
  toAnswer,
  toError,
  toEvent,
} from "./embedded-gateway-harness.ts";

/**
 * These tests do what an upstream can do to the gateway. An unhandled rejection or error event anywhere fails
 * the run, as it would end the process of `npm run gateway`.
 */

const json = { "content-type": "application/json" };

async function isServing(url: string): Promise<boolean> {
  const response = await fetch(`${url}/v1/models`, { headers: { authorization: `Bearer ${key}` } });
  return response.status === 200;
}

async function ask(url: string, change: object = {}): Promise<{ status: number; body: unknown }> {
  const response = await fetch(`${url}/v1/chat/completions`, {
    method: "POST",
    headers: { authorization: `Bearer ${key}`, ...json },
    body: JSON.stringify({ model: "up/small", messages, ...change }),
  });
  return { status: response.status, body: await response.json() };
}

describe("a stream that fails while its client is gone", () => {
  it("does not end the process", async () => {
    const upstream = await startUpstream({
      body: toEvent({ content: "first" }) + toEvent({ content: "x".repeat(4_000_000) }) + "data: {oops\n\n",
      cut: "whole",
    });
    const { url } = await startGateway({ upstreams: { up: { baseUrl: `${upstream.baseUrl}/v1` } } });
    for (let index = 0; index < 10; index += 1) {
      const leave = new AbortController();
      const response = await fetch(`${url}/v1/chat/completions`, {
        method: "POST",
        headers: { authorization: `Bearer ${key}`, ...json },
        body: JSON.stringify({ model: "up/small", messages, stream: true, max_tokens: 1_000_000 }),
        signal: leave.signal,
      });
      await response.body?.getReader().read();
      leave.abort();
    }
    expect(await isServing(url)).toBe(true);
  });
});

describe("a stream without an end of its lines", () => {
  it.each([
    ["lines of one event", "data:x\n"],
    ["JSON in lines of one event", "data:{}\n"],
    ["comments", ":\n"],
    ["lines that are no field", "x\n"],
  ])("of %s is refused, and others are served meanwhile", async (_, line) => {
    let written = 0;
    const many = line.repeat(Math.ceil(60_000 / line.length));
    const base = await startServer((request, response) => {
      request.resume();
      response.writeHead(200, { "content-type": "text/event-stream" });
      const push = (): void => {
        while (!response.destroyed && written < 200_000_000) {
          written += many.length;
          if (!response.write(many)) return void response.once("drain", push);
        }
        response.end("\n\n");
      };
      push();
    });
    const { url } = await startGateway({ upstreams: { up: { baseUrl: `${base}/v1`, retries: 0 } } });
    const refused = ask(url, { stream: true });
    expect(await isServing(url)).toBe(true);
    expect(await refused).toMatchObject({ status: 502, body: { error: { type: "upstream_error" } } });
    expect(written).toBeLessThan(100_000_000);
  });
});

describe("headers of an upstream", () => {
  it("that cannot be forwarded are left out", async () => {
    const base = await startServer((request, response) => {
      request.resume();
      request.once("end", () => {
        // This is raw, since Node would not send such headers.
        const body = request.url === "/v1/chat/completions" ? '{"error":{"message":"busy"}}' : "{}";
        response.socket?.end(
          `HTTP/1.1 429 Busy\r\nretry-after: \u20ac\r\nx-request-id: \u20ac\u0001\r\ncontent-length: ${body.length}\r\n\r\n${body}`,
        );
      });
    });
    const { url } = await startGateway({ upstreams: { up: { baseUrl: `${base}/v1` } } });
    expect((await ask(url)).status).toBeGreaterThanOrEqual(429);
    expect(await isServing(url)).toBe(true);
  });

  // Attack: Have a browser run an upstream's answer. What holds: only text types pass, `nosniff`.
  it("do not make a browser run its answer", async () => {
    const upstream = await startUpstream({
      headers: { "content-type": "text/html" },
      body: "<script>alert(1)</script>",
    });
    const { url } = await startGateway({ upstreams: { up: { baseUrl: `${upstream.baseUrl}/v1` } } });
    const form = new FormData();
    form.set("model", "up/small");
    form.set("file", new Blob(["sound"]), "a.ogg");
    const response = await fetch(`${url}/v1/audio/transcriptions`, {
      method: "POST",
      headers: { authorization: `Bearer ${key}` },
      body: form,
    });
    expect(response.headers.get("content-type")).toBe("text/plain; charset=utf-8");
    expect(response.headers.get("x-content-type-options")).toBe("nosniff");
  });

  it("may not be larger than 16 KiB", async () => {
    const upstream = await startUpstream({
      headers: { ...json, "x-large": "x".repeat(40_000) },
      body: toAnswer("x").body ?? "",
    });
    const { url } = await startGateway({ upstreams: { up: { baseUrl: `${upstream.baseUrl}/v1` } } });
    expect((await ask(url)).status).toBe(502);
  });
});

// Attack: Fill memory with an endless answer, event, header, error, list or redirect. What holds:
// bounds of `max_tokens` and fixed caps; the request is ended, and the answer says so.
describe("an endless answer", () => {
  it("ends with an error, and the upstream's request ends", async () => {
    const maxBytes = 130_000_000;
    let isClosed = false;
    let sent = 0;
    const base = await startServer((request, response) => {
      request.resume();
      response.writeHead(200, { "content-type": "text/event-stream" });
      response.once("close", () => (isClosed = true));
      const event = toEvent({ content: "x".repeat(20_000) });
      const push = (): void => {
        while (!response.destroyed) {
          sent += event.length;
          if (!response.write(event)) return void response.once("drain", push);
        }
      };
      push();
    });
    const { url } = await startGateway({ upstreams: { up: { baseUrl: `${base}/v1` } } });
    const { text } = await readRaw(url, "up/small", { max_tokens: 1024 });
    expect(text.slice(-500)).toMatch(/upstream_too_large[^\n]*\n\n$/);
    expect(text.length).toBeLessThan(maxBytes);
    await vi.waitFor(() => expect(isClosed).toBe(true));
    // What the sockets buffer comes on top.
    expect(sent).toBeLessThan(maxBytes + 40_000_000);
  });

  it("in one event is refused, or ends with an error once text was sent", async () => {
    let isFirst = true;
    const base = await startServer((request, response) => {
      request.resume();
      response.writeHead(200, { "content-type": "text/event-stream" });
      if (!isFirst) response.write(toEvent({ content: "first" }));
      isFirst = false;
      response.write("data: ");
      const chunk = Buffer.alloc(1024 * 1024, "x");
      const push = (): void => {
        while (!response.destroyed) if (!response.write(chunk)) return void response.once("drain", push);
      };
      push();
    });
    const { url } = await startGateway({ upstreams: { up: { baseUrl: `${base}/v1` } } });
    const refused = await readRaw(url);
    expect(refused.status).toBe(502);
    expect(refused.text).toContain("upstream_too_large");
    const ended = await readRaw(url);
    expect(ended.text).toMatch(/first.*upstream_too_large[^\n]*\n\n$/s);
  }, 20_000);

  it("that is not streamed is refused", async () => {
    const upstream = await startUpstream(toAnswer("x".repeat(66_000_000)));
    const { url } = await startGateway({
      upstreams: { up: { baseUrl: `${upstream.baseUrl}/v1`, retries: 0 } },
    });
    expect((await ask(url, { max_tokens: 10 })).status).toBe(502);
  });

  it.each([
    ["nests deeply", `{"choices":${"[".repeat(3_000_000)}`],
    ["has millions of values", `{"choices":[${"{},".repeat(5_000_000)}{}]}`],
  ])("that %s is refused before it is parsed", async (_, body) => {
    const upstream = await startUpstream({ headers: json, body });
    const { url } = await startGateway({ upstreams: { up: { baseUrl: `${upstream.baseUrl}/v1` } } });
    expect((await ask(url)).status).toBe(502);
    expect((await readRaw(url)).status).toBe(502);
  });

  it("in an error, a redirect or a model list is bounded", async () => {
    const large = "x".repeat(5_000_000);
    const models = Array.from({ length: 20_000 }, (_, index) => ({ id: `m${index}` }));
    const upstream = await startUpstream(({ path }, index) =>
      path === "/v1/models"
        ? { headers: json, body: JSON.stringify({ data: models }) }
        : index % 2 === 0
          ? toError(500, large)
          : { status: 302, headers: { location: "http://127.0.0.1:1/" }, body: large },
    );
    const { url } = await startGateway({
      upstreams: { up: { baseUrl: `${upstream.baseUrl}/v1`, models: undefined } },
    });
    for (let index = 0; index < 2; index += 1) {
      const { status, body } = await ask(url);
      expect(status).toBeGreaterThanOrEqual(500);
      expect(JSON.stringify(body).length).toBeLessThan(5000);
    }
    const list = await fetch(`${url}/v1/models`, { headers: { authorization: `Bearer ${key}` } });
    expect(((await list.json()) as { data: unknown[] }).data).toHaveLength(5000);
  });
});
