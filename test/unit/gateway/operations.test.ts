import { randomBytes } from "node:crypto";
import { afterEach, describe, expect, it } from "vitest";
import type { ChatRequest } from "../../../src/core/gateway.ts";
import { chatRequestSchema, imageRequestSchema } from "../../../src/wire/schemas.ts";
import { type ScriptedAnswer, startScriptedGateway } from "../../simulators/gateway/scripted-gateway.ts";
import { apiKey, createTestClient, failureOf, hello, never, outcomeOf, pixel, pixelUri } from "./harness.ts";

const open: { close(): Promise<void> }[] = [];
afterEach(async () => {
  for (const one of open.splice(0).toReversed()) await one.close();
});

async function start(
  script: Parameters<typeof startScriptedGateway>[0],
  options: Parameters<typeof createTestClient>[1] = {},
) {
  const gateway = await startScriptedGateway(script, { apiKey });
  open.push(gateway);
  const client = createTestClient(gateway.baseUrl, options);
  open.push(client);
  return { gateway, client };
}

const jsonOf = (body: Buffer): unknown => JSON.parse(body.toString("utf8"));
const good: ScriptedAnswer = {
  body: 'data: {"model":"m-2","choices":[{"delta":{"content":"hi"},"finish_reason":"stop"}]}\n\ndata: {"choices":[],"usage":{"prompt_tokens":3,"completion_tokens":2,"cost":0.5}}\n\ndata: [DONE]\n\n',
};

