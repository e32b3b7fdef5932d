import { chunk, done, event, finished, json, sse, uri, whole, words, type CorpusRow } from "./corpus-row.ts";

const safe = { hate: { filtered: false, severity: "safe" }, violence: { filtered: false, severity: "safe" } };
const usage = { prompt_tokens: 3, completion_tokens: 4, total_tokens: 7 };
const start = chunk({ role: "assistant", content: "" });
const plain = `${chunk({ content: words })}${chunk({}, "stop")}`;

/** Streams and whole answers that somebody met and reported. */
export const reportedStreamRows: readonly CorpusRow[] = [
  // These streams have unusual chunks.
  {
    name: "Azure: the filter's results before the first choice",
    source: "https://github.com/AbanteAI/archive-old-cli-mentat/issues/429",
    answer: sse(
      event({
        id: "",
        choices: [],
        created: 0,
        model: "",
        object: "",
        system_fingerprint: null,
        prompt_filter_results: [{ prompt_index: 0, content_filter_results: safe }],
      }),
      plain,
      done,
    ),
    expected: finished,
  },
  {
    name: "Azure: a choice without a delta after the words",
    source: "https://github.com/microsoft/autogen/issues/6465",
    answer: sse(
      chunk({ content: words }),
      event({
        id: "",
        choices: [
          {
            finish_reason: null,
            index: 0,
            content_filter_offsets: { check_offset: 3329, start_offset: 3329, end_offset: 3438 },
            content_filter_results: safe,
          },
        ],
        created: 0,
        model: "",
        object: "",
      }),
      chunk({}, "stop"),
      done,
    ),
    expected: finished,
  },
  {
    name: "Azure: delta null in the last piece",
    source: "https://github.com/microsoft/agent-framework/pull/5734",
    answer: sse(chunk({ content: words }), chunk(null, "stop"), done),
    expected: finished,
  },
  {
    name: "SGLang: null fields, and an empty finish reason until the end",
    source: "https://github.com/sgl-project/sglang/issues/3912",
    answer: sse(
      chunk({ role: null, content: words, tool_calls: null }, "", { usage: null }),
      chunk({ role: null, content: "", tool_calls: null }, "stop", { usage: null }),
      done,
    ),
    expected: finished,
  },
  {
    name: "SGLang: no finish reason at all, but [DONE]",
    source: "https://github.com/sgl-project/sglang/issues/4550",
    answer: sse(
      chunk({ role: null, content: words, reasoning_content: null, tool_calls: null }, null, { usage: null }),
      done,
    ),
    expected: finished,
  },
  {
    name: "SGLang: the finish reason twice",
    source: "https://github.com/sgl-project/sglang/pull/8417",
    answer: sse(chunk({ content: words }, "stop"), chunk({}, "stop"), done),
    expected: finished,
  },
  {
    name: "vLLM: choices null in the chunk with the usage",
    source: "https://github.com/QuantumNous/new-api/issues/7470",
    answer: sse(plain, event({ id: "c", object: "chat.completion.chunk", choices: null, usage }), done),
    expected: finished,
  },
  {
    name: "Z.ai: a chunk with null and empty fields only",
    source: "https://github.com/zai-org/GLM-5/issues/91",
    answer: sse(
      event({
        id: "",
        object: "",
        created: 0,
        model: "",
        system_fingerprint: null,
        choices: null,
        usage: null,
      }),
      done,
    ),
    expected: { text: "", error: "gateway-empty-answer" },
  },
  {
    name: "vLLM: a whole answer whose choices are null",
    source: "https://github.com/langchain-ai/langchain/pull/35236",
    answer: json(JSON.stringify({ id: "c", object: "chat.completion", model: "m", choices: null, usage })),
    expected: { text: "", error: "gateway-empty-answer" },
  },
  {
    name: "tool_calls null in each piece",
    source: "https://github.com/vllm-project/guidellm/pull/752",
    answer: sse(
      start,
      chunk({ content: words, tool_calls: null }),
      chunk({ tool_calls: null }, "stop"),
      done,
    ),
    expected: finished,
  },
  {
    name: "a call of a tool that nobody offered",
    source: "https://github.com/Budibase/budibase/pull/18053",
    answer: sse(
      chunk({
        role: "assistant",
        content: null,
        tool_calls: [{ index: 0, id: "t", type: "function", function: { name: "search", arguments: "{}" } }],
      }),
      chunk({}, "tool_calls"),
      done,
    ),
    expected: { text: "", error: "gateway-empty-answer" },
  },
  {
    name: "Grok: the usage, and then a chunk with neither",
    source: "https://github.com/BerriAI/litellm/issues/17136",
    answer: sse(plain, event({ choices: [], usage }), event({ choices: [] }), done),
    expected: finished,
  },
  {
    name: "the usage after [DONE]",
    source: "https://github.com/Continuum-AI-Corp/OrcaRouter-Lite/issues/127",
    answer: sse(plain, done, event({ choices: [], usage })),
    expected: finished,
  },
  {
    name: "OpenRouter: a picture with an index beside null thoughts",
    source: "https://github.com/MartialBE/one-hub/pull/817",
    answer: sse(
      chunk({ role: "assistant", content: words, reasoning: null }),
      chunk({
        role: "assistant",
        content: "",
        images: [{ type: "image_url", image_url: { url: uri }, index: 0 }],
      }),
      chunk({ role: "assistant", content: "" }, "stop"),
      done,
    ),
    expected: { ...finished, images: ["image/png"] },
  },
  {
    name: "MiMo: thoughts and content null",
    source: "https://github.com/HKUDS/nanobot/issues/3443",
    answer: json(whole({ role: "assistant", content: null, reasoning: "hm" })),
    expected: { text: "", reasoning: "hm", error: "gateway-empty-answer" },
  },
  {
    name: "DashScope: no blank behind data:, and deltas with a role only",
    source: "https://github.com/karthink/gptel/pull/592",
    answer: sse(
      `data:${JSON.stringify({ model: "deepseek-r1", choices: [{ index: 0, delta: { role: "assistant" } }] })}\n\n`,
      `data:${JSON.stringify({ model: "deepseek-r1", choices: [{ index: 0, delta: { reasoning_content: "hm", role: "assistant" } }] })}\n\n`,
      `data:${JSON.stringify({ model: "deepseek-r1", choices: [{ index: 0, delta: { content: words, role: "assistant" }, finish_reason: "stop" }] })}\n\n`,
      "data:[DONE]\n\n",
    ),
    expected: { ...finished, reasoning: "hm" },
  },
  {
    name: "Cline: the answer inside data",
    source: "https://github.com/cline/cline/issues/12647",
    answer: json(
      JSON.stringify({ data: JSON.parse(whole({ role: "assistant", content: words })), success: true }),
    ),
    expected: finished,
  },
  {
    name: "Cline: each chunk inside data",
    source: "https://github.com/router-for-me/CLIProxyAPI/issues/4512",
    answer: sse(
      ...[
        { delta: { reasoning: "hm" }, finish_reason: null },
        { delta: { content: words }, finish_reason: "stop" },
      ].map((choice) => event({ success: true, data: { choices: [{ index: 0, ...choice }] } })),
      done,
    ),
    expected: { ...finished, reasoning: "hm" },
  },
  {
    name: "Mistral: references between parts of text",
    source: "https://github.com/meilisearch/meilisearch/pull/6327",
    answer: sse(
      chunk({ content: "Grüße, " }),
      chunk({
        content: [
          { type: "reference", reference_ids: [1] },
          { type: "text", text: "世界 🦜!" },
        ],
      }),
      chunk({ content: "" }, "stop"),
      done,
    ),
    expected: finished,
  },
  {
    name: "llama.cpp: gpt-oss ends its thoughts and answers at once",
    source: "https://github.com/ggml-org/llama.cpp/pull/15181",
    answer: sse(
      chunk({ content: "<|channel|>analysis<|message|>hm" }),
      chunk({ content: `<|end|>${words}` }),
      chunk({}, "stop"),
      done,
    ),
    expected: { ...finished, reasoning: "hm" },
  },
  {
    // A preamble is for people: https://github.com/openai/harmony/blob/main/docs/format.md#preambles
    name: "mlx: gpt-oss says what it is about to do in a channel of its own",
    source: "https://github.com/ml-explore/mlx-lm/pull/1867",
    answer: sse(
      ...[
        "<|channel|>analysis<|message|>hm<|end|><|start|>assistant<|chan",
        "nel|>commentary<|message|>I look it up.<|e",
        "nd|><|start|>assistant<|channel|>final<|message|>",
        words,
      ].map((content) => chunk({ content })),
      chunk({}, "stop"),
      done,
    ),
    expected: { text: `I look it up.\n\n${words}`, reasoning: "hm", finish: "stop" },
  },
  {
    name: "mlx: gpt-oss says what it is about to do without a thought",
    source: "https://github.com/ml-explore/mlx-lm/pull/1867",
    answer: sse(
      chunk({
        content: `<|channel|>commentary<|message|>I look it up.<|end|><|start|>assistant<|channel|>final<|message|>${words}`,
      }),
      chunk({}, "stop"),
      done,
    ),
    expected: { text: `I look it up.\n\n${words}`, finish: "stop" },
  },
  {
    name: "gpt-oss: thoughts and answer in channels",
    source: "https://github.com/kekzl/imp/pull/768",
    answer: json(
      whole({
        content: `<|channel|>analysis<|message|>hm<|end|><|start|>assistant<|channel|>final<|message|>${words}`,
      }),
    ),
    expected: { ...finished, reasoning: "hm" },
  },
  // These streams have unusual keep-alives and framing.
  {
    name: "a comment that a proxy has made data",
    source: "https://github.com/mnfst/llm-gateway/issues/2053",
    answer: sse("data: : OPENROUTER PROCESSING\n\n", plain, done),
    expected: finished,
  },
  {
    name: "empty data to keep the connection open",
    source: "https://github.com/netease-lcap/wave-agent/pull/1326",
    answer: sse("data:\n\n", chunk({ content: words }), "data: \n\n", chunk({}, "stop"), done),
    expected: finished,
  },
  {
    name: "a ping whose data is an empty string",
    source: "https://github.com/caozhiyuan/copilot-api/pull/88",
    answer: sse('event: ping\ndata: ""\n\n', plain, done),
    expected: finished,
  },
  {
    name: "comments between events with an id",
    source: "https://github.com/theopenco/llmgateway/pull/2334",
    answer: sse(`id: 1\n${chunk({ content: words })}`, ": ping\n\n", `id: 2\n${chunk({}, "stop")}`, done),
    expected: finished,
  },
  {
    name: "llama.cpp: a colon alone",
    source: "https://github.com/coder/coder/issues/28185",
    answer: sse(":\n", chunk({ content: words }), ":\n", chunk({}, "stop"), done),
    expected: finished,
  },
  {
    name: "Azure: events without blank lines between them",
    source: "https://github.com/owndev/Open-WebUI-Functions/issues/54",
    answer: sse(
      ...[
        chunk({ role: "assistant", content: null, tool_calls: null }),
        chunk({ role: null, content: words, tool_calls: null }),
        chunk({}, "stop"),
        done,
      ].map((part) => part.trimEnd() + "\n"),
    ),
    expected: finished,
  },
  // These streams end in different ways.
  {
    name: "vLLM: the engine stops an answer and says [DONE]",
    source: "https://github.com/vllm-project/vllm/issues/57082",
    answer: sse(chunk({ content: words }), chunk({ content: "" }, "abort"), done),
    expected: { text: words, error: "gateway-interrupted" },
  },
  {
    name: "vLLM: nothing but [DONE] after an error that is dropped",
    source: "https://github.com/vllm-project/vllm/pull/40986",
    answer: sse(done),
    expected: { text: "", error: "gateway-empty-answer" },
  },
  {
    name: "Zhipu: a finish reason for what must not be said",
    source: "https://github.com/langgenius/dify/issues/7559",
    answer: sse(chunk({ content: words }), chunk({}, "sensitive"), done),
    expected: { text: words, finish: "filtered" },
  },
  {
    name: "a filtered answer without a word",
    source: "https://github.com/anomalyco/opencode/issues/44092",
    answer: sse(start, chunk({}, "sensitive"), done),
    expected: { text: "", error: "gateway-refused" },
  },
  {
    name: "Z.ai: the network failed",
    source: "https://github.com/promptfoo/promptfoo/pull/9905",
    answer: sse(chunk({ content: words }), chunk({}, "network_error"), done),
    expected: { text: words, error: "gateway-interrupted" },
  },
  {
    name: "OpenRouter: a failure that only the provider's own reason tells",
    source: "https://github.com/OleksandrChekhovskyi/hax/pull/15",
    answer: sse(
      event({
        choices: [
          {
            index: 0,
            delta: { role: "assistant", content: "" },
            finish_reason: "stop",
            native_finish_reason: "network_error",
          },
        ],
      }),
      done,
    ),
    expected: { text: "", error: "gateway-error" },
  },
  {
    name: "LiteLLM: a failed answer that ends as an empty one",
    source: "https://github.com/BerriAI/litellm/issues/36768",
    answer: sse(start, chunk({}, "stop"), done),
    expected: { text: "", error: "gateway-empty-answer" },
  },
  {
    name: "LM Studio: nothing but the usage where the prompt is too long",
    source: "https://github.com/lmstudio-ai/lmstudio-bug-tracker/issues/2339",
    answer: sse(
      start,
      chunk({}, "stop"),
      event({ choices: [], usage: { ...usage, completion_tokens: 0 } }),
      done,
    ),
    expected: { text: "", error: "gateway-empty-answer" },
  },
];
