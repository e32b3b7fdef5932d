import { afterEach, describe, expect, it } from "vitest";
import { ParleyError } from "../../../src/core/errors.ts";
import { AttemptError, readRetryAfter } from "../../../src/wire/failures.ts";
import { withRetries } from "../../../src/wire/attempt.ts";
import { type ScriptedAnswer, startScriptedGateway } from "../../simulators/gateway/scripted-gateway.ts";
import { apiKey, createTestClient, failureOf, hello, never, outcomeOf, pixel } from "./harness.ts";

const open: { close(): Promise<void> }[] = [];
afterEach(async () => {
  for (const one of open.splice(0).toReversed()) await one.close();
});

const good: ScriptedAnswer = {
  body: 'data: {"choices":[{"delta":{"content":"hi"},"finish_reason":"stop"}]}\n\ndata: [DONE]\n\n',
};
const drawing: ScriptedAnswer = { body: JSON.stringify({ data: [{ b64_json: pixel.toString("base64") }] }) };
const failing = (
  status: number,
  error: object = {},
  headers: Record<string, string> = {},
): ScriptedAnswer => ({
  status,
  headers,
  body: JSON.stringify({ error: { message: "it failed", ...error } }),
});

async function start(
  answers: readonly ScriptedAnswer[],
  options: Parameters<typeof createTestClient>[1] = {},
) {
  const gateway = await startScriptedGateway((_, index) => answers[index] ?? answers.at(-1) ?? good, {
    apiKey,
  });
  open.push(gateway);
  const client = createTestClient(gateway.baseUrl, options);
  open.push(client);
  return { gateway, client };
}

const draw = { model: "dall-e-3", prompt: "a cat" };
const listen = {
  model: "whisper-1",
  bytes: Buffer.alloc(200_000, 7),
  fileName: "a.ogg",
  mediaType: "audio/ogg",
};

describe("statuses before the first output", () => {
  it.each([408, 429, 500, 502, 503, 504, 520, 521, 522, 523, 524, 529])(
    "chat is asked again after %i",
    async (status) => {
      const { gateway, client } = await start([failing(status), good]);
      expect(await outcomeOf(client.chat(hello, never()))).toMatchObject({ text: "hi", finish: "stop" });
      expect(gateway.requests).toHaveLength(2);
    },
  );

  it.each([
    [400, "gateway-bad-request"],
    [401, "gateway-unauthorized"],
    [402, "gateway-payment"],
    [403, "gateway-unauthorized"],
    [404, "gateway-unsupported"],
    [409, "gateway-bad-request"],
    [413, "gateway-bad-request"],
    [418, "gateway-bad-request"],
    [501, "gateway-unsupported"],
    [301, "gateway-bad-answer"],
  ])("chat is not asked again after %i, which is %s", async (status, code) => {
    const { gateway, client } = await start([failing(status), good]);
    expect(await failureOf(client.chat(hello, never()))).toMatchObject({ code });
    expect(gateway.requests).toHaveLength(1);
  });

  it("gives up after three attempts", async () => {
    const { gateway, client } = await start([failing(500)]);
    expect(await failureOf(client.chat(hello, never()))).toMatchObject({
      code: "gateway-error",
      detail: { model: "m", status: 500, gatewayMessage: "it failed" },
    });
    expect(gateway.requests).toHaveLength(3);
  });

  it.each([
    { code: "insufficient_quota" },
    { type: "insufficient_quota" },
    { message: "You exceeded your current quota" },
  ])("a quota that is used up is not asked again: %j", async (error) => {
    const { gateway, client } = await start([failing(429, error, { "retry-after": "0" }), good]);
    expect(await failureOf(client.chat(hello, never()))).toMatchObject({ code: "gateway-payment" });
    expect(gateway.requests).toHaveLength(1);
  });

  it("x-should-retry overrides the status", async () => {
    const refused = await start([failing(500, {}, { "x-should-retry": "false" }), good]);
    expect(await failureOf(refused.client.chat(hello, never()))).toMatchObject({ code: "gateway-error" });
    const advised = await start([failing(409, {}, { "x-should-retry": "true" }), good]);
    expect(await outcomeOf(advised.client.chat(hello, never()))).toMatchObject({ text: "hi" });
  });

  it("an error inside a stream is retried before the first output", async () => {
    const { client, gateway } = await start([
      { body: 'data: {"error":{"message":"overloaded","code":503}}\n\n' },
      good,
    ]);
    expect(await outcomeOf(client.chat(hello, never()))).toMatchObject({ text: "hi" });
    expect(gateway.requests).toHaveLength(2);
  });

  it("nothing is retried after the first output", async () => {
    const { client, gateway } = await start([
      {
        body: 'data: {"choices":[{"delta":{"content":"half"}}]}\n\ndata: {"error":{"code":503,"message":"x"}}\n\n',
      },
      good,
    ]);
    expect(await outcomeOf(client.chat(hello, never()))).toMatchObject({
      text: "half",
      error: "gateway-interrupted",
    });
    expect(gateway.requests).toHaveLength(1);
  });

  it("a connection lost before the status is retried", async () => {
    const { client, gateway } = await start([{ answers: false }, good]);
    expect(await outcomeOf(client.chat(hello, never()))).toMatchObject({ text: "hi" });
    expect(gateway.requests).toHaveLength(2);
  });

  it("an unreachable gateway fails with gateway-unreachable", async () => {
    const { gateway, client } = await start([good]);
    await gateway.close();
    expect(await failureOf(client.chat(hello, never()))).toMatchObject({
      code: "gateway-unreachable",
      detail: { reason: "ECONNREFUSED" },
    });
  });
});