describe("chat", () => {
  it("sends every field of the specification, and its defaults", async () => {
    const { gateway, client } = await start(good);
    const request: ChatRequest = {
      model: "provider/m",
      messages: [
        { role: "system", content: "be kind" },
        {
          role: "user",
          content: [
            { kind: "text", text: "what is this?" },
            { kind: "image", url: pixelUri },
            { kind: "image", url: "https://a.example/b.png" },
          ],
        },
        { role: "assistant", content: "a pixel" },
        { role: "user", content: "thanks" },
      ],
    };
    await outcomeOf(client.chat(request, never()));
    await outcomeOf(client.chat({ ...request, maxTokens: 5, temperature: 0, stream: false }, never()));
    const [first, second] = gateway.requests.map(({ body }) => jsonOf(body));
    expect(first).toEqual({
      model: "provider/m",
      messages: [
        { role: "system", content: "be kind" },
        {
          role: "user",
          content: [
            { type: "text", text: "what is this?" },
            { type: "image_url", image_url: { url: pixelUri } },
            { type: "image_url", image_url: { url: "https://a.example/b.png" } },
          ],
        },
        { role: "assistant", content: "a pixel" },
        { role: "user", content: "thanks" },
      ],
      max_tokens: 1024,
      temperature: 1,
      stream: true,
      stream_options: { include_usage: true },
    });
    expect(second).toMatchObject({ max_tokens: 5, temperature: 0, stream: false });
    expect(second).not.toHaveProperty("stream_options");
    for (const body of [first, second]) expect(chatRequestSchema.safeParse(body).error).toBeUndefined();
    expect(gateway.requests[0]?.headers).toMatchObject({
      authorization: `Bearer ${apiKey}`,
      "content-type": "application/json",
    });
  });

  it("returns the model that answered and the reported usage", async () => {
    const { client } = await start(good);
    const { last } = await outcomeOf(client.chat(hello, never()));
    expect(last).toEqual({
      kind: "finish",
      reason: "stop",
      model: "m-2",
      usage: { promptTokens: 3, completionTokens: 2, costUsd: 0.5, isEstimated: false },
    });
  });

  it.each<[string, object, object]>([
    ["text", { content: "x".repeat(4000) }, { completionTokens: 1000 }],
    [
      "thoughts and text",
      { reasoning: "hm".repeat(1000), content: "x".repeat(4000) },
      { completionTokens: 1500 },
    ],
  ])("estimates a usage of 0 for %s", async (_, delta, expected) => {
    const usage = { prompt_tokens: 0, completion_tokens: 0, total_tokens: 0, cost: 0 };
    const { client } = await start({
      body: `data: ${JSON.stringify({ choices: [{ delta, finish_reason: "stop" }], usage })}\n\ndata: [DONE]\n\n`,
    });
    const { last } = await outcomeOf(client.chat(hello, never()));
    expect(last).toMatchObject({ usage: { promptTokens: 2, ...expected, isEstimated: true } });
    expect(last).not.toHaveProperty("usage.costUsd");
  });

  it("believes a cost of 0 beside counts", async () => {
    const usage = { prompt_tokens: 3, completion_tokens: 4, cost: 0 };
    const delta = { content: "x".repeat(4000) };
    const { client } = await start({
      body: `data: ${JSON.stringify({ choices: [{ delta, finish_reason: "stop" }], usage })}\n\ndata: [DONE]\n\n`,
    });
    const { last } = await outcomeOf(client.chat(hello, never()));
    expect(last).toMatchObject({
      usage: { promptTokens: 3, completionTokens: 4, costUsd: 0, isEstimated: false },
    });
  });

  it("estimates usage that is not reported, without counting base64", async () => {
    const { client } = await start({
      body: '{"choices":[{"message":{"content":"12345678"},"finish_reason":"stop"}]}',
    });
    const messages = [
      {
        role: "user",
        content: [
          { kind: "text", text: "äöü" },
          { kind: "image", url: pixelUri.repeat(1000) },
        ],
      },
    ] as const;
    const { last } = await outcomeOf(client.chat({ model: "m", messages }, never()));
    expect(last).toMatchObject({ usage: { promptTokens: 2 + 800, completionTokens: 2, isEstimated: true } });
  });

  it.each([
    { temperature: 2.1 },
    { temperature: -1 },
    { temperature: Number.NaN },
    { maxTokens: 0 },
    { maxTokens: 1.5 },
    { messages: [] },
    { model: "" },
  ])("refuses %j before it sends anything", async (change) => {
    const { gateway, client } = await start(good);
    expect(await failureOf(client.chat({ ...hello, ...change }, never()))).toMatchObject({
      code: "gateway-bad-request",
    });
    expect(gateway.requests).toHaveLength(0);
  });

  it.each([
    ["stream_options", { message: "Unknown field", param: "stream_options" }, "stream_options"],
    [
      "include_usage",
      { message: "extra fields not permitted: stream_options.include_usage" },
      "stream_options",
    ],
    [
      "temperature",
      {
        message:
          "Unsupported value: 'temperature' does not support 0.5. Only the default (1) value is supported.",
      },
      "temperature",
    ],
    [
      "max_tokens",
      { message: "Unsupported parameter: 'max_tokens'. Use 'max_completion_tokens' instead." },
      "max_tokens",
    ],
  ])("leaves out %s, once and from then on, for a server that refuses it", async (_, error, field) => {
    const { gateway, client } = await start((request) =>
      request.body.includes(`"${field}"`) ? { status: 400, body: JSON.stringify({ error }) } : good,
    );
    expect(await outcomeOf(client.chat(hello, never()))).toMatchObject({ text: "hi" });
    expect(await outcomeOf(client.chat(hello, never()))).toMatchObject({ text: "hi" });
    expect(gateway.requests).toHaveLength(3);
  });

  it("answers both of two first requests at once to a server that refuses a field", async () => {
    const error = { message: "Unsupported parameter: 'max_tokens'. Use 'max_completion_tokens' instead." };
    const refusal = { status: 400, body: JSON.stringify({ error }) };
    const { promise: haveBoth, resolve: sendBoth } = Promise.withResolvers<typeof refusal>();
    let refused = 0;
    const { gateway, client } = await start((request) => {
      if (!request.body.includes('"max_tokens"')) return good;
      refused++;
      if (refused === 2) sendBoth(refusal);
      return haveBoth;
    });
    const outcomes = await Promise.all([1, 2].map(() => outcomeOf(client.chat(hello, never()))));
    expect(outcomes.map(({ text }) => text)).toEqual(["hi", "hi"]);
    expect(gateway.requests).toHaveLength(4);
  });

  it("does not retry endlessly when a field is rejected again", async () => {
    const { gateway, client } = await start({
      status: 400,
      body: '{"error":{"message":"stream_options and temperature are not supported"}}',
    });
    expect(await failureOf(client.chat(hello, never()))).toMatchObject({ code: "gateway-bad-request" });
    expect(gateway.requests.length).toBeLessThanOrEqual(3);
  });

  it("learns that a model rejects images, and that another one draws", async () => {
    const { client } = await start((request) => {
      if (request.path === "/v1/models") return { body: '{"data":[{"id":"gpt-4o"},{"id":"m"}]}' };
      if (request.body.includes("gpt-4o"))
        return { status: 400, body: '{"error":{"message":"This model does not support image inputs"}}' };
      return {
        body: JSON.stringify({
          choices: [{ message: { images: [{ image_url: { url: pixelUri } }] }, finish_reason: "stop" }],
        }),
      };
    });
    expect((await client.listModels(never())).map(({ capabilities }) => capabilities.seesImages)).toEqual([
      true,
      undefined,
    ]);
    const messages = [{ role: "user", content: [{ kind: "image", url: pixelUri }] }] as const;
    expect(await failureOf(client.chat({ model: "gpt-4o", messages }, never()))).toMatchObject({
      code: "gateway-unsupported",
    });
    await outcomeOf(client.chat({ model: "m", messages }, never()));
    expect(client.knownModels()).toMatchObject([
      { capabilities: { seesImages: false } },
      { capabilities: { drawsInChat: true } },
    ]);
  });

  it("shows the Markdown of an image that cannot be loaded, with a notice", async () => {
    const { client } = await start(
      {
        body: '{"choices":[{"message":{"content":"see ![x](https://a.example/b.png)"},"finish_reason":"stop"}]}',
      },
      { imageHosts: ["a.example"], downloadImage: () => Promise.reject(new Error("no")) },
    );
    expect(await outcomeOf(client.chat(hello, never()))).toMatchObject({
      text: "see ![x](https://a.example/b.png)",
      notices: ["A picture in the answer could not be loaded and is left out."],
      finish: "stop",
    });
  });

  it("does not time out during an event of several megabytes", async () => {
    const large = Buffer.concat([pixel, randomBytes(4_000_000)]);
    const url = `data:image/png;base64,${large.toString("base64")}`;
    const { client } = await start(
      {
        body: `data: ${JSON.stringify({ choices: [{ delta: { images: [{ image_url: { url } }] }, finish_reason: "stop" }] })}\n\n`,
      },
      { maxImageBytes: 5_000_000 },
    );
    expect(await outcomeOf(client.chat(hello, never()))).toMatchObject({
      images: ["image/png"],
      finish: "stop",
    });
    const small = await start(
      { body: `{"choices":[{"message":{"content":"![x](${url})"},"finish_reason":"stop"}]}` },
      { maxImageBytes: 1000 },
    );
    expect(await outcomeOf(small.client.chat(hello, never()))).toMatchObject({ error: "gateway-bad-answer" });
  });
});

