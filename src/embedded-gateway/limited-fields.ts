import type { ChatBody, ImageBody, TranscriptionFields } from "./requests.ts";

/**
 * Request fields that are forwarded for a key with restrictions. Everything else is dropped: upstreams have fields that
 * choose other models (`models`, `route`, `provider`, `fallbacks`, `preset`), bill extras (`plugins`, `service_tier`,
 * `web_search_options`) or name other servers and keys (`api_base`, `api_key`).
 */
const chatFields: ReadonlySet<string> = new Set([
  "model",
  "messages",
  "max_tokens",
  "max_completion_tokens",
  "temperature",
  "top_p",
  "top_k",
  "min_p",
  "stop",
  "stream",
  "stream_options",
  "n",
  "seed",
  "presence_penalty",
  "frequency_penalty",
  "repetition_penalty",
  "logit_bias",
  "logprobs",
  "top_logprobs",
  "response_format",
  "modalities",
  "tools",
  "tool_choice",
  "parallel_tool_calls",
  "reasoning",
  "reasoning_effort",
  "include_reasoning",
  "verbosity",
  "user",
]);
const imageFields: ReadonlySet<string> = new Set([
  "model",
  "prompt",
  "n",
  "size",
  "response_format",
  "background",
  "output_format",
  "output_compression",
  "moderation",
  "style",
  "seed",
  "user",
]);
const transcriptionFields: ReadonlySet<string> = new Set([
  "model",
  "language",
  "prompt",
  "response_format",
  "temperature",
  "timestamp_granularities[]",
  "include[]",
]);

/** The chat body with the fields above. Of the tools only functions stay, since upstreams run the others at a price. */
export function limitChat(body: ChatBody): ChatBody {
  const limited = keep(body, chatFields);
  const tools: unknown = limited["tools"];
  if (tools === undefined) return limited;
  return {
    ...limited,
    tools: Array.isArray(tools) ? (tools as unknown[]).filter((tool) => isFunction(tool)) : undefined,
  };
}

/** The image body with the fields above. */
export function limitImage(body: ImageBody): ImageBody {
  return keep(body, imageFields);
}

/** The form with the fields above. */
export function limitTranscription(fields: TranscriptionFields): TranscriptionFields {
  return keep(fields, transcriptionFields);
}

function keep<T extends object>(body: T, names: ReadonlySet<string>): T {
  return Object.fromEntries(Object.entries(body).filter(([name]) => names.has(name))) as T;
}

function isFunction(tool: unknown): boolean {
  return typeof tool === "object" && tool !== null && "type" in tool && tool.type === "function";
}