describe("Retry-After", () => {
  it.each([
    [{ "retry-after": "0.2" }, 200],
    [{ "retry-after-ms": "200" }, 200],
    [{ "retry-after-ms": "200", "retry-after": "100" }, 200],
  ])("%j is the least that is waited", async (headers, ms) => {
    const { gateway, client } = await start([failing(429, {}, headers), good]);
    expect(await outcomeOf(client.chat(hello, never()))).toMatchObject({ text: "hi" });
    const [first, second] = gateway.requests;
    // Timers may fire up to a millisecond early.
    expect((second?.at ?? 0) - (first?.at ?? 0)).toBeGreaterThanOrEqual(ms - 2);
  });

  it("fails at once when it is after the deadline, with retryAfterMs", async () => {
    const { gateway, client } = await start([failing(429, {}, { "retry-after": "120" }), good]);
    const startedAt = Date.now();
    expect(await failureOf(client.chat(hello, never()))).toMatchObject({
      code: "gateway-rate-limited",
      retryAfterMs: 120_000,
    });
    expect(Date.now() - startedAt).toBeLessThan(2000);
    expect(gateway.requests).toHaveLength(1);
  });

  it("is read as seconds, as a date and in milliseconds", () => {
    const now = Date.parse("2026-01-01T00:00:00Z");
    expect(readRetryAfter({ "retry-after": "3" }, now)).toBe(3000);
    expect(readRetryAfter({ "retry-after": "Thu, 01 Jan 2026 00:01:00 GMT" }, now)).toBe(60_000);
    expect(readRetryAfter({ "retry-after": "Wed, 31 Dec 2025 00:00:00 GMT" }, now)).toBe(0);
    expect(readRetryAfter({ "retry-after-ms": "1500" }, now)).toBe(1500);
    expect(readRetryAfter({ "retry-after": "soon" }, now)).toBeUndefined();
    expect(readRetryAfter({ "retry-after": "-1" }, now)).toBeUndefined();
    expect(readRetryAfter({}, now)).toBeUndefined();
  });

  it("an abort ends the delay at once with its own reason", async () => {
    const { gateway, client } = await start([failing(429, {}, { "retry-after": "5" })]);
    const controller = new AbortController();
    const failure = failureOf(client.chat(hello, controller.signal));
    await gateway.waitForRequests(1);
    const reason = new Error("changed my mind");
    controller.abort(reason);
    expect(await failure).toBe(reason);
  });
});

describe("delays", () => {
  it.each([
    { random: 0.999, expected: [4, 8, 10, 10] },
    // A gateway that starts anew takes a moment, whatever the random number is.
    { random: 0, expected: [2, 4, 5, 5] },
  ])("are half to all of a doubling limit: with $random, $expected ms", async ({ random, expected }) => {
    const delays: number[] = [];
    let attempts = 0;
    const failure = new AttemptError(new ParleyError("gateway-error", "x"), "transient");
    await failureOf(
      withRetries(
        () => {
          attempts++;
          return Promise.reject(failure);
        },
        {
          operation: "chat",
          rules: { maxAttempts: 5, baseDelayMs: 4, maxDelayMs: 10 },
          deadlineAt: performance.now() + 10_000,
          maxWaitMs: 10_000,
          signal: never(),
          random: () => random,
          onRetry: (_, delayMs) => delays.push(delayMs),
        },
      ),
    );
    expect(attempts).toBe(5);
    expect(delays).toEqual(expected);
  });
});