const one: ScriptedAnswer = { body: JSON.stringify({ data: [{ url: pixelUri }] }) };

describe("image generation", () => {
  const draw = { model: "dall-e-3", prompt: "a cat", count: 2, size: "512x256" };
  const two = { body: JSON.stringify({ data: [{ url: pixelUri }, { url: pixelUri }] }) };

  it("sends the fields of the specification", async () => {
    const { gateway, client } = await start(two);
    await client.generateImages(draw, never());
    await client.generateImages({ model: "m", prompt: "p" }, never());
    const bodies = gateway.requests.map(({ body }) => jsonOf(body));
    expect(bodies).toEqual([
      { model: "dall-e-3", prompt: "a cat", n: 2, size: "512x256", response_format: "b64_json" },
      { model: "m", prompt: "p", n: 1, response_format: "b64_json" },
    ]);
    for (const body of bodies) expect(imageRequestSchema.safeParse(body).error).toBeUndefined();
  });

  it.each<[string, { url?: string; b64_json?: string; media_type?: string; output_format?: string }]>([
    ["url", { url: "https://pictures.example/a.png" }],
    ["b64_json", { b64_json: pixel.toString("base64") }],
    [
      "b64_json with its type",
      { b64_json: pixel.toString("base64"), media_type: "image/png", output_format: "png" },
    ],
    ["a data URI in url", { url: pixelUri }],
    ["a data URI in b64_json", { b64_json: pixelUri }],
  ])("reads a picture as %s", async (_, item) => {
    const asked: string[] = [];
    const { client } = await start(
      { body: JSON.stringify({ created: 1, data: [{ ...item, revised_prompt: "a small cat" }] }) },
      {
        prices: { "dall-e-3": { perImageUsd: 0.04 } },
        downloadImage: (url) => {
          asked.push(url);
          return Promise.resolve(pixel);
        },
      },
    );
    const answer = await client.generateImages({ ...draw, count: 1 }, never());
    expect(answer.images).toMatchObject([{ mediaType: "image/png", revisedPrompt: "a small cat" }]);
    expect(Buffer.from(answer.images[0]?.bytes ?? []).equals(pixel)).toBe(true);
    expect(answer.usage).toEqual({ images: 1, costUsd: 0.04, isEstimated: false });
    expect(asked).toEqual(item.url?.startsWith("https") === true ? [item.url] : []);
  });

  it("returns the images that can be loaded, with a notice for the others", async () => {
    const { client } = await start({
      body: JSON.stringify({ data: [{ url: pixelUri }, {}, { b64_json: "aGVsbG8=" }] }),
    });
    const answer = await client.generateImages(draw, never());
    expect(answer.images).toHaveLength(1);
    expect(answer.notices).toEqual([
      "A picture in the answer was in no format that can be shown, and is left out.",
    ]);
  });

  it.each<[string, string, string]>([
    ["no picture", '{"data":[]}', "gateway-empty-answer"],
    ["another shape", '{"hello":1}', "gateway-bad-answer"],
    [
      "an error with status 200",
      '{"error":{"message":"blocked by content policy","type":"invalid_request_error"}}',
      "gateway-refused",
    ],
    ["a page", "<html></html>", "gateway-bad-answer"],
    ["cut JSON", '{"data":[', "gateway-bad-answer"],
    ["words", "soon", "gateway-bad-answer"],
    ["nothing", "", "gateway-bad-answer"],
  ])("fails for %s", async (_, body, code) => {
    const { client, gateway } = await start({ body });
    expect(await failureOf(client.generateImages(draw, never()))).toMatchObject({ code });
    expect(gateway.requests).toHaveLength(1);
  });

  it.each([{ size: "big" }, { count: 0 }, { count: 1.5 }, { prompt: " " }, { model: "" }])(
    "refuses %j before it sends anything",
    async (change) => {
      const { gateway, client } = await start({ body: "{}" });
      expect(await failureOf(client.generateImages({ ...draw, ...change }, never()))).toMatchObject({
        code: "gateway-bad-request",
      });
      expect(gateway.requests).toHaveLength(0);
    },
  );

  it("waits during blank lines that keep the connection open", async () => {
    const { client } = await start({
      body: `\n \n\n${JSON.stringify({ data: [{ url: pixelUri }] })}`,
      cut: "bytes",
    });
    expect((await client.generateImages({ ...draw, count: 1 }, never())).images).toHaveLength(1);
  });

  it.each<[string, (n: number, index: number) => ScriptedAnswer]>([
    ["refuses more", (n) => (n > 1 ? { status: 400, body: '{"error":{"message":"xyzzy"}}' } : one)],
    ["sends one whatever is asked for", () => one],
  ])("asks a model one picture at a time that %s", async (_, answer) => {
    const { client } = await start(({ body }, index) => answer((jsonOf(body) as { n: number }).n, index));
    const drawn = await client.generateImages({ ...draw, count: 3 }, never());
    expect(drawn.images).toHaveLength(3);
    expect(drawn.usage).toMatchObject({ images: 3 });
  });

  it("keeps the pictures that came before a failure", async () => {
    const { client } = await start((_, index) => (index < 2 ? one : { status: 400, body: "{}" }));
    expect((await client.generateImages({ ...draw, count: 4 }, never())).images).toHaveLength(2);
  });
});
