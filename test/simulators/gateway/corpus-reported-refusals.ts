import { json, type CorpusRow } from "./corpus-row.ts";

const refused = (status: number, body: unknown) => json(JSON.stringify(body), status);
const fails = (error: string) => ({ text: "", error });

/** Refusals that somebody met and reported: no balance, rate limits, too much text and forbidden content. */
export const reportedRefusalRows: readonly CorpusRow[] = [
  // These refusals are about money and rate limits.
  {
    name: "MiniMax: no balance, with status 429",
    source: "https://github.com/modelscope/modelscope/issues/1691",
    answer: refused(429, {
      error: { http_code: "429", message: "insufficient balance (1008)", type: "insufficient_balance_error" },
      request_id: "xxxx",
    }),
    expected: fails("gateway-payment"),
  },
  {
    name: "MiniMax: no balance, with status 500",
    source: "https://github.com/MiniMax-AI/MiniMax-M2/issues/62",
    answer: refused(500, {
      type: "error",
      error: { type: "api_error", message: "insufficient balance (1008)" },
      request_id: "05997465",
    }),
    expected: fails("gateway-payment"),
  },
  {
    name: "sub2api: no balance, without an error object",
    source: "https://github.com/Wei-Shaw/sub2api/issues/890",
    answer: refused(403, { code: "INSUFFICIENT_BALANCE", message: "Insufficient account balance" }),
    expected: fails("gateway-payment"),
  },
  {
    name: "Groq: the pause in words",
    source: "https://github.com/Aider-AI/aider/issues/3265",
    answer: refused(429, {
      error: {
        message:
          "Rate limit reached for model `gemma2-9b-it` in organization `...` service tier `on_demand` on tokens per minute (TPM): Limit 15000, Used 11972, Requested 4351. Please try again in 5.289s. Visit https://console.groq.com/docs/rate-limits for more information.",
        type: "tokens",
        code: "rate_limit_exceeded",
      },
    }),
    expected: { ...fails("gateway-rate-limited"), retryAfterMs: 5289 },
  },
  {
    name: "Groq: a pause beside an address for billing",
    source: "https://github.com/ago19800/HomeMind/issues/29",
    answer: refused(429, {
      error: {
        message:
          "Rate limit reached for model `llama-3.3-70b-versatile` in organization `org_x` service tier `on_demand` on tokens per minute (TPM): Limit 12000, Used 4437, Requested 9854. Please try again in 11.455s. Need more tokens? Upgrade to Dev Tier today at https://console.groq.com/settings/billing",
        type: "tokens",
        code: "rate_limit_exceeded",
      },
    }),
    expected: { ...fails("gateway-rate-limited"), retryAfterMs: 11_455 },
  },
  {
    name: "Groq: a pause of minutes",
    source: "https://github.com/continuedev/continue/issues/10920",
    answer: refused(429, {
      error: {
        message:
          "Rate limit reached for model `llama-3.3-70b-versatile` in organization `org_x` service tier `on_demand` on tokens per day (TPD): Limit 100000, Used 97050, Requested 3619. Please try again in 9m38.016s. Need more tokens? Upgrade to Dev Tier today at https://console.groq.com/settings/billing",
        type: "tokens",
        code: "rate_limit_exceeded",
      },
    }),
    expected: { ...fails("gateway-rate-limited"), retryAfterMs: 578_016 },
  },
  {
    name: "Gemini: the quota of a minute, which sounds like that of the account",
    source: "https://github.com/google-gemini/gemini-cli/issues/8883",
    answer: refused(429, {
      error: {
        message: JSON.stringify({
          error: {
            code: 429,
            message:
              "You exceeded your current quota, please check your plan and billing details. For more information on this error, head to: https://ai.google.dev/gemini-api/docs/rate-limits.\n* Quota exceeded for metric: generativelanguage.googleapis.com/generate_content_free_tier_input_token_count, limit: 125000\nPlease retry in 15.002899939s.",
            status: "RESOURCE_EXHAUSTED",
          },
        }),
        code: 429,
        status: "Too Many Requests",
      },
    }),
    says: "You exceeded your current quota",
    expected: { ...fails("gateway-rate-limited"), retryAfterMs: 15_003 },
  },
  {
    name: "Gemini: the pause in an error inside a message",
    source: "https://github.com/RooCodeInc/Roo-Code/issues/3883",
    answer: refused(429, {
      error: {
        message: JSON.stringify({
          error: {
            code: 429,
            message: "You exceeded your current quota, please check your plan and billing details.",
            status: "RESOURCE_EXHAUSTED",
            details: [
              { "@type": "type.googleapis.com/google.rpc.Help", links: [] },
              { "@type": "type.googleapis.com/google.rpc.RetryInfo", retryDelay: "26s" },
            ],
          },
        }),
        code: 429,
        status: "Too Many Requests",
      },
    }),
    expected: { ...fails("gateway-rate-limited"), retryAfterMs: 26_000 },
  },
  {
    name: "OpenRouter: no balance for so many tokens",
    source: "https://github.com/Gitlawb/openclaude/issues/1125",
    answer: refused(402, {
      error: {
        message:
          "This request requires more credits, or fewer max_tokens. You requested up to 32000 tokens, but can only afford 27342. To increase, visit https://openrouter.ai/settings/credits and upgrade to a paid account",
        code: 402,
        metadata: { provider_name: null },
      },
      user_id: "user_x",
    }),
    expected: fails("gateway-payment"),
  },
  {
    name: "Azure: the pause in words, in seconds",
    source: "https://github.com/microsoft/action-python/issues/12",
    answer: refused(429, {
      error: {
        code: "429",
        message:
          "Requests to the Creates a completion for the chat message Operation under Azure OpenAI API version 2023-03-15-preview have exceeded call rate limit of your current OpenAI S0 pricing tier. Please retry after 30 seconds. Please go here: https://aka.ms/oai/quotaincrease if you would like to further increase the default rate limit.",
      },
    }),
    expected: { ...fails("gateway-rate-limited"), retryAfterMs: 30_000 },
  },
  {
    name: "Gemini: the pause in the error's details",
    source: "https://github.com/jenslys/opencode-gemini-auth/pull/7",
    answer: refused(429, [
      {
        error: {
          code: 429,
          message: "Resource has been exhausted (e.g. check quota).",
          status: "RESOURCE_EXHAUSTED",
          details: [{ "@type": "type.googleapis.com/google.rpc.RetryInfo", retryDelay: "55.846891726s" }],
        },
      },
    ]),
    expected: { ...fails("gateway-rate-limited"), retryAfterMs: 55_847 },
  },
  {
    name: "OpenAI: a request that is larger than a minute's tokens",
    source: "https://github.com/fork-dev/TrackerWin/issues/2595",
    answer: refused(429, {
      error: {
        message:
          "Request too large for gpt-4o in organization org-x on tokens per min (TPM): Limit 30000, Requested 132819. The input or output tokens must be reduced in order to run successfully. Visit https://platform.openai.com/account/rate-limits to learn more.",
        type: "tokens",
        param: null,
        code: "rate_limit_exceeded",
      },
    }),
    expected: fails("gateway-context-length"),
  },
  // These refusals say in words that the context is too long.
  {
    name: "llama.cpp: a context error with status 500",
    source: "https://github.com/ggml-org/llama.cpp/issues/19774",
    answer: refused(500, {
      error: { code: 500, message: "Context size has been exceeded.", type: "server_error" },
    }),
    expected: fails("gateway-context-length"),
  },
  {
    name: "LM Studio: a context error as a string",
    source: "https://github.com/lmstudio-ai/lmstudio-bug-tracker/issues/546",
    answer: refused(400, {
      error:
        "Trying to keep the first 111490 tokens when context the overflows. However, the model is loaded with context length of only 32768 tokens, which is not enough.",
    }),
    expected: fails("gateway-context-length"),
  },
  {
    name: "SGLang: the input is longer than the context",
    source: "https://github.com/QwenLM/Qwen3/issues/1321",
    answer: refused(400, {
      object: "error",
      message: "The input (61709 tokens) is longer than the model's context length (40960 tokens).",
      type: "BadRequestError",
      param: null,
      code: 400,
    }),
    expected: fails("gateway-context-length"),
  },
  {
    name: "SGLang: the input is longer than allowed",
    source: "https://github.com/sgl-project/sglang/issues/4048",
    answer: refused(400, {
      object: "error",
      message: "Input length (160062 tokens) exceeds the maximum allowed length (59862 tokens).",
      type: "BadRequestError",
      param: null,
      code: 400,
    }),
    expected: fails("gateway-context-length"),
  },
  {
    name: "vLLM: no room is left for an answer",
    source: "https://github.com/vllm-project/vllm/issues/4667",
    answer: refused(400, {
      object: "error",
      message: "max_tokens must be at least 1, got -186.",
      type: "BadRequestError",
      param: null,
      code: 400,
    }),
    expected: fails("gateway-context-length"),
  },
  {
    name: "MiniMax: the context window",
    source: "https://github.com/MiniMax-AI/MiniMax-M2/issues/119",
    answer: refused(400, {
      type: "error",
      error: {
        type: "bad_request_error",
        message: "invalid params, context window exceeds limit (2013)",
        http_code: "400",
      },
      request_id: "x",
    }),
    expected: fails("gateway-context-length"),
  },
  {
    name: "Kimi: the model's token limit",
    source: "https://github.com/MoonshotAI/kimi-cli/issues/2011",
    answer: refused(400, {
      error: {
        message: "Invalid request: Your request exceeded model token limit: 262144 (requested: 269030)",
        type: "invalid_request_error",
      },
    }),
    expected: fails("gateway-context-length"),
  },
  {
    name: "Moonshot: the model's maximum length",
    source: "https://github.com/MoonshotAI/MoonshotAI-Cookbook/issues/18",
    answer: refused(400, {
      error: { message: "model max length exceeded, max length:8192", type: "invalid_request_error" },
    }),
    expected: fails("gateway-context-length"),
  },
  {
    name: "Gemini: a list with one error",
    source: "https://github.com/google-gemini/gemini-cli/issues/6678",
    answer: refused(400, [
      {
        error: {
          code: 400,
          message: "The input token count (1200293) exceeds the maximum number of tokens allowed (1048576).",
          errors: [
            {
              message:
                "The input token count (1200293) exceeds the maximum number of tokens allowed (1048576).",
              domain: "global",
              reason: "badRequest",
            },
          ],
          status: "INVALID_ARGUMENT",
        },
      },
    ]),
    expected: fails("gateway-context-length"),
  },
  {
    name: "GitHub Models: the body is too large",
    source: "https://github.com/marimo-team/marimo/issues/8565",
    answer: refused(413, {
      error: {
        code: "tokens_limit_reached",
        message: "Request body too large for gpt-5-mini model. Max size: 4000 tokens.",
      },
    }),
    expected: fails("gateway-context-length"),
  },
  {
    name: "nginx: the bytes of a request, which say nothing about the length of its words",
    answer: {
      status: 413,
      headers: { "content-type": "text/html" },
      body: "<html><head><title>413 Request Entity Too Large</title></head><body><h1>413 Request Entity Too Large</h1></body></html>",
    },
    expected: fails("gateway-bad-request"),
  },
  {
    name: "Express: the same in words",
    answer: refused(413, { message: "request entity too large", type: "entity.too.large" }),
    expected: fails("gateway-bad-request"),
  },
  {
    name: "GitHub Copilot: empty fields beside the message",
    source: "https://github.com/zed-industries/zed/issues/20362",
    answer: refused(400, {
      error: {
        message: "prompt token count of 21225 exceeds the limit of 20000",
        param: "",
        code: "",
        type: "",
      },
    }),
    expected: fails("gateway-context-length"),
  },
  {
    name: "Groq: a request larger than a minute's tokens",
    source: "https://github.com/cline/cline/issues/4971",
    answer: refused(413, {
      error: {
        message:
          "Request too large for model `moonshotai/kimi-k2-instruct` in organization `org_01` service tier `on_demand` on tokens per minute (TPM): Limit 10000, Requested 15088, please reduce your message size and try again. Need more tokens? Upgrade to Dev Tier today at https://console.groq.com/settings/billing",
        type: "tokens",
        code: "rate_limit_exceeded",
      },
    }),
    expected: fails("gateway-context-length"),
  },
  {
    name: "DashScope: the range of the input's length",
    source: "https://github.com/QwenLM/qwen-code/issues/98",
    answer: refused(400, {
      error: {
        code: "invalid_parameter_error",
        message: "<400> InternalError.Algo.InvalidParameter: Range of input length should be [1, 204800]",
        type: "invalid_request_error",
      },
    }),
    expected: fails("gateway-context-length"),
  },
  {
    name: "Groq: the length of the messages, without numbers",
    source: "https://github.com/OpenHands/OpenHands/issues/1902",
    answer: refused(400, {
      error: {
        message: "Please reduce the length of the messages or completion.",
        type: "invalid_request_error",
        param: "messages",
        code: "context_length_exceeded",
      },
    }),
    expected: fails("gateway-context-length"),
  },
  {
    name: "Groq: a limit of the answer that is larger than the model's, which no shorter conversation helps",
    source: "https://github.com/Alishahryar1/free-claude-code/issues/1354",
    answer: refused(400, {
      error: {
        message:
          "`max_completion_tokens` must be less than or equal to `16384`, the maximum value for `max_completion_tokens` is less than the `context_window` for this model",
        type: "invalid_request_error",
        param: "max_completion_tokens",
      },
    }),
    expected: fails("gateway-bad-request"),
  },
  {
    name: "Ollama: the input is longer than the context",
    source: "https://github.com/nano-step/nano-brain/issues/208",
    answer: refused(400, { error: "the input length exceeds the context length" }),
    expected: fails("gateway-context-length"),
  },
  {
    name: "Perplexity: the length of all messages",
    source: "https://github.com/BerriAI/litellm/pull/21647",
    answer: refused(400, {
      error: { message: "The total length of all messages is too long.", type: "bad_request", code: 400 },
    }),
    expected: fails("gateway-context-length"),
  },
  {
    name: "Zhipu: the longest prompt",
    source: "https://github.com/tashfeenahmed/freellmapi/issues/873",
    answer: refused(400, { error: { code: "1261", message: "Prompt exceeds max length" } }),
    expected: fails("gateway-context-length"),
  },
  {
    name: "LiteLLM: an error of Anthropic's inside its own",
    source: "https://github.com/BrokkAi/brokk-app/issues/540",
    answer: refused(400, {
      error: {
        message:
          'litellm.BadRequestError: AnthropicException - b\'{"type":"error","error":{"type":"invalid_request_error","message":"input length and `max_tokens` exceed context limit: 179413 + 32768 > 200000, decrease input length or `max_tokens` and try again"}}\'. Received Model Group=anthropic/claude-sonnet-4-20250514\nAvailable Model Group Fallbacks=None',
        type: null,
        param: null,
        code: "400",
      },
    }),
    expected: fails("gateway-context-length"),
  },
  // These refusals are about forbidden content.
  {
    name: "Azure: the filter of the prompt",
    source: "https://github.com/openai/openai-dotnet/issues/55",
    answer: refused(400, {
      error: {
        message:
          "The response was filtered due to the prompt triggering Azure OpenAI's content management policy. Please modify your prompt and retry. To learn more about our content filtering policies please read our documentation: https://go.microsoft.com/fwlink/?linkid=2198766",
        type: null,
        param: "prompt",
        code: "content_filter",
        status: 400,
        innererror: { code: "ResponsibleAIPolicyViolation", content_filter_result: {} },
      },
    }),
    expected: fails("gateway-refused"),
  },
  {
    name: "GLM: the filter, in Chinese",
    source: "https://github.com/zai-org/feedback/issues/516",
    answer: refused(400, {
      error: { code: "1301", message: "系统检测到输入或生成内容可能包含不安全或敏感内容" },
    }),
    expected: fails("gateway-refused"),
  },
  {
    name: "DashScope: the inspection of what was asked",
    source: "https://github.com/camel-ai/owl/issues/432",
    answer: refused(400, {
      error: {
        code: "data_inspection_failed",
        param: null,
        message: "Input data may contain inappropriate content.",
        type: "data_inspection_failed",
      },
      id: "chatcmpl-deab386b",
      request_id: "deab386b",
    }),
    expected: fails("gateway-refused"),
  },
];
