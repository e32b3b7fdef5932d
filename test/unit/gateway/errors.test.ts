import fc from "fast-check";
import { afterEach, describe, expect, it } from "vitest";
import { ParleyError } from "../../../src/core/errors.ts";
import { readError, createScrub } from "../../../src/wire/failures.ts";
import { type ScriptedAnswer, startScriptedGateway } from "../../simulators/gateway/scripted-gateway.ts";
import { apiKey, createTestClient, createTestLog, failureOf, hello, never } from "./harness.ts";

const open: { close(): Promise<void> }[] = [];
afterEach(async () => {
  for (const one of open.splice(0).toReversed()) await one.close();
});

async function failWith(answer: ScriptedAnswer, options: Parameters<typeof createTestClient>[1] = {}) {
  const gateway = await startScriptedGateway(answer);
  open.push(gateway);
  const client = createTestClient(gateway.baseUrl, {
    retryRules: { maxAttempts: 1, baseDelayMs: 1, maxDelayMs: 1 },
    ...options,
  });
  open.push(client);
  return failureOf(client.chat(hello, never()));
}

describe("error bodies", () => {
  it.each<[unknown, string]>([
    [{ error: { message: "m", type: "t", param: null, code: null } }, "m"],
    [{ error: { message: "m", code: 429 } }, "m"],
    [{ error: "m" }, "m"],
    [{ error: { error: "m" } }, "m"],
    [{ error: true, message: "m" }, "m"],
    [{ detail: "m" }, "m"],
    [{ detail: [{ loc: ["body", "temperature"], msg: "m", type: "value_error" }] }, "m"],
    [[{ error: { message: "m" } }], "m"],
    [{ status: "failure", message: "m" }, "m"],
    [{ object: "error", message: "m" }, "m"],
    [{ type: "error", error: { type: "overloaded_error", message: "m" } }, "m"],
    [{ errors: [{ message: "m" }] }, "m"],
    [{ code: 401, message: "m" }, "m"],
    [{ choices: [{ error: { message: "m", code: 502 } }] }, "m"],
  ])("%j is one", (body, message) => {
    expect(readError(body)?.message).toBe(message);
  });

  it.each<unknown>([
    { choices: [{ message: { content: "hi" } }] },
    { choices: [], error: null },
    { object: "list", data: [] },
    { text: "hello", detail: "low" },
    { message: { content: "hi" }, done: false },
    { type: "ping" },
    null,
    "error",
    7,
  ])("%j is none", (body) => {
    expect(readError(body)).toBeUndefined();
  });

  it("reading never throws, whatever the value", () => {
    fc.assert(
      fc.property(fc.jsonValue(), (value) => {
        readError(value);
        readError({ error: value });
        readError({ detail: value });
        readError({ choices: value });
        readError({ errors: value });
      }),
    );
  });

  it.each<[string, ScriptedAnswer, object]>([
    [
      "a page",
      { status: 502, body: "<html><head><title>502 Bad Gateway</title></head></html>" },
      { code: "gateway-error", detail: { gatewayMessage: "a web page: 502 Bad Gateway" } },
    ],
    [
      "words",
      { status: 500, body: "upstream connect error" },
      { code: "gateway-error", detail: { gatewayMessage: "upstream connect error" } },
    ],
    ["nothing", { status: 500 }, { code: "gateway-error", detail: { status: 500 } }],
    ["broken JSON", { status: 400, body: '{"error":' }, { code: "gateway-bad-request" }],
    [
      "an event",
      { status: 400, body: 'data: {"error":{"message":"bad","param":"messages"}}\n\n' },
      { code: "gateway-bad-request", detail: { gatewayMessage: "bad", parameter: "messages" } },
    ],
    ["an endless body", { status: 500, body: "x".repeat(200_000), after: "hang" }, { code: "gateway-error" }],
    [
      "a body that breaks",
      { status: 500, body: "x", headers: { "content-length": "500" }, after: "break" },
      { code: "gateway-error" },
    ],
    ["a body that stalls", { status: 429, body: "{", after: "hang" }, { code: "gateway-rate-limited" }],
  ])("a status is told with %s behind it", async (_, answer, expected) => {
    const failure = await failWith(answer, {
      timeouts: { connectMs: 2000, firstEventMs: 2000, idleMs: 500, totalMs: 6000 },
    });
    expect(failure).toBeInstanceOf(ParleyError);
    expect(failure).toMatchObject(expected);
  });
});

