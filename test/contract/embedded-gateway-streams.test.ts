import { connect } from "node:net";
import { describe, expect, it, vi } from "vitest";
import { createEmbeddedGateway } from "../../src/embedded-gateway/embedded-gateway.ts";
import { parseGatewayConfig } from "../../src/embedded-gateway/gateway-config.ts";
import { createQuietLog } from "../support/quiet-log.ts";
import {
  bodyOf,
  key,
  messages,
  readRaw,
  startGateway,
  startServer,
  startUpstream,
  toAnswer,
  toEvent,
  usageEvent,
} from "./embedded-gateway-harness.ts";

describe("streams", () => {
  it.each(["whole", "bytes", "in-characters", "in-fields"] as const)(
    "are forwarded (split: %s)",
    async (cut) => {
      const body = [
        toEvent({ role: "assistant", content: "" }),
        toEvent({ content: "grüße " }),
        ": keep-alive\n\n",
        toEvent({ content: "🦊" }),
        toEvent({}, "stop"),
        usageEvent,
        "data: [DONE]\n\n",
      ].join("");
      const upstream = await startUpstream({ body, cut });
      const { client, url } = await startGateway({
        upstreams: { up: { baseUrl: `${upstream.baseUrl}/v1` } },
      });
      const whole = await client.chat.completions
        .stream({ model: "up/small", messages })
        .finalChatCompletion();
      expect(whole).toMatchObject({ model: "up/small" });
      expect(whole.choices[0]).toMatchObject({ finish_reason: "stop", message: { content: "grüße 🦊" } });
      expect(bodyOf(upstream.requests[0])["stream_options"]).toEqual({ include_usage: true });
      const { text } = await readRaw(url);
      expect(text).not.toContain('"usage"');
      expect((await readRaw(url, "up/small", { stream_options: { include_usage: true } })).text).toContain(
        '"usage"',
      );
    },
  );

  it("end with an error and without [DONE] when the upstream is interrupted", async () => {
    const upstream = await startUpstream({ body: toEvent({ content: "half" }), after: "break" });
    const { url } = await startGateway({
      upstreams: { up: { baseUrl: `${upstream.baseUrl}/v1`, retries: 2 } },
    });
    const { status, text } = await readRaw(url);
    expect(status).toBe(200);
    expect(text).toContain("half");
    expect(text).toMatch(/"code":"upstream_interrupted"\}\}\n\n$/);
    expect(text).not.toContain("[DONE]");
    expect(text).not.toContain('"finish_reason":"stop"');
    expect(upstream.requests).toHaveLength(1);
  });

  it("end with an error when the upstream ends without finish reason", async () => {
    const upstream = await startUpstream({ body: toEvent({ content: "half" }) });
    const { url } = await startGateway({ upstreams: { up: { baseUrl: `${upstream.baseUrl}/v1` } } });
    expect((await readRaw(url)).text).toContain("upstream_interrupted");
  });

  it("get a [DONE] after a finish reason alone", async () => {
    const upstream = await startUpstream({ body: toEvent({ content: "all" }) + toEvent({}, "length") });
    const { url } = await startGateway({ upstreams: { up: { baseUrl: `${upstream.baseUrl}/v1` } } });
    expect((await readRaw(url)).text).toMatch(/"finish_reason":"length".*\n\ndata: \[DONE\]\n\n$/s);
  });

  it("forward an error in the middle", async () => {
    const error = `data: ${JSON.stringify({ error: { message: "overloaded", code: 529 } })}\n\n`;
    const upstream = await startUpstream({
      body: toEvent({ content: "half" }) + error + toEvent({}, "stop"),
    });
    const { url } = await startGateway({ upstreams: { up: { baseUrl: `${upstream.baseUrl}/v1` } } });
    const { text } = await readRaw(url);
    expect(text).toMatch(/"message":"overloaded".*"code":"529"\}\}\n\n$/s);
    expect(text).not.toContain("[DONE]");
  });

  it("become an error status when the error comes first, or nothing", async () => {
    const bodies = [
      `data: ${JSON.stringify({ error: { message: "no room" } })}\n\n`,
      "",
      ": ping\n\n",
      "<html>",
      "data: {oops\n\n",
    ];
    const upstream = await startUpstream((_, index) => ({ body: bodies[index] ?? "" }));
    const { url } = await startGateway({ upstreams: { up: { baseUrl: `${upstream.baseUrl}/v1` } } });
    for (const body of bodies) {
      const { status, text } = await readRaw(url);
      expect([body, status]).toEqual([body, 502]);
      expect(JSON.parse(text)).toMatchObject({ error: { type: "upstream_error" } });
    }
  });

  it("are made from an answer that the upstream did not stream", async () => {
    const upstream = await startUpstream(toAnswer("whole"));
    const { client } = await startGateway({ upstreams: { up: { baseUrl: `${upstream.baseUrl}/v1` } } });
    const answer = await client.chat.completions
      .stream({ model: "up/small", messages })
      .finalChatCompletion();
    expect(answer.choices[0]).toMatchObject({ finish_reason: "stop", message: { content: "whole" } });
  });

  it("are kept alive by comments while the upstream is silent", async () => {
    const base = await startServer((request, response) => {
      request.resume();
      response.writeHead(200, { "content-type": "text/event-stream" });
      response.flushHeaders();
      setTimeout(() => response.end(toEvent({ content: "late" }, "stop") + "data: [DONE]\n\n"), 400);
    });
    const { url } = await startGateway({ upstreams: { up: { baseUrl: `${base}/v1` } } }, { pingMs: 50 });
    expect((await readRaw(url)).text).toMatch(/^: ping\n\n.*late.*\[DONE\]\n\n$/s);
  });

  it("abort the upstream when the client disconnects", async () => {
    const upstream = await startUpstream({ body: toEvent({ content: "first" }), after: "hang" });
    const { client } = await startGateway({ upstreams: { up: { baseUrl: `${upstream.baseUrl}/v1` } } });
    const stream = await client.chat.completions.create({ model: "up/small", messages, stream: true });
    for await (const chunk of stream) {
      expect(chunk.choices[0]?.delta.content).toBe("first");
      break;
    }
    expect(await upstream.requests[0]?.leftEarly).toBe(true);
  });

  it("abort the upstream when the client disconnects before the first event", async () => {
    const upstream = await startUpstream({ after: "hang" });
    const { client } = await startGateway({ upstreams: { up: { baseUrl: `${upstream.baseUrl}/v1` } } });
    const leave = new AbortController();
    const request = client.chat.completions.create(
      { model: "up/small", messages, stream: true },
      { signal: leave.signal },
    );
    await upstream.waitForRequests(1);
    leave.abort();
    await expect(request).rejects.toThrow();
    expect(await upstream.requests[0]?.leftEarly).toBe(true);
  });

  it("apply backpressure, and disconnect a client that does not read", async () => {
    let sent = 0;
    let isClosed = false;
    const event = toEvent({ content: "x".repeat(64 * 1024) });
    const base = await startServer((request, response) => {
      request.resume();
      response.writeHead(200, { "content-type": "text/event-stream" });
      response.once("close", () => (isClosed = true));
      const push = (): void => {
        while (!response.destroyed && sent < 1_000_000_000) {
          sent += event.length;
          if (!response.write(event)) return void response.once("drain", push);
        }
      };
      push();
    });
    const { url } = await startGateway(
      { upstreams: { up: { baseUrl: `${base}/v1` } } },
      { stalledClientMs: 500 },
    );
    // The limit fits the whole answer, so that only the client's reading limits it.
    const body = JSON.stringify({ model: "up/small", messages, stream: true, max_tokens: 100_000_000 });
    const socket = connect(Number(new URL(url).port), "127.0.0.1");
    socket.on("error", () => {});
    socket.pause();
    socket.write(
      `POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ${key}\r\ncontent-type: application/json\r\ncontent-length: ${body.length}\r\n\r\n${body}`,
    );
    await vi.waitFor(() => expect(isClosed).toBe(true), { timeout: 10_000 });
    // It is at most what the kernel buffers, and not all that the upstream sends.
    expect(sent).toBeLessThan(60_000_000);
    socket.destroy();
    const models = await fetch(`${url}/v1/models`, { headers: { authorization: `Bearer ${key}` } });
    expect(models.status).toBe(200);
  });
});

