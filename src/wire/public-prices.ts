import type { ModelPrice } from "../core/gateway.ts";

/**
 * What the makers of well-known models ask for, in USD for a million tokens in and out, as of July 2026, and
 * for Claude as of October 2026. A model is here only where a public list of that time has its price. Where
 * it depends on the length of the prompt, it is the lower step. The gateway's own list and MODEL_PRICES go
 * before it.
 * @see https://platform.claude.com/docs/en/about-claude/pricing, https://developers.openai.com/api/docs/pricing,
 * https://ai.google.dev/gemini-api/docs/pricing, https://api-docs.deepseek.com/quick_start/pricing,
 * https://github.com/BerriAI/litellm/blob/main/model_prices_and_context_window.json
 */
const chatPrices: Readonly<Record<string, readonly [inUsd: number, outUsd: number]>> = {
  "gpt-3.5-turbo": [0.5, 1.5],
  "gpt-4": [30, 60],
  "gpt-4-turbo": [10, 30],
  "gpt-4o": [2.5, 10],
  "gpt-4o-2024-05-13": [5, 15],
  "gpt-4o-mini": [0.15, 0.6],
  "gpt-4.1": [2, 8],
  "gpt-4.1-mini": [0.4, 1.6],
  "gpt-4.1-nano": [0.1, 0.4],
  "gpt-5": [1.25, 10],
  "gpt-5-mini": [0.25, 2],
  "gpt-5-nano": [0.05, 0.4],
  "gpt-5-pro": [15, 120],
  "gpt-5.1": [1.25, 10],
  "gpt-5.2": [1.75, 14],
  "gpt-5.4": [2.5, 15],
  "gpt-5.4-mini": [0.75, 4.5],
  "gpt-5.4-nano": [0.2, 1.25],
  "gpt-5.5": [5, 30],
  o1: [15, 60],
  o3: [2, 8],
  "o3-mini": [1.1, 4.4],
  "o4-mini": [1.1, 4.4],
  "claude-3-haiku": [0.25, 1.25],
  "claude-3-opus": [15, 75],
  "claude-3.5-haiku": [0.8, 4],
  "claude-3.5-sonnet": [3, 15],
  "claude-3.7-sonnet": [3, 15],
  "claude-haiku-4.5": [1, 5],
  "claude-haiku-5.5": [0.1, 0.5],
  "claude-sonnet-4": [3, 15],
  "claude-sonnet-4.5": [3, 15],
  "claude-sonnet-4.6": [3, 15],
  "claude-sonnet-5": [2, 10],
  "claude-sonnet-5.5": [2, 10],
  "claude-opus-4": [15, 75],
  "claude-opus-4.1": [15, 75],
  "claude-opus-4.5": [5, 25],
  "claude-opus-4.6": [5, 25],
  "claude-opus-4.7": [5, 25],
  "claude-opus-5": [5, 25],
  "claude-opus-5.5": [4, 20],
  "gemini-2.0-flash": [0.1, 0.4],
  "gemini-2.0-flash-lite": [0.075, 0.3],
  "gemini-2.5-flash": [0.3, 2.5],
  "gemini-2.5-flash-lite": [0.1, 0.4],
  "gemini-2.5-pro": [1.25, 10],
  "gemini-3-flash": [0.5, 3],
  "gemini-3-pro": [2, 12],
  "gemini-3.1-flash-lite": [0.25, 1.5],
  "gemini-3.1-pro": [2, 12],
  "deepseek-chat": [0.28, 0.42],
  "deepseek-reasoner": [0.28, 0.42],
};

/** USD for a minute of a recording. That of the turbo model is Groq's. */
const audioPrices: Readonly<Record<string, number>> = {
  "whisper-1": 0.006,
  "gpt-4o-transcribe": 0.006,
  "gpt-4o-mini-transcribe": 0.003,
  "whisper-large-v3-turbo": 0.000_67,
};

/** Some write a version with a dot, and some with a hyphen. */
const toKey = (id: string): string => id.toLowerCase().replaceAll(".", "-");

const byKey: ReadonlyMap<string, ModelPrice> = new Map<string, ModelPrice>([
  ...Object.entries(chatPrices).map(([id, [inputPerMillionUsd, outputPerMillionUsd]]) => {
    return [toKey(id), { inputPerMillionUsd, outputPerMillionUsd }] as const;
  }),
  ...Object.entries(audioPrices).map(
    ([id, perAudioMinuteUsd]) => [toKey(id), { perAudioMinuteUsd }] as const,
  ),
]);

/** Matches what names an edition of the same model. A longer name can be another model at another price. */
const edition = /^(?:latest|preview|\d{2,8})$/;

/** Returns the public price of a model, whose id may begin with its maker and end with its edition. */
export function publicPrice(modelId: string): ModelPrice | undefined {
  if (modelId.length > 200) return undefined;
  const words = toKey(modelId.slice(modelId.lastIndexOf("/") + 1)).split(/[-@]/);
  for (let end = words.length; end > 0; end -= 1) {
    const price = byKey.get(words.slice(0, end).join("-"));
    if (price !== undefined) return price;
    if (!edition.test(words[end - 1]!)) return undefined;
  }
  return undefined;
}

/** Who owns the models in the lists of Ollama and LM Studio, which run on a machine of the operator. */
const localOwners: ReadonlySet<string> = new Set(["library", "organization_owner"]);

/** The price of a model that runs locally, for each thing that is billed. */
const nothing: ModelPrice = {
  inputPerMillionUsd: 0,
  outputPerMillionUsd: 0,
  perAudioMinuteUsd: 0,
  perImageUsd: 0,
};

/** Returns a price of nothing for models of a local server, known by the owner in its list. */
export function localPrice(ownedBy: string | undefined): ModelPrice | undefined {
  return ownedBy !== undefined && localOwners.has(ownedBy) ? nothing : undefined;
}