describe("errors of the gateway are classified", () => {
  it.each([
    ["gateway-context-length", 400, { code: "context_length_exceeded", message: "x" }],
    ["gateway-context-length", 400, { message: "This model's maximum context length is 8192 tokens." }],
    ["gateway-context-length", 400, { message: "prompt is too long: 210000 tokens > 200000 maximum" }],
    ["gateway-context-length", 413, { message: "Input exceeds the limit of 8000 tokens" }],
    ["gateway-unknown-model", 404, { code: "model_not_found", message: "x" }],
    [
      "gateway-unknown-model",
      404,
      { message: "The model `m` does not exist or you do not have access to it." },
    ],
    ["gateway-unknown-model", 400, { message: "m is not a valid model ID" }],
    ["gateway-unknown-model", 404, { message: "model 'm' not found, try pulling it first" }],
    ["gateway-refused", 400, { code: "content_filter", message: "x" }],
    ["gateway-refused", 400, { code: "content_policy_violation", message: "x" }],
    ["gateway-refused", 400, { message: "Your request was rejected as a result of our safety system." }],
    ["gateway-refused", 403, { message: "Input was flagged by moderation" }],
    ["gateway-unsupported", 404, { message: "No endpoints found that support image input" }],
    ["gateway-unsupported", 400, { message: "This model does not support image inputs" }],
    ["gateway-payment", 402, { message: "x" }],
    ["gateway-payment", 403, { message: "Insufficient balance" }],
    ["gateway-bad-request", 400, { message: "temperature must be at most 2" }],
  ])("%s: %i %j", async (code, status, error) => {
    expect(await failWith({ status, body: JSON.stringify({ error }) })).toMatchObject({ code });
  });

  it("an unknown model comes with a suggestion", async () => {
    const gateway = await startScriptedGateway((request) =>
      request.path === "/v1/models"
        ? {
            body: JSON.stringify({
              data: [{ id: "openai/gpt-4o" }, { id: "openai/gpt-4o-mini" }, { id: "x/whisper" }],
            }),
          }
        : { status: 404, body: JSON.stringify({ error: { code: "model_not_found", message: "no" } }) },
    );
    open.push(gateway);
    const client = createTestClient(gateway.baseUrl);
    open.push(client);
    const ask = (model: string) => failureOf(client.chat({ ...hello, model }, never()));
    expect(await ask("OpenAI/GPT-4o")).toMatchObject({ detail: { suggestion: "openai/gpt-4o" } });
    expect(await ask("gpt-4o-mni")).toMatchObject({ detail: { suggestion: "openai/gpt-4o-mini" } });
    expect((await ask("something-else-entirely")) as ParleyError).not.toHaveProperty("detail.suggestion");
  });
});

describe("secrets and user text", () => {
  it("are in no error and no log, even when the gateway echoes them", async () => {
    const log = createTestLog();
    const message = `Incorrect key ${apiKey} (Bearer ${apiKey}, sk-proj-abc*****xyz) at https://user:pw@api.example/v1?key=s3cr3t#f\u0007\u202e`;
    const failure = await failWith(
      {
        status: 500,
        body: JSON.stringify({ error: { message, code: apiKey, param: apiKey } }),
        headers: { "x-request-id": apiKey },
      },
      { log, retryRules: { maxAttempts: 2, baseDelayMs: 1, maxDelayMs: 1 } },
    );
    if (!(failure instanceof ParleyError)) throw new Error("another error");
    const all = `${failure.message} ${JSON.stringify(failure.detail)} ${String(failure.stack)} ${log.lines.join("\n")}`;
    for (const secret of [apiKey, "sk-proj", "s3cr3t", "user:pw", "\u0007", "\u202e", "hello"])
      expect(all).not.toContain(secret);
    expect(failure.detail["gatewayMessage"]).toContain("https://api.example/v1");
    expect(failure.detail["gatewayMessage"]).toContain("Incorrect key [key]");
  });

  it("are in no connection error", async () => {
    const client = createTestClient("http://127.0.0.1:1/base?token=s3cr3t");
    open.push(client);
    const failure = (await failureOf(client.chat(hello, never()))) as ParleyError;
    expect(`${failure.message} ${JSON.stringify(failure.detail)} ${String(failure.cause)}`).not.toMatch(
      /s3cr3t|hello|sk-test/,
    );
  });

  it("are removed before a message is cut", () => {
    const scrub = createScrub("a-long-secret-key");
    fc.assert(
      fc.property(fc.string({ maxLength: 400 }), fc.string({ maxLength: 400 }), (before, after) => {
        const shown = scrub(`${before} a-long-secret-key ${after}`);
        return shown.length <= 300 && !shown.includes("secret-key");
      }),
    );
    expect(scrub(`${"x".repeat(298)}🦜🦜`)).toHaveLength(299);
    expect(scrub(`see data:image/png;base64,${"A".repeat(5000)} there`)).toBe("see [data] there");
  });
});

describe("the base URL", () => {
  it.each(["", "/", "/v1", "/v1/"])("is accepted with %j appended", async (tail) => {
    const gateway = await startScriptedGateway({ body: '{"data":[{"id":"m"}]}' }, { apiKey });
    open.push(gateway);
    const client = createTestClient(`${gateway.baseUrl}${tail}`);
    open.push(client);
    expect(await client.listModels(never())).toMatchObject([{ id: "m" }]);
  });

  it.each([
    ["/v1beta/openai", "/v1beta/openai/models"],
    ["/v1beta/openai/", "/v1beta/openai/models"],
    ["/api/paas/v4", "/api/paas/v4/models"],
    ["/api/v3", "/api/v3/models"],
    ["/openai/deployments/gpt-9", "/openai/deployments/gpt-9/models"],
    ["/openai/v1", "/openai/v1/models"],
    ["/inference/chat/completions", "/inference/models"],
    ["/api/v2x", "/api/v2x/v1/models"],
  ])("that ends in a version of its own is used as it is: %s", async (tail, path) => {
    const gateway = await startScriptedGateway({ body: '{"data":[{"id":"m"}]}' });
    open.push(gateway);
    const client = createTestClient(`${gateway.baseUrl}${tail}`);
    open.push(client);
    await client.listModels(never()).catch(() => undefined);
    expect(gateway.requests[0]?.path).toBe(path);
  });

  it.each(["", "nowhere", "ftp://a.example", "https://user:pw@a.example"])("cannot be %j", (baseUrl) => {
    expect(() => createTestClient(baseUrl)).toThrow(expect.objectContaining({ code: "config" }));
  });
});