describe("image generation", () => {
  it.each([429, 503])("is retried after %i", async (status) => {
    const { gateway, client } = await start([failing(status), drawing]);
    expect((await client.generateImages(draw, never())).images).toHaveLength(1);
    expect(gateway.requests).toHaveLength(2);
  });

  it.each([408, 500, 502, 504, 524])(
    "is not retried after %i, since it may be billed twice",
    async (status) => {
      const { gateway, client } = await start([failing(status), drawing]);
      await failureOf(client.generateImages(draw, never()));
      expect(gateway.requests).toHaveLength(1);
    },
  );

  it("is not retried when the connection is lost after the request", async () => {
    const { gateway, client } = await start([{ answers: false }, drawing]);
    expect(await failureOf(client.generateImages(draw, never()))).toMatchObject({
      code: "gateway-unreachable",
    });
    expect(gateway.requests).toHaveLength(1);
  });
});

describe("transcription", () => {
  it("sends all bytes again", async () => {
    const { gateway, client } = await start([failing(500), { answers: false }, { body: '{"text":"hello"}' }]);
    expect((await client.transcribe(listen, never())).text).toBe("hello");
    const bodies = gateway.requests.map(({ body }) => body.subarray(body.indexOf("audio/ogg")).length);
    expect(bodies).toHaveLength(3);
    expect(new Set(bodies).size).toBe(1);
    expect(bodies[0]).toBeGreaterThan(200_000);
  });
});

describe("fallback models", () => {
  const byModel = (answers: Readonly<Record<string, ScriptedAnswer>>) => async (options: object) => {
    const gateway = await startScriptedGateway((request) => {
      const text = request.body.toString("latin1");
      const model = /"model":"([^"]+)"/.exec(text)?.[1] ?? /name="model"\r\n\r\n([^\r]+)/.exec(text)?.[1];
      return answers[model ?? ""] ?? failing(404, { code: "model_not_found" });
    });
    open.push(gateway);
    const client = createTestClient(gateway.baseUrl, options);
    open.push(client);
    return { gateway, client };
  };

  it("answer in place of a failed model, with a notice", async () => {
    const { client } = await byModel({ m: failing(500), b: good })({ fallbacks: { chat: ["m", "b"] } });
    expect(await outcomeOf(client.chat(hello, never()))).toMatchObject({
      text: "hi",
      notices: ["Model `m` did not answer; `b` did."],
    });
  });

  it("answer in place of an unknown model", async () => {
    const { client } = await byModel({ b: good })({ fallbacks: { chat: ["b"] } });
    expect(await outcomeOf(client.chat(hello, never()))).toMatchObject({ text: "hi", finish: "stop" });
  });

  it("are tried without waiting for a long Retry-After", async () => {
    const { client, gateway } = await byModel({ m: failing(429, {}, { "retry-after": "8" }), b: good })({
      fallbacks: { chat: ["b"] },
    });
    expect(await outcomeOf(client.chat(hello, never()))).toMatchObject({ text: "hi" });
    expect(gateway.requests).toHaveLength(2);
  });

  it("are not tried for an invalid request, nor after the first output", async () => {
    const wrong = await byModel({ m: failing(400), b: good })({ fallbacks: { chat: ["b"] } });
    expect(await outcomeOf(wrong.client.chat(hello, never()))).toMatchObject({
      error: "gateway-bad-request",
    });
    const half = await byModel({
      m: { body: 'data: {"choices":[{"delta":{"content":"half"}}]}\n\n' },
      b: good,
    })({
      fallbacks: { chat: ["b"] },
    });
    expect(await outcomeOf(half.client.chat(hello, never()))).toMatchObject({
      text: "half",
      error: "gateway-interrupted",
    });
    expect(half.gateway.requests).toHaveLength(1);
  });

  it("that fail too leave the error of the requested model", async () => {
    const { client } = await byModel({ m: failing(429), b: failing(500) })({ fallbacks: { chat: ["b"] } });
    expect(await failureOf(client.chat(hello, never()))).toMatchObject({
      code: "gateway-rate-limited",
      detail: { model: "m" },
    });
  });

  it("are tried for images and transcriptions too", async () => {
    const { client } = await byModel({
      "dall-e-3": failing(503),
      b: drawing,
      "whisper-1": failing(500),
      c: { body: '{"text":"x"}' },
    })({
      fallbacks: { image: ["b"], transcription: ["c"] },
    });
    expect(await client.generateImages(draw, never())).toMatchObject({
      model: "b",
      notices: ["Model `dall-e-3` did not answer; `b` did."],
    });
    expect(await client.transcribe(listen, never())).toMatchObject({
      model: "c",
      notices: ["Model `whisper-1` did not answer; `c` did."],
    });
  });
});
