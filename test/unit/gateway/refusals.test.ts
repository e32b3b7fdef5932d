import { afterEach, expect, it } from "vitest";
import type { ChatMessage } from "../../../src/core/gateway.ts";
import { startScriptedGateway } from "../../simulators/gateway/scripted-gateway.ts";
import { createTestClient, failureOf, hello, never, outcomeOf } from "./harness.ts";

const open: { close(): Promise<void> }[] = [];
afterEach(async () => {
  for (const one of open.splice(0).toReversed()) await one.close();
});

const json = { "content-type": "application/json" };
const retryRules = { maxAttempts: 1, baseDelayMs: 1, maxDelayMs: 1 };

/** Refusals as public reports quote them: service, status, words. */
const refusals = {
  "gateway-context-length": [
    [
      "vLLM",
      400,
      "This model's maximum context length is 8192 tokens. However, your request has 9000 input tokens.",
    ],
    ["vLLM, older", 400, "The decoder prompt (length 9000) is longer than the maximum model length of 8192."],
    ["SGLang", 400, "The input (9000 tokens) is longer than the model's context length (8192 tokens)."],
    ["llama.cpp", 400, "the request exceeds the available context size (8192 tokens), try increasing it"],
    [
      "llama.cpp, as 500",
      500,
      "the request exceeds the available context size. try increasing the context size",
    ],
    [
      "LM Studio",
      400,
      "Trying to keep the first 9000 tokens when context the overflows. However, the model is loaded with context length of only 4096 tokens",
    ],
    [
      "TGI",
      422,
      "Input validation error: `inputs` tokens + `max_new_tokens` must be <= 4096. Given: 5000 `inputs` tokens and 1024 `max_new_tokens`",
    ],
    ["TGI, inputs", 422, "Input validation error: `inputs` must have less than 1024 tokens. Given: 1200"],
    [
      "Mistral",
      400,
      "Prompt contains 40000 tokens and 0 draft tokens, too large for model with 32768 maximum context length",
    ],
    ["Anthropic by OpenRouter", 400, "prompt is too long: 200251 tokens > 199999 maximum"],
    [
      "Bedrock by LiteLLM",
      400,
      "litellm.BadRequestError: BedrockException: Input is too long for requested model.",
    ],
    [
      "Gemini",
      400,
      "The input token count (1200000) exceeds the maximum number of tokens allowed (1048576).",
    ],
    ["Groq", 400, "Please reduce the length of the messages or completion."],
    ["xAI", 400, "This model's maximum prompt length is 131072 but the request contains 537812 tokens."],
    ["Moonshot", 400, "Invalid request: Your request exceeded model token limit: 8192"],
    ["MiniMax", 400, "invalid params, context window exceeds limit (2013)"],
    [
      "DashScope",
      400,
      "<400> InternalError.Algo.InvalidParameter: Range of input length should be [1, 30720]",
    ],
    ["Ark", 400, "Total tokens of image and text exceed max message tokens"],
    ["Ark, input", 400, "Input length 139024 exceeds the maximum length 131072"],
    ["GLM", 400, "Prompt 超长"],
    ["GLM by code", 400, "Prompt exceeds max length"],
    ["Databricks", 400, "Input exceeds max length of 8192 tokens"],
    [
      "Azure",
      400,
      "This model's maximum context length is 128000 tokens, however you requested 130000 tokens",
    ],
  ],
  "gateway-unsupported": [
    ["vLLM", 400, "At most 0 image(s) may be provided in one request."],
    ["vLLM, older", 400, "Qwen/Qwen2.5-7B is not a multimodal model"],
    [
      "llama.cpp",
      500,
      "image input is not supported - hint: if this is unexpected, you may need to provide the mmproj",
    ],
    [
      "DeepSeek",
      400,
      "Failed to deserialize the JSON body into the target type: messages[1]: unknown variant `image_url`, expected `text` at line 1 column 300",
    ],
    [
      "Groq",
      400,
      "'messages.1' : for 'role:user' the following must be satisfied[('messages.1.content' : value must be a string)]",
    ],
    ["OpenRouter", 404, "No endpoints found that support image input"],
    ["LM Studio", 400, "Model does not support images. Please use a model that does."],
    ["Azure", 400, "Invalid content type. image_url is only supported by certain models."],
  ],
} as const;

it.for(
  Object.entries(refusals).flatMap(([code, rows]) =>
    rows.map(([service, status, words]) => ({ code, service, status, words })),
  ),
)("$code in the words of $service", async ({ code, status, words }) => {
  const gateway = await startScriptedGateway({
    status,
    headers: json,
    body: JSON.stringify({ error: { message: words } }),
  });
  open.push(gateway);
  const client = createTestClient(gateway.baseUrl, { retryRules });
  open.push(client);
  expect(await failureOf(client.chat(hello, never()))).toMatchObject({ code });
});

it("neighbours of one role are sent as one message, and empty ones not at all", async () => {
  const body = JSON.stringify({ choices: [{ message: { content: "ok" }, finish_reason: "stop" }] });
  const gateway = await startScriptedGateway({ headers: json, body });
  open.push(gateway);
  const client = createTestClient(gateway.baseUrl);
  open.push(client);
  const picture = { kind: "image", url: "https://example.org/a.png" } as const;
  const messages: ChatMessage[] = [
    { role: "system", content: "Be brief." },
    { role: "system", content: "Be kind." },
    { role: "user", content: "one" },
    { role: "assistant", content: "" },
    { role: "user", content: [{ kind: "text", text: "two" }, picture] },
    { role: "user", content: "three" },
    { role: "assistant", content: "four" },
    { role: "assistant", content: "five" },
    { role: "user", content: "six" },
  ];
  expect(await outcomeOf(client.chat({ model: "m", messages }, never()))).toMatchObject({ text: "ok" });
  const sent = JSON.parse(gateway.requests[0]?.body.toString() ?? "") as { messages: unknown };
  expect(sent.messages).toEqual([
    { role: "system", content: "Be brief.\n\nBe kind." },
    {
      role: "user",
      content: [
        { type: "text", text: "one" },
        { type: "text", text: "two" },
        { type: "image_url", image_url: { url: picture.url } },
        { type: "text", text: "three" },
      ],
    },
    { role: "assistant", content: "four\n\nfive" },
    { role: "user", content: "six" },
  ]);
});
