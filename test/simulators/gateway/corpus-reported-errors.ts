import { chunk, done, event, json, sse, words, type CorpusRow } from "./corpus-row.ts";

const refused = (status: number, body: unknown) => json(JSON.stringify(body), status);
const fails = (error: string) => ({ text: "", error });
const page = (status: number, title: string) => ({
  status,
  headers: { "content-type": "text/html; charset=UTF-8" },
  body: `<!DOCTYPE html>\n<html><head><title>${title}</title></head><body><h1>${title}</h1></body></html>`,
});

/** Errors that somebody met and reported, inside a stream and as bodies of all shapes. */
export const reportedErrorRows: readonly CorpusRow[] = [
  // These errors come inside an answer with status 200.
  {
    name: "llama.cpp: a context error with status 200",
    source: "https://github.com/oobabooga/textgen/issues/7257",
    answer: refused(200, {
      error: {
        code: 400,
        message:
          "the request exceeds the available context size. try increasing the context size or enable context shift",
        type: "exceed_context_size_error",
        n_prompt_tokens: 14_429,
        n_ctx: 8192,
      },
    }),
    expected: fails("gateway-context-length"),
  },
  {
    name: "LM Studio: an error beside its own message",
    source: "https://github.com/zendev-sh/goai/pull/110",
    answer: sse("event: error\n", event({ error: { message: "Compute error." }, message: "Compute error." })),
    expected: fails("gateway-error"),
  },
  {
    name: "LM Studio: a context error as a string in the stream",
    source: "https://github.com/dyad-sh/dyad/issues/925",
    answer: sse(
      event({
        error:
          "Trying to keep the first 14538 tokens when context the overflows. However, the model is loaded with context length of only 2048 tokens, which is not enough. Try to load the model with a larger context length, or provide a shorter input",
      }),
    ),
    expected: fails("gateway-context-length"),
  },
  {
    name: "LM Studio: the context is full after words",
    source: "https://github.com/lmstudio-ai/lmstudio-bug-tracker/issues/1251",
    answer: sse(
      chunk({ content: words }),
      event({
        error: {
          message:
            "Reached context length of 4096 tokens with model (arch: qwen3vlmoe) that does not currently support mid-generation context overflow. Try reloading with a larger context length or shortening the prompt/chat.",
        },
      }),
    ),
    expected: { text: words, error: "gateway-interrupted" },
  },
  {
    name: "OpenRouter: an error beside empty choices",
    source: "https://github.com/diegosouzapw/OmniRoute/pull/8210",
    answer: sse(
      ": OPENROUTER PROCESSING\n\n",
      event({
        id: "gen",
        object: "chat.completion.chunk",
        choices: [],
        error: {
          code: 502,
          message: "Worker local total request limit reached (33/32)",
          metadata: { error_type: "provider_unavailable" },
        },
      }),
      done,
    ),
    expected: fails("gateway-error"),
  },
  {
    name: "OpenRouter: a prompt that is too long beside empty choices",
    source: "https://github.com/dcdpr/jp/pull/978",
    answer: sse(
      event({
        choices: [],
        error: { code: 400, message: "prompt is too long: 1284668 tokens > 1000000 maximum" },
      }),
    ),
    expected: fails("gateway-context-length"),
  },
  {
    name: "OpenRouter: an error and its finish reason after words",
    source: "https://github.com/damianvtran/local-operator/pull/223",
    answer: sse(
      chunk({ content: words }),
      chunk({ content: "" }, "error", {
        error: { code: "server_error", message: "Provider disconnected", metadata: { error_type: "x" } },
      }),
    ),
    expected: { text: words, error: "gateway-interrupted" },
  },
  {
    name: "OpenRouter: the provider's own error in metadata",
    source: "https://github.com/diegosouzapw/OmniRoute/issues/3044",
    answer: refused(400, {
      error: {
        message: "Provider returned error",
        code: 400,
        metadata: {
          raw: JSON.stringify({
            error: {
              type: "invalid_request_error",
              code: "invalid_request_error",
              message: "Model 'moonshotai/kimi-k2.6' supports at most 1 image per prompt.",
            },
          }),
          provider_name: "Crucible",
          is_byok: false,
        },
      },
      user_id: "user_x",
    }),
    says: "at most 1 image per prompt",
    expected: fails("gateway-bad-request"),
  },
  {
    name: "OpenRouter: the provider's own words in metadata",
    source: "https://github.com/open-webui/computer/issues/293",
    answer: sse(
      event({
        error: {
          message: "Provider returned error",
          code: 429,
          metadata: {
            raw: "z-ai/glm-5.3-flash is temporarily rate-limited upstream. Please retry shortly, or add your own key to accumulate your rate limits: ...",
            provider_name: "BaseTen",
          },
        },
      }),
    ),
    says: "temporarily rate-limited upstream",
    expected: fails("gateway-rate-limited"),
  },
  {
    name: "a proxy of llama.cpp: the model is loading",
    source: "https://github.com/mindverse/Second-Me/issues/20",
    answer: sse(
      event({
        error: {
          code: 1,
          message:
            "Request processing failed: Error code: 503 - {'error': {'code': 503, 'message': 'Loading model', 'type': 'unavailable_error'}}",
          data: null,
        },
      }),
      done,
    ),
    expected: fails("gateway-error"),
  },
  {
    name: "Groq: a failed call of a tool in the stream",
    source: "https://github.com/langchain4j/langchain4j/issues/2585",
    answer: sse(
      event({
        error: {
          message:
            "Failed to call a function. Please adjust your prompt. See 'failed_generation' for more details.",
          type: "invalid_request_error",
          code: "tool_use_failed",
          failed_generation: "Tool use failed: no tool can be called with name getCarsList",
          status_code: 400,
        },
      }),
    ),
    expected: fails("gateway-bad-request"),
  },
  {
    name: "DashScope: an error with the answer's id",
    source: "https://github.com/anomalyco/opencode/issues/30702",
    answer: sse(
      event({
        error: {
          code: "invalid_parameter_error",
          param: null,
          message:
            "The provided messages input is invalid. The error info is [Unexpected item type in content.].",
          type: "invalid_request_error",
        },
        id: "chatcmpl-edda1233",
      }),
    ),
    expected: fails("gateway-bad-request"),
  },
  {
    name: "a proxy: the status of an error only in its words",
    source: "https://github.com/Oaklight/argo-proxy/issues/91",
    answer: sse(
      event({
        error: {
          message:
            "Error code: 400 - {'error': {'message': 'The response was filtered...', 'code': 'content_filter', 'innererror': {'code': 'ResponsibleAIPolicyViolation'}}}",
        },
      }),
    ),
    expected: fails("gateway-refused"),
  },
  {
    name: "MiniMax: no balance, with status 200 and choices null",
    source: "https://github.com/edenai/edenai-apis/pull/360",
    answer: refused(200, {
      id: "c",
      choices: null,
      base_resp: { status_code: 1008, status_msg: "insufficient balance" },
    }),
    expected: fails("gateway-payment"),
  },
  {
    name: "new-api: an error labelled as a stream",
    source: "https://github.com/QuantumNous/new-api/pull/1178",
    answer: {
      status: 400,
      body: JSON.stringify({ error: { message: "no", type: "upstream_error", param: "", code: null } }),
    },
    expected: fails("gateway-bad-request"),
  },
  // These errors have other shapes.
  {
    name: "one-api: a message that is only the request's id",
    source: "https://github.com/songquanpeng/one-api/issues/1290",
    answer: refused(422, {
      error: {
        message: " (request id: 2024040714324820864326815777479)",
        type: "upstream_error",
        param: "422",
        code: "bad_response_status_code",
      },
    }),
    expected: fails("gateway-bad-request"),
  },
  {
    name: "Mistral: a refusal without a body",
    source: "https://github.com/danny-avila/LibreChat/issues/1540",
    answer: { status: 422 },
    expected: fails("gateway-bad-request"),
  },
  {
    name: "DashScope: an error beside output null",
    source: "https://github.com/agentscope-ai/agentscope/issues/1295",
    answer: refused(400, {
      status_code: 400,
      request_id: "840fd60f",
      code: "InvalidParameter",
      message: "url error, please check url！",
      output: null,
      usage: null,
    }),
    expected: fails("gateway-bad-request"),
  },
  {
    name: "Gemini: a key that is not valid, with status 400",
    source: "https://github.com/continuedev/continue/issues/10290",
    answer: refused(400, {
      error: {
        message: JSON.stringify({
          error: {
            code: 400,
            message: "API key not valid. Please pass a valid API key.",
            status: "INVALID_ARGUMENT",
            details: [
              {
                "@type": "type.googleapis.com/google.rpc.ErrorInfo",
                reason: "API_KEY_INVALID",
                domain: "googleapis.com",
              },
            ],
          },
        }),
        code: 400,
        status: "Bad Request",
      },
    }),
    expected: fails("gateway-unauthorized"),
  },
  {
    name: "DeepSeek: content must be text, in the words of a parser",
    source: "https://github.com/chatboxai/chatbox/issues/1740",
    answer: {
      status: 422,
      headers: { "content-type": "text/plain; charset=utf-8" },
      body: "Failed to deserialize the JSON body into the target type: messages[2]: invalid type: sequence, expected a string at line 1 column 2901",
    },
    expected: fails("gateway-unsupported"),
  },
  {
    name: "DeepSeek: content must be text, in other words of a parser",
    source: "https://github.com/browser-use/browser-use/issues/159",
    answer: {
      status: 422,
      headers: { "content-type": "text/plain; charset=utf-8" },
      body: "Failed to deserialize the JSON body into the target type: messages[2]: data did not match any variant of untagged enum ChatCompletionRequestContent at line 1 column 15700",
    },
    expected: fails("gateway-unsupported"),
  },
  {
    name: "DeepSeek: an operation that is not there",
    source: "https://github.com/nextcloud/integration_openai/issues/284",
    answer: refused(404, { error_msg: "Not Found. Please check the configuration." }),
    says: "Please check the configuration",
    expected: fails("gateway-unsupported"),
  },
  {
    name: "xAI: an error beside its code",
    source: "https://github.com/nocmt/LLMSearchPlus/issues/2",
    answer: refused(400, {
      code: "Client specified an invalid argument",
      error: "The model expects a single `text` element per message.",
    }),
    says: "a single `text` element",
    expected: fails("gateway-bad-request"),
  },
  {
    name: "vLLM: more pictures than are allowed",
    source: "https://github.com/vllm-project/vllm/issues/17092",
    answer: refused(400, {
      object: "error",
      message: "At most 5 image(s) may be provided in one request.",
      type: "BadRequestError",
      param: null,
      code: 400,
    }),
    expected: fails("gateway-bad-request"),
  },
  {
    name: "MiMo: no endpoint that sees, with empty fields",
    source: "https://github.com/JohnnyZ93/oai-compatible-copilot/issues/229",
    answer: refused(404, {
      error: { code: "404", message: "No endpoints found that support image input", param: "", type: "" },
    }),
    expected: fails("gateway-unsupported"),
  },
  {
    name: "Anthropic: overloaded",
    source: "https://github.com/anthropics/claude-code/issues/35792",
    answer: refused(529, {
      type: "error",
      error: { type: "overloaded_error", message: "Overloaded" },
      request_id: "req_x",
    }),
    expected: fails("gateway-error"),
  },
  {
    name: "Ollama: too little memory",
    source: "https://github.com/yuntianhe2014/Easy-RAG/issues/9",
    answer: refused(500, {
      error: "model requires more system memory (3.7 GiB) than is available (3.6 GiB)",
    }),
    expected: fails("gateway-error"),
  },
  {
    name: "Ollama: a model that is not there",
    source: "https://github.com/yazinsai/OpenOats/issues/716",
    answer: refused(404, { error: "model 'qwen3' not found, try pulling it first" }),
    expected: fails("gateway-unknown-model"),
  },
  {
    name: "Zhipu: Spring's error body",
    source: "https://github.com/iOfficeAI/AionUi/issues/3408",
    answer: refused(404, {
      timestamp: "2026-06-23T16:25:06.732+00:00",
      status: 404,
      error: "Not Found",
      path: "/v4/v1/chat/completions",
    }),
    expected: fails("gateway-unsupported"),
  },
  {
    name: "FastAPI: a path that is not there",
    source: "https://github.com/chatchat-space/Langchain-Chatchat/issues/1094",
    answer: refused(404, { detail: "Not Found" }),
    expected: fails("gateway-unsupported"),
  },
  {
    name: "TrueFoundry: a model that does not chat",
    source: "https://github.com/truefoundry/models/pull/846",
    answer: refused(404, {
      status: "failure",
      message:
        "openai error: This is not a chat model and thus not supported in the v1/chat/completions endpoint. Did you mean to use v1/completions?",
      error: {
        message:
          "openai error: This is not a chat model and thus not supported in the v1/chat/completions endpoint. Did you mean to use v1/completions?",
        type: "APIError",
        code: "404",
      },
    }),
    expected: fails("gateway-unsupported"),
  },
  {
    name: "MiniMax: nginx has no such page",
    source: "https://github.com/continuedev/continue/issues/11752",
    answer: page(404, "404 Not Found"),
    expected: fails("gateway-unsupported"),
  },
  {
    name: "Cloudflare: an unknown error as a page",
    source: "https://github.com/anthropics/claude-code/issues/3197",
    answer: page(520, "api.anthropic.com | 520: Web server is returning an unknown error"),
    expected: fails("gateway-error"),
  },
  {
    name: "Cloudflare: a timeout as a page",
    source: "https://github.com/ollama/ollama/issues/3694",
    answer: page(524, "chat.example | 524: A timeout occurred"),
    expected: fails("gateway-timeout"),
  },
  {
    name: "Cloudflare: a timeout as JSON",
    source: "https://github.com/letta-ai/letta-code/pull/2136",
    answer: refused(520, { cloudflare_error: true, status: 520, title: "Error 520: Unknown Error" }),
    expected: fails("gateway-error"),
  },
  {
    name: "Cloudflare: a check for browsers",
    source: "https://github.com/vitali87/code-graph-rag/issues/142",
    answer: page(403, "Just a moment..."),
    expected: fails("gateway-bad-answer"),
  },
];
