import { once } from "node:events";
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import { connect, type AddressInfo } from "node:net";
import OpenAI, { toFile } from "openai";
import { afterEach, describe, expect, it, vi } from "vitest";
import {
  createEmbeddedGateway,
  type EmbeddedGatewayOptions,
} from "../../src/embedded-gateway/embedded-gateway.ts";
import { parseGatewayConfig } from "../../src/embedded-gateway/gateway-config.ts";
import { fixture } from "../fixtures/fixtures.ts";
import {
  startScriptedGateway,
  type ScriptedAnswer,
  type SeenRequest,
} from "../simulators/gateway/scripted-gateway.ts";
import { createQuietLog } from "../unit/embedded-gateway/quiet-log.ts";

const key = "test-key";
const closers: (() => Promise<unknown>)[] = [];

afterEach(async () => {
  for (const close of closers.splice(0).toReversed()) await close();
});

type Script = (request: SeenRequest, index: number) => ScriptedAnswer;

async function startUpstream(script: Script | ScriptedAnswer) {
  const upstream = await startScriptedGateway(script, { apiKey: "upstream-key" });
  closers.push(() => upstream.close());
  return upstream;
}

/** An upstream whose handler has the socket in its hands. */
async function startServer(
  handle: (request: IncomingMessage, response: ServerResponse) => void,
): Promise<string> {
  const server: Server = createServer(handle).listen(0, "127.0.0.1");
  await once(server, "listening");
  closers.push(async () => {
    server.closeAllConnections();
    server.close();
    await once(server, "close");
  });
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

interface Settings {
  readonly upstreams: Readonly<Record<string, object>>;
  readonly aliases?: object;
  readonly fallbacks?: object;
}

async function startGateway(settings: Settings, options: Partial<EmbeddedGatewayOptions> = {}) {
  const upstreams = Object.fromEntries(
    Object.entries(settings.upstreams).map(([prefix, upstream]) => [
      prefix,
      { apiKeyEnv: "UP_KEY", retries: 0, models: ["small", "org/large"], ...upstream },
    ]),
  );
  const gateway = createEmbeddedGateway({
    host: "127.0.0.1",
    port: 0,
    apiKeys: [key],
    log: createQuietLog(),
    config: parseGatewayConfig(JSON.stringify({ ...settings, upstreams }), { UP_KEY: "upstream-key" }),
    ...options,
  });
  const { url } = await gateway.listen();
  closers.push(() => gateway.close());
  return { url, client: new OpenAI({ apiKey: key, baseURL: `${url}/v1`, maxRetries: 0 }) };
}

const messages: OpenAI.Chat.ChatCompletionMessageParam[] = [{ role: "user", content: "hello" }];

function toAnswer(text: string, extra: object = {}): ScriptedAnswer {
  const body = {
    id: "x1",
    object: "chat.completion",
    created: 1,
    model: "small-2026-01-01",
    choices: [{ index: 0, message: { role: "assistant", content: text }, finish_reason: "stop" }],
    usage: { prompt_tokens: 3, completion_tokens: 2, total_tokens: 5 },
    ...extra,
  };
  return {
    headers: { "content-type": "application/json", "x-request-id": "theirs" },
    body: JSON.stringify(body),
  };
}

function toEvent(delta: object, finish: string | null = null): string {
  const choices = [{ index: 0, delta, finish_reason: finish }];
  return `data: ${JSON.stringify({ id: "x1", object: "chat.completion.chunk", model: "small-2026", choices })}\n\n`;
}

const usageEvent = `data: ${JSON.stringify({ id: "x1", object: "chat.completion.chunk", model: "small-2026", choices: [], usage: { prompt_tokens: 3, completion_tokens: 2, total_tokens: 5 } })}\n\n`;

function toError(status: number, message: string, headers: Record<string, string> = {}): ScriptedAnswer {
  return {
    status,
    headers: { "content-type": "application/json", ...headers },
    body: JSON.stringify({ error: { message, type: "some_error", param: null, code: "some_code" } }),
  };
}

/** The raw text of a stream, so that what the client library hides is seen. */
async function readRaw(
  url: string,
  model = "up/small",
  extra: object = {},
): Promise<{ status: number; text: string }> {
  const response = await fetch(`${url}/v1/chat/completions`, {
    method: "POST",
    headers: { authorization: `Bearer ${key}`, "content-type": "application/json" },
    body: JSON.stringify({ model, messages, stream: true, ...extra }),
  });
  return { status: response.status, text: await response.text() };
}

function bodyOf(request: SeenRequest | undefined): Record<string, unknown> {
  return JSON.parse(request?.body.toString("utf8") ?? "null") as Record<string, unknown>;
}

describe("routing", () => {
  it("splits at the first slash, and answers with the public id", async () => {
    const upstream = await startUpstream(toAnswer("hi"));
    const { client } = await startGateway({ upstreams: { up: { baseUrl: `${upstream.baseUrl}/v1/` } } });
    const answer = await client.chat.completions.create({ model: "up/org/large", messages, seed: 7 });
    expect(answer).toMatchObject({ model: "up/org/large", usage: { total_tokens: 5 } });
    expect(answer.choices[0]?.message.content).toBe("hi");
    expect(bodyOf(upstream.requests[0])).toEqual({
      model: "org/large",
      messages,
      seed: 7,
      max_tokens: 1024,
      temperature: 1,
      stream: false,
    });
  });

  it("carries the request id through and back", async () => {
    const upstream = await startUpstream(toAnswer("hi"));
    const { url } = await startGateway({ upstreams: { up: { baseUrl: `${upstream.baseUrl}/v1` } } });
    const response = await fetch(`${url}/v1/chat/completions`, {
      method: "POST",
      headers: {
        authorization: `Bearer ${key}`,
        "content-type": "application/json",
        "x-request-id": "mine-1",
      },
      body: JSON.stringify({ model: "up/small", messages }),
    });
    await response.text();
    expect(response.headers.get("x-request-id")).toBe("mine-1");
    expect(response.headers.get("x-upstream-request-id")).toBe("theirs");
    expect(upstream.requests[0]?.headers).toMatchObject({
      "x-request-id": "mine-1",
      authorization: "Bearer upstream-key",
    });
  });

  it("knows aliases and says which model answered", async () => {
    const upstream = await startUpstream(toAnswer("hi"));
    const { client } = await startGateway({
      upstreams: { up: { baseUrl: `${upstream.baseUrl}/v1` } },
      aliases: { fast: "up/small", toy: "sandbox/chat" },
    });
    expect((await client.chat.completions.create({ model: "fast", messages })).model).toBe("up/small");
    expect((await client.chat.completions.create({ model: "toy", messages })).model).toBe("sandbox/chat");
    expect((await client.models.list()).data.map(({ id }) => id)).toEqual([
      "fast",
      "toy",
      "sandbox/chat",
      "sandbox/image",
      "sandbox/transcribe",
      "up/small",
      "up/org/large",
    ]);
  });

  it("refuses what is not listed, names near misses, and keeps models to their kind", async () => {
    const upstream = await startUpstream(toAnswer("hi"));
    const models = ["small", { id: "draw", capabilities: ["images"] }];
    const { client } = await startGateway({
      upstreams: { up: { baseUrl: `${upstream.baseUrl}/v1`, models } },
    });
    const ask = (model: string) => client.chat.completions.create({ model, messages });
    await expect(ask("up/other")).rejects.toMatchObject({ status: 404, param: "model" });
    await expect(ask("else/small")).rejects.toMatchObject({ status: 404, param: "model" });
    await expect(ask("UP/Small")).rejects.toThrow("Did you mean 'up/small'?");
    await expect(ask("small")).rejects.toThrow("Did you mean 'up/small'?");
    await expect(ask("up/draw")).rejects.toMatchObject({ status: 400, code: "model_not_supported" });
    expect(upstream.requests).toHaveLength(0);
  });

  it("merges the upstreams' own lists, asked for once, and survives one that is down", async () => {
    const list = {
      object: "list",
      data: [{ id: "a", object: "model", created: 5, owned_by: "them", context_length: 9 }, { id: "b" }],
    };
    const up = await startUpstream({
      headers: { "content-type": "application/json" },
      body: JSON.stringify(list),
    });
    const { client } = await startGateway({
      upstreams: {
        up: { baseUrl: `${up.baseUrl}/v1`, models: undefined },
        down: { baseUrl: "http://127.0.0.1:9/v1", models: undefined },
      },
    });
    const { data } = await client.models.list();
    expect(data.slice(3)).toEqual([
      { id: "up/a", object: "model", created: 5, owned_by: "them", context_length: 9 },
      { id: "up/b", object: "model", created: expect.any(Number) as number, owned_by: "up" },
    ]);
    await client.models.list();
    expect(up.requests).toHaveLength(1);
  });
});

describe("streams", () => {
  it.each(["whole", "bytes", "in-characters", "in-fields"] as const)(
    "pass through (cut: %s)",
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

  it("end with an error and no [DONE] when the upstream breaks off", async () => {
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

  it("get their [DONE] where only the finish reason came", async () => {
    const upstream = await startUpstream({ body: toEvent({ content: "all" }) + toEvent({}, "length") });
    const { url } = await startGateway({ upstreams: { up: { baseUrl: `${upstream.baseUrl}/v1` } } });
    expect((await readRaw(url)).text).toMatch(/"finish_reason":"length".*\n\ndata: \[DONE\]\n\n$/s);
  });

  it("pass an error on that comes in the middle", async () => {
    const error = `data: ${JSON.stringify({ error: { message: "overloaded", code: 529 } })}\n\n`;
    const upstream = await startUpstream({
      body: toEvent({ content: "half" }) + error + toEvent({}, "stop"),
    });
    const { url } = await startGateway({ upstreams: { up: { baseUrl: `${upstream.baseUrl}/v1` } } });
    const { text } = await readRaw(url);
    expect(text).toMatch(/"message":"overloaded".*"code":"529"\}\}\n\n$/s);
    expect(text).not.toContain("[DONE]");
  });

  it("become an error status where the error comes first, or nothing", async () => {
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

  it("are made of a whole answer where the upstream does not stream", async () => {
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

  it("abort the upstream when the client leaves", async () => {
    const upstream = await startUpstream({ body: toEvent({ content: "first" }), after: "hang" });
    const { client } = await startGateway({ upstreams: { up: { baseUrl: `${upstream.baseUrl}/v1` } } });
    const stream = await client.chat.completions.create({ model: "up/small", messages, stream: true });
    for await (const chunk of stream) {
      expect(chunk.choices[0]?.delta.content).toBe("first");
      break;
    }
    expect(await upstream.requests[0]?.leftEarly).toBe(true);
  });

  it("abort the upstream when the client leaves before the first event", async () => {
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

  it("wait for a client that reads slowly, and cut one off that does not read at all", async () => {
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
    const body = JSON.stringify({ model: "up/small", messages, stream: true });
    const socket = connect(Number(new URL(url).port), "127.0.0.1");
    socket.on("error", () => {});
    socket.pause();
    socket.write(
      `POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ${key}\r\ncontent-type: application/json\r\ncontent-length: ${body.length}\r\n\r\n${body}`,
    );
    await vi.waitFor(() => expect(isClosed).toBe(true), { timeout: 10_000 });
    // What the kernel's buffers hold, and not what the upstream had to give.
    expect(sent).toBeLessThan(60_000_000);
    socket.destroy();
    const models = await fetch(`${url}/v1/models`, { headers: { authorization: `Bearer ${key}` } });
    expect(models.status).toBe(200);
  });
});

describe("failures before the first byte", () => {
  it("are tried again, then told with the upstream's status and Retry-After", async () => {
    const upstream = await startUpstream((_, index) =>
      index === 0 ? toError(503, "busy") : toAnswer("second"),
    );
    const { client } = await startGateway({
      upstreams: { up: { baseUrl: `${upstream.baseUrl}/v1`, retries: 1 } },
    });
    const answer = await client.chat.completions.create({ model: "up/small", messages });
    expect(answer.choices[0]?.message.content).toBe("second");

    const busy = await startUpstream(toError(429, "slow down", { "retry-after": "7" }));
    const { url } = await startGateway({ upstreams: { up: { baseUrl: `${busy.baseUrl}/v1`, retries: 3 } } });
    const response = await fetch(`${url}/v1/chat/completions`, {
      method: "POST",
      headers: { authorization: `Bearer ${key}`, "content-type": "application/json" },
      body: JSON.stringify({ model: "up/small", messages }),
    });
    expect(response.status).toBe(429);
    expect(response.headers.get("retry-after")).toBe("7");
    expect(await response.json()).toEqual({
      error: { message: "slow down", type: "some_error", param: null, code: "some_code" },
    });
    // Seven seconds are the client's to wait.
    expect(busy.requests).toHaveLength(1);
  });

  it.each([false, true])(
    "go to the fallback, which is named as the answer's model (stream: %s)",
    async (stream) => {
      const broken = await startUpstream(toError(500, "broken"));
      const body = toEvent({ content: "saved" }) + toEvent({}, "stop") + "data: [DONE]\n\n";
      const well = await startUpstream(stream ? { body } : toAnswer("saved"));
      const { client } = await startGateway({
        upstreams: {
          up: { baseUrl: `${broken.baseUrl}/v1` },
          down: { baseUrl: "http://127.0.0.1:9/v1" },
          well: { baseUrl: `${well.baseUrl}/v1` },
        },
        fallbacks: { "up/small": ["down/small", "well/org/large"] },
      });
      const request = { model: "up/small", messages };
      const answer = stream
        ? await client.chat.completions.stream(request).finalChatCompletion()
        : await client.chat.completions.create(request);
      expect(answer.model).toBe("well/org/large");
      expect(answer.choices[0]?.message.content).toBe("saved");
      expect([broken.requests.length, well.requests.length]).toEqual([1, 1]);
    },
  );

  it("are not passed to a fallback where the request itself is at fault", async () => {
    const strict = await startUpstream(toError(400, "too long"));
    const well = await startUpstream(toAnswer("saved"));
    const { client } = await startGateway({
      upstreams: { up: { baseUrl: `${strict.baseUrl}/v1` }, well: { baseUrl: `${well.baseUrl}/v1` } },
      fallbacks: { "up/small": ["well/small"] },
    });
    await expect(client.chat.completions.create({ model: "up/small", messages })).rejects.toMatchObject({
      status: 400,
    });
    expect(well.requests).toHaveLength(0);
  });

  it("never tell a client that its key is wrong when it is the gateway's", async () => {
    const upstream = await startUpstream(toError(401, "Incorrect API key provided: upstream-key"));
    const { client } = await startGateway({ upstreams: { up: { baseUrl: `${upstream.baseUrl}/v1` } } });
    const failure = client.chat.completions.create({ model: "up/small", messages });
    await expect(failure).rejects.toMatchObject({ status: 502, code: "upstream_unauthorized" });
    await expect(failure).rejects.not.toThrow("upstream-key");
  });

  it("name an upstream that is not there", async () => {
    const { client } = await startGateway({ upstreams: { up: { baseUrl: "http://127.0.0.1:9/v1" } } });
    await expect(client.chat.completions.create({ model: "up/small", messages })).rejects.toMatchObject({
      status: 502,
      code: "upstream_unreachable",
    });
  });
});

describe("images and audio", () => {
  it("generates images, with a url in each item", async () => {
    const png = Buffer.from(await fixture("picture.png"));
    const body = JSON.stringify({
      created: 7,
      data: [{ b64_json: png.toString("base64") }, { url: "https://example.com/a.png" }],
    });
    const upstream = await startUpstream({ headers: { "content-type": "application/json" }, body });
    const { client } = await startGateway({ upstreams: { up: { baseUrl: `${upstream.baseUrl}/v1` } } });
    const { data = [] } = await client.images.generate({ model: "up/small", prompt: "a fox", n: 2 });
    expect(bodyOf(upstream.requests[0])).toEqual({ model: "small", prompt: "a fox", n: 2 });
    expect(data[1]?.url).toBe("https://example.com/a.png");
    const shelved = await fetch(data[0]?.url ?? "");
    expect(Buffer.from(await shelved.arrayBuffer()).equals(png)).toBe(true);
  });

  it("does not bill an image twice", async () => {
    const upstream = await startUpstream({ answers: false });
    const { client } = await startGateway({
      upstreams: { up: { baseUrl: `${upstream.baseUrl}/v1`, retries: 3 } },
    });
    await expect(client.images.generate({ model: "up/small", prompt: "a fox" })).rejects.toMatchObject({
      status: 502,
    });
    expect(upstream.requests).toHaveLength(1);
  });

  it("sends its own pictures on as data, since no upstream could fetch them", async () => {
    const upstream = await startUpstream(toAnswer("a fox"));
    const { client } = await startGateway({ upstreams: { up: { baseUrl: `${upstream.baseUrl}/v1` } } });
    const { data = [] } = await client.images.generate({
      model: "sandbox/image",
      prompt: "a fox",
      size: "64x64",
    });
    const content: OpenAI.Chat.ChatCompletionContentPart[] = [
      { type: "image_url", image_url: { url: data[0]?.url ?? "" } },
    ];
    await client.chat.completions.create({ model: "up/small", messages: [{ role: "user", content }] });
    expect(upstream.requests[0]?.body.toString()).toContain("data:image/png;base64,iVBOR");
  });

  it.each([20_000, 5_000_000])("passes an upload of %i bytes through whole", async (bytes) => {
    const answer = { text: "hello", usage: { type: "duration", seconds: 3 } };
    const upstream = await startUpstream({
      headers: { "content-type": "application/json" },
      body: JSON.stringify(answer),
    });
    const { client } = await startGateway({ upstreams: { up: { baseUrl: `${upstream.baseUrl}/v1` } } });
    const sound = Buffer.from(Array.from({ length: bytes }, (_, index) => index % 251));
    const request = {
      file: await toFile(sound, 'a "note".ogg'),
      model: "up/org/large",
      language: "en",
      prompt: "Oslo",
    };
    // Named before the file, so that it can be passed on as it comes.
    const form = new FormData();
    for (const [name, value] of Object.entries({ model: request.model, language: "en" }))
      form.set(name, value);
    form.set("file", new Blob([sound]), 'a "note".ogg');
    form.set("prompt", "Oslo");
    const early = await fetch(`${client.baseURL}/audio/transcriptions`, {
      method: "POST",
      headers: { authorization: `Bearer ${key}` },
      body: form,
    });
    expect(await early.json()).toEqual(answer);
    expect(await client.audio.transcriptions.create(request)).toMatchObject({ text: "hello" });
    for (const seen of upstream.requests) {
      const received = await new Response(new Uint8Array(seen.body), {
        headers: { "content-type": String(seen.headers["content-type"]) },
      }).formData();
      const { file, ...fields } = Object.fromEntries(received);
      expect(fields).toEqual({ model: "org/large", language: "en", prompt: "Oslo" });
      expect((file as File).name).toBe('a "note".ogg');
      expect(Buffer.from(await (file as File).arrayBuffer()).equals(sound)).toBe(true);
    }
    expect(upstream.requests).toHaveLength(2);
  });

  it("refuses an empty file without asking the upstream", async () => {
    const upstream = await startUpstream(toError(500, "never"));
    const { client } = await startGateway({ upstreams: { up: { baseUrl: `${upstream.baseUrl}/v1` } } });
    const request = client.audio.transcriptions.create({
      model: "up/small",
      file: await toFile(Buffer.alloc(0), "a.ogg"),
    });
    await expect(request).rejects.toMatchObject({ status: 400, param: "file" });
    expect(upstream.requests).toHaveLength(0);
  });
});

describe("stopping", () => {
  it("lets running answers end and takes no new ones", async () => {
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
