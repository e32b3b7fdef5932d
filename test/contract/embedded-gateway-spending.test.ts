import { describe, expect, it, vi } from "vitest";
import { createKeyRing, type KeyLimits } from "../../src/embedded-gateway/key-ring.ts";
import type { ScriptedAnswer, SeenRequest } from "../simulators/gateway/scripted-gateway.ts";
import { flacBomb, m4aBomb, opusBomb } from "../support/audio-bombs.ts";
import { createMemoryKeyStore } from "../support/memory-key-store.ts";
import { createQuietLog } from "../support/quiet-log.ts";
import {
  bodyOf,
  messages,
  startGateway,
  startUpstream,
  toAnswer,
  toError,
  toEvent,
} from "./embedded-gateway-harness.ts";

/** These tests do what a limited key can do to the budget and the models of its operator. */

const prices = { inputPerMillionUsd: 1000, outputPerMillionUsd: 2000 };
const models = [
  { id: "small", prices },
  { id: "secret-large", prices: { inputPerMillionUsd: 0, outputPerMillionUsd: 0 } },
  { id: "draw", prices: { perImageUsd: 0.04 } },
  { id: "ears", prices: { perAudioMinuteUsd: 0.6 } },
  "unpriced",
];

type Script = ScriptedAnswer | ((request: SeenRequest, index: number) => ScriptedAnswer);

async function start(limits: KeyLimits, script: Script, settings: object = {}) {
  const keyStore = createMemoryKeyStore();
  const ring = createKeyRing({ store: keyStore, log: createQuietLog() });
  const { key, secret } = await ring.create("ada", limits);
  const upstream = await startUpstream(script);
  const { url } = await startGateway(
    { upstreams: { up: { baseUrl: `${upstream.baseUrl}/v1`, models } }, ...settings },
    { keyStore },
  );
  const headers = { authorization: `Bearer ${secret}` };
  const post = (path: string, body: object | FormData, signal?: AbortSignal) =>
    fetch(url + path, {
      method: "POST",
      headers: body instanceof FormData ? headers : { ...headers, "content-type": "application/json" },
      body: body instanceof FormData ? body : JSON.stringify(body),
      ...(signal === undefined ? {} : { signal }),
    });
  const chat = (change: object = {}, signal?: AbortSignal) =>
    post("/v1/chat/completions", { model: "up/small", messages, ...change }, signal);
  const get = (path: string) => fetch(url + path, { headers });
  return { upstream, url, headers, post, chat, get, usage: () => ring.usage(key.id, "day") };
}

const json = { "content-type": "application/json" };
const picture = { headers: json, body: JSON.stringify({ data: [{ url: "https://example.com/a.png" }] }) };

async function codeOf(response: Response): Promise<unknown> {
  return ((await response.json()) as { error?: { code?: unknown } }).error?.code;
}

function toForm(fields: Record<string, string>, bytes: Uint8Array<ArrayBuffer>): FormData {
  const form = new FormData();
  for (const [name, value] of Object.entries(fields)) form.set(name, value);
  form.set("file", new Blob([bytes]), "a.ogg");
  return form;
}

