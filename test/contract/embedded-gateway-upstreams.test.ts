import { gzipSync } from "node:zlib";
import { toFile, type OpenAI } from "openai";
import { describe, expect, it } from "vitest";
import { fixture } from "../fixtures/fixtures.ts";
import {
  bodyOf,
  key,
  messages,
  startGateway,
  startUpstream,
  toAnswer,
  toError,
  toEvent,
} from "./embedded-gateway-harness.ts";

const json = { "content-type": "application/json" };

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

  it("forwards the request id and returns the upstream's", async () => {
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

  it("resolves aliases and names the model that answered", async () => {
    const upstream = await startUpstream(toAnswer("hi"));
    const { client } = await startGateway({
      sandbox: true,
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

  it("rejects unknown and unsupported models, with suggestions", async () => {
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

  it("merges and caches the upstreams' own lists, also while one is down", async () => {
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
    expect(data).toEqual([
      { id: "up/a", object: "model", created: 5, owned_by: "them", context_length: 9 },
      { id: "up/b", object: "model", created: expect.any(Number) as number, owned_by: "up" },
    ]);
    await client.models.list();
    expect(up.requests).toHaveLength(1);
  });
});

describe("failures before the first byte", () => {
  it("are retried, then reported with the upstream's status and Retry-After", async () => {
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
    // Longer waits are left to the client.
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

  it("are not retried with a fallback when the request is invalid", async () => {
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

  it("never blame the client's key when the gateway's was rejected", async () => {
    const upstream = await startUpstream(toError(401, "Incorrect API key provided: upstream-key"));
    const { client } = await startGateway({ upstreams: { up: { baseUrl: `${upstream.baseUrl}/v1` } } });
    const failure = client.chat.completions.create({ model: "up/small", messages });
    await expect(failure).rejects.toMatchObject({ status: 502, code: "upstream_unauthorized" });
    await expect(failure).rejects.not.toThrow("upstream-key");
  });

  it.each([
    [{ detail: [{ loc: ["body", "messages"], msg: "field required" }] }, "field required", "messages"],
    [{ errors: [{ message: "too warm", param: "temperature" }] }, "too warm", "temperature"],
    [{ error: { message: "not with upstream-key" } }, "not with [key]", null],
    [{ error: {} }, "The upstream 'up' returned status 422.", null],
  ])("pass on the words of %j", async (body, message, param) => {
    const upstream = await startUpstream({ status: 422, headers: json, body: JSON.stringify(body) });
    const { client } = await startGateway({ upstreams: { up: { baseUrl: `${upstream.baseUrl}/v1` } } });
    await expect(client.chat.completions.create({ model: "up/small", messages })).rejects.toMatchObject({
      status: 422,
      error: { message, param },
    });
  });

  it("name an unreachable upstream", async () => {
    const { client } = await startGateway({ upstreams: { up: { baseUrl: "http://127.0.0.1:9/v1" } } });
    await expect(client.chat.completions.create({ model: "up/small", messages })).rejects.toMatchObject({
      status: 502,
      code: "upstream_unreachable",
    });
  });
});

it("an answer that a proxy has compressed is read", async () => {
  const whole = toAnswer("squeezed");
  const body = gzipSync(String(whole.body));
  const upstream = await startUpstream({ ...whole, headers: { ...json, "content-encoding": "gzip" }, body });
  const { client } = await startGateway({ upstreams: { up: { baseUrl: `${upstream.baseUrl}/v1` } } });
  const { choices } = await client.chat.completions.create({ model: "up/small", messages });
  expect(choices[0]?.message.content).toBe("squeezed");
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

  it("sends its own pictures as data URIs, since upstreams cannot download them", async () => {
    const upstream = await startUpstream(toAnswer("a fox"));
    const { client } = await startGateway({
      sandbox: true,
      upstreams: { up: { baseUrl: `${upstream.baseUrl}/v1` } },
    });
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

  it.each([20_000, 5_000_000])("forwards an upload of %i bytes", async (bytes) => {
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
    // The official client sends the file first, and this form sends it last.
    const form = new FormData();
    for (const [name, value] of Object.entries({ model: request.model, language: "en" }))
      form.set(name, value);
    form.set("prompt", "Oslo");
    form.set("file", new Blob([sound]), 'a "note".ogg');
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

  it("rejects an empty file without calling the upstream", async () => {
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