describe("stopping", () => {
  it("completes running requests and refuses new ones", async () => {
    const finish = Promise.withResolvers<void>();
    const base = await startServer((request, response) => {
      request.resume();
      response.writeHead(200, { "content-type": "text/event-stream" });
      response.write(toEvent({ content: "first" }));
      void finish.promise.then(() => response.end(toEvent({}, "stop") + "data: [DONE]\n\n"));
    });
    const gateway = createEmbeddedGateway({
      host: "127.0.0.1",
      port: 0,
      apiKeys: [key],
      log: createQuietLog(),
      config: parseGatewayConfig(JSON.stringify({ upstreams: { up: { baseUrl: base } } }), {}),
    });
    const { url } = await gateway.listen();
    const response = await fetch(`${url}/v1/chat/completions`, {
      method: "POST",
      headers: { authorization: `Bearer ${key}`, "content-type": "application/json" },
      body: JSON.stringify({ model: "up/small", messages, stream: true }),
    });
    let isClosed = false;
    const closing = gateway.close().then(() => (isClosed = true));
    await expect(fetch(`${url}/v1/models`)).rejects.toThrow();
    await new Promise((resolve) => setImmediate(resolve));
    expect(isClosed).toBe(false);
    finish.resolve();
    expect(await response.text()).toContain("[DONE]");
    await closing;
  });
});