describe("a budget", () => {
  it("is not passed by 150 parallel calls", async () => {
    // It costs 3 tokens at 0.001 and 2 at 0.002 USD, which is 0.007 USD a call.
    const limits = { budgetUsdPerDay: 0.05, concurrentRequests: 150 };
    const { chat, usage, upstream } = await start(limits, toAnswer("hi"));
    const statuses = await Promise.all(Array.from({ length: 150 }, async () => (await chat()).status));
    expect(statuses.filter((status) => ![200, 402, 429].includes(status))).toEqual([]);
    const served = statuses.filter((status) => status === 200).length;
    expect(served).toBeGreaterThan(0);
    expect(upstream.requests).toHaveLength(served);
    await vi.waitFor(async () => expect((await usage()).calls).toBe(served));
    // At most one request passes the budget.
    expect((await usage()).costUsd).toBeLessThan(0.05 + 0.007);
  });

  it("has a limit of requests in flight, by default too", async () => {
    const { chat, upstream } = await start({}, { after: "hang", headers: json });
    const leave = new AbortController();
    const running = Array.from({ length: 16 }, () => chat({}, leave.signal).catch(() => undefined));
    await upstream.waitForRequests(16);
    const refused = await chat();
    expect(refused.status).toBe(429);
    expect(refused.headers.get("retry-after")).toBe("1");
    expect(await codeOf(refused)).toBe("concurrency_limit_exceeded");
    leave.abort();
    await Promise.all(running);
    await vi.waitFor(async () => {
      const again = new AbortController();
      const next = chat({}, again.signal).catch(() => undefined);
      await upstream.waitForRequests(17);
      again.abort();
      await next;
    });
  });

  it.each([
    [
      "a plain chat: prompt and max_tokens",
      "/v1/chat/completions",
      { model: "up/small", messages, max_tokens: 10 },
      0.022,
    ],
    ["images: all of them", "/v1/images/generations", { model: "up/draw", prompt: "a fox", n: 3 }, 0.12],
  ])("is charged when the client leaves before the answer: %s", async (_, path, body, costUsd) => {
    const { post, usage, upstream } = await start({ budgetUsdPerDay: 1 }, { after: "hang", headers: json });
    const leave = new AbortController();
    const request = post(path, body, leave.signal).catch(() => undefined);
    await upstream.waitForRequests(1);
    leave.abort();
    await request;
    await vi.waitFor(async () => expect((await usage()).costUsd).toBeCloseTo(costUsd));
  });

  it("is charged the prompt when the client leaves a stream before its first event", async () => {
    const { chat, usage, upstream } = await start({ budgetUsdPerDay: 1 }, { after: "hang" });
    const leave = new AbortController();
    const request = chat({ stream: true }, leave.signal).catch(() => undefined);
    await upstream.waitForRequests(1);
    leave.abort();
    await request;
    await vi.waitFor(async () =>
      expect(await usage()).toMatchObject({ promptTokens: 2, completionTokens: 0 }),
    );
  });

  it("is not charged for what the upstream refused or never got", async () => {
    const { chat, usage } = await start({ budgetUsdPerDay: 1 }, toError(400, "no"));
    expect((await chat()).status).toBe(400);
    const image = { type: "image_url", image_url: { url: "https://unreachable.invalid/a.png" } };
    await chat({ messages: [{ role: "user", content: [image] }] });
    expect((await usage()).costUsd).toBe(0);
  });

  it.each([
    ["text", { headers: { "content-type": "text/plain" }, body: "hello" }],
    ["json", { headers: json, body: JSON.stringify({ text: "hello" }) }],
    [
      "json",
      { headers: json, body: JSON.stringify({ text: "hello", duration: -5, usage: { seconds: -5 } }) },
    ],
  ])("is charged for a transcription without a duration (%s)", async (format, answer) => {
    const { post, usage } = await start({ budgetUsdPerDay: 100 }, answer);
    const small = toForm({ model: "up/ears", response_format: format }, new Uint8Array(60_000));
    expect((await post("/v1/audio/transcriptions", small)).status).toBe(200);
    // 60,000 bytes are at most 60 s.
    await vi.waitFor(async () => expect((await usage()).costUsd).toBeCloseTo(0.6));
    const large = toForm({ model: "up/ears", response_format: format }, new Uint8Array(3_000_000));
    expect((await post("/v1/audio/transcriptions", large)).status).toBe(200);
    await vi.waitFor(async () => expect((await usage()).costUsd).toBeGreaterThan(30));
  });

  it.each([
    ["FLAC of 20,000 frames", () => flacBomb(20_000)],
    ["FLAC of 60,000 frames", () => flacBomb(60_000)],
    ["Opus of 120,000 packets", () => opusBomb(120_000)],
    ["Opus of 400,000 packets, too large to be kept otherwise", () => opusBomb(400_000)],
    ["AAC of 600,000 frames in MP4", () => m4aBomb(600_000)],
  ])("does not pass %s that may hold more than it pays", async (_, bomb) => {
    const { post, usage, upstream } = await start(
      { budgetUsdPerDay: 100 },
      { headers: json, body: '{"text":"x"}' },
    );
    const form = toForm({ model: "up/ears" }, new Uint8Array(bomb()));
    expect([402, 429]).toContain((await post("/v1/audio/transcriptions", form)).status);
    expect(upstream.requests).toEqual([]);
    expect((await usage()).costUsd).toBe(0);
  });

  it("counts reasoning, tool calls and every choice", async () => {
    const body = [
      toEvent({ reasoning: "r".repeat(400) }),
      toEvent({ reasoning_content: "r".repeat(400) }),
      toEvent({ tool_calls: [{ index: 0, function: { name: "f", arguments: "a".repeat(400) } }] }),
      `data: ${JSON.stringify({ choices: [{ index: 1, delta: { content: "c".repeat(400) } }] })}\n\n`,
      toEvent({}, "stop"),
      "data: [DONE]\n\n",
    ].join("");
    const { chat, usage } = await start({ budgetUsdPerDay: 100 }, { body });
    await (await chat({ stream: true })).text();
    await vi.waitFor(async () => expect((await usage()).completionTokens).toBeGreaterThanOrEqual(400));
  });

  it.each(["1e999", "-1e999", "-5", '"free"', "null", "[]", "1e300"])(
    "ignores a reported cost of %s",
    async (cost) => {
      const answer = JSON.stringify({
        choices: [{ index: 0, message: { role: "assistant", content: "hi" }, finish_reason: "stop" }],
        usage: { prompt_tokens: 3, completion_tokens: 2, cost: "COST" },
      }).replace('"COST"', cost);
      const { chat, usage } = await start({ budgetUsdPerDay: 1 }, { headers: json, body: answer });
      expect((await chat()).status).toBe(200);
      await vi.waitFor(async () => expect((await usage()).costUsd).toBeCloseTo(0.007));
    },
  );

  it.each(["-3", "1e999", "1e300", "null", '"3"'])("ignores a reported token count of %s", async (count) => {
    const answer = JSON.stringify({
      choices: [{ index: 0, message: { role: "assistant", content: "x".repeat(40) }, finish_reason: "stop" }],
      usage: { prompt_tokens: "COUNT", completion_tokens: "COUNT" },
    }).replaceAll('"COUNT"', count);
    const { chat, usage } = await start({ budgetUsdPerDay: 1 }, { headers: json, body: answer });
    expect((await chat()).status).toBe(200);
    await vi.waitFor(async () =>
      expect(await usage()).toMatchObject({ promptTokens: 2, completionTokens: 10 }),
    );
  });

  it("refuses a model without a price, also as a fallback", async () => {
    const { chat, post, upstream } = await start({ budgetUsdPerDay: 1 }, toAnswer("hi"), {
      fallbacks: { "up/secret-large": ["up/unpriced"] },
    });
    expect(await codeOf(await chat({ model: "up/unpriced" }))).toBe("model_without_price");
    expect(await codeOf(await chat({ model: "up/draw" }))).toBe("model_without_price");
    expect(await codeOf(await chat({ model: "up/secret-large" }))).toBe("model_without_price");
    const image = await post("/v1/images/generations", { model: "up/ears", prompt: "x" });
    expect(await codeOf(image)).toBe("model_without_price");
    expect(upstream.requests).toHaveLength(0);
    const free = await start({}, toAnswer("hi"));
    expect((await free.chat({ model: "up/unpriced" })).status).toBe(200);
  });
});

describe("a list of models", () => {
  const limits = { models: ["up/small", "up/draw", "fast", "team-*"] };
  const settings = {
    aliases: { fast: "up/small", "team-x": "up/secret-large" },
    fallbacks: { "up/small": ["up/secret-large"] },
  };

  it.each(["small", "large"])("cannot be passed by a second model after a %s file", async (size) => {
    const { url, headers, upstream } = await start(
      { models: ["up/ears"] },
      { headers: json, body: '{"text":"x"}' },
    );
    const file = "x".repeat(size === "small" ? 1000 : 3_000_000);
    const field = (name: string, value: string) =>
      `--b\r\nContent-Disposition: form-data; name="${name}"\r\n\r\n${value}\r\n`;
    const fileField = `--b\r\nContent-Disposition: form-data; name="file"; filename="a.ogg"\r\n\r\n${file}\r\n`;
    const forms = [
      field("model", "up/ears") + fileField + field("model", "secret-large"),
      field("model", "up/ears") + field("model", "up/secret-large") + fileField,
      fileField + field("model", "up/ears") + field("model", "up/secret-large"),
      fileField + field("model", "up/secret-large"),
    ];
    for (const form of forms) {
      const response = await fetch(`${url}/v1/audio/transcriptions`, {
        method: "POST",
        headers: { ...headers, "content-type": "multipart/form-data; boundary=b" },
        body: `${form}--b--\r\n`,
      });
      expect([400, 403]).toContain(response.status);
    }
    for (const { body } of upstream.requests) expect(body.toString()).not.toContain("secret-large");
  });

  it("cannot be passed by a delimiter that only another server takes for one", async () => {
    const { url, headers, upstream } = await start(
      { models: ["up/ears"] },
      { headers: json, body: '{"text":"x"}' },
    );
    const field = (name: string, value: string, extra = "") =>
      `--b\r\nContent-Disposition: form-data; name="${name}"${extra}\r\n\r\n${value}`;
    const hidden = ["\n", "\r", "\n "].map((lineBreak) => lineBreak + field("model", "secret-large"));
    const file = "x".repeat(3_000_000) + hidden.join("");
    await fetch(`${url}/v1/audio/transcriptions`, {
      method: "POST",
      headers: { ...headers, "content-type": "multipart/form-data; boundary=b" },
      body: `${field("model", "up/ears")}\r\n${field("file", file, '; filename="a.ogg"')}\r\n--b--\r\n`,
    });
    expect(upstream.requests).toHaveLength(1);
    const [{ body, headers: sent } = { body: Buffer.alloc(0), headers: {} }] = upstream.requests;
    const boundary = /boundary=(\S+)/.exec(String(sent["content-type"]))?.[1] ?? "";
    expect(Number(sent["content-length"])).toBe(body.length);
    expect(boundary.length).toBeGreaterThan(20);
    // A lenient reader accepts a line break of any kind, and blanks.
    const parts = body.toString("latin1").split(new RegExp(`(?:^|[\r\n])\\s*--${boundary}`));
    const models = parts.filter((part) => /^\s*content-disposition: form-data; name="model"/i.test(part));
    expect(models.map((part) => part.split("\r\n\r\n")[1]?.trim())).toEqual(["ears"]);
    expect(parts.at(-1)?.trim()).toBe("--");
    expect(body.includes(file)).toBe(true);
  });

  it("cannot be passed by fallbacks and aliases", async () => {
    const { chat, upstream } = await start(limits, toError(500, "broken"), settings);
    expect((await chat()).status).toBe(500);
    expect((await chat({ model: "fast" })).status).toBe(500);
    // The pattern allows the alias' name, and nothing allows its model.
    expect(await codeOf(await chat({ model: "team-x" }))).toBe("model_not_allowed");
    expect(upstream.requests.map((request) => bodyOf(request)["model"])).toEqual(["small", "small"]);
  });

  it("cannot be passed by fields that choose models or bill extras", async () => {
    const { chat, post, upstream } = await start(limits, toAnswer("hi"));
    const extra = {
      models: ["secret-large"],
      route: "fallback",
      provider: { order: ["x"] },
      plugins: [{ id: "web" }],
      transforms: ["middle-out"],
      fallbacks: ["secret-large"],
      preset: "secret",
      api_base: "https://evil.example",
      api_key: "x",
      service_tier: "priority",
      web_search_options: {},
      tools: [{ type: "web_search" }, { type: "function", function: { name: "f" } }],
      top_p: 0.5,
    };
    expect((await chat(extra)).status).toBe(200);
    expect(bodyOf(upstream.requests[0])).toEqual({
      model: "small",
      messages,
      max_tokens: 1024,
      temperature: 1,
      stream: false,
      top_p: 0.5,
      tools: [{ type: "function", function: { name: "f" } }],
    });
    for (const n of [0, 11, 128, 1.5]) expect((await chat({ n })).status).toBe(400);
    await post("/v1/images/generations", { model: "up/draw", prompt: "x", models: ["secret-large"] });
    expect(bodyOf(upstream.requests[1])).toEqual({ model: "draw", prompt: "x", n: 1 });
  });

  it("hides other models: in the list, in suggestions, and whether they exist", async () => {
    const { chat, get } = await start(limits, toAnswer("hi"), settings);
    const { data } = (await (await get("/v1/models")).json()) as { data: { id: string }[] };
    expect(data.map(({ id }) => id)).toEqual(["fast", "up/small", "up/draw"]);
    const hidden = await chat({ model: "up/secret-large" });
    const missing = await chat({ model: "up/secret-larg" });
    expect([hidden.status, missing.status]).toEqual([403, 403]);
    const text = (await missing.text()) + (await (await chat({ model: "team-y" })).text());
    expect(text).not.toContain("secret-large");
  });

  it("charges only the images that were asked for", async () => {
    const many = {
      headers: json,
      body: JSON.stringify({
        data: Array.from({ length: 500 }, () => ({ url: "https://example.com/a.png" })),
      }),
    };
    const { post, usage } = await start({ budgetUsdPerDay: 1 }, many);
    const answer = await post("/v1/images/generations", { model: "up/draw", prompt: "x", n: 2 });
    expect(((await answer.json()) as { data: unknown[] }).data).toHaveLength(2);
    await vi.waitFor(async () => expect((await usage()).costUsd).toBeCloseTo(0.08));
    const one = await start({ budgetUsdPerDay: 1 }, picture);
    await one.post("/v1/images/generations", { model: "up/draw", prompt: "x" });
    await vi.waitFor(async () => expect((await one.usage()).costUsd).toBeCloseTo(0.04));
  });
});
