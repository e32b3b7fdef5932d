import {
  type ChatMessage,
  type Usage,
  type BilledAmounts,
  costOf,
  type KnownPrice,
  type ModelPrice,
} from "../core/gateway.ts";
import { publicPrice } from "./public-prices.ts";
import type { ReportedUsage } from "./completion-chunk.ts";

/** Prices by model id. A key that ends in `*` matches by prefix, and the longest match wins. */
export type PriceTable = Readonly<Record<string, ModelPrice>>;

/**
 * The specification's price tiers.
 * @see gateway API, section 8
 */
export const priceTiers = {
  "lower-cost-chat": { inputPerMillionUsd: 0.1, outputPerMillionUsd: 0.4 },
  "balanced-chat": { inputPerMillionUsd: 0.3, outputPerMillionUsd: 2.5 },
  "fast-transcription": { perAudioMinuteUsd: 0.0015 },
  "standard-transcription": { perAudioMinuteUsd: 0.003 },
  "legacy-transcription": { perAudioMinuteUsd: 0.006 },
} as const satisfies Readonly<Record<string, ModelPrice>>;

/** The specification names tiers, not models. These families have those prices. The first match wins. */
const tierByName: readonly (readonly [RegExp, keyof typeof priceTiers])[] = [
  [/(?:^|\/)whisper-1$/, "legacy-transcription"],
  [/gpt-4o-transcribe/, "legacy-transcription"],
  [/mini-transcribe/, "standard-transcription"],
  [/whisper.{0,60}(?:turbo|fast|distil)|(?:turbo|fast|nano).{0,60}transcri/, "fast-transcription"],
  [/whisper/, "standard-transcription"],
  [/flash-lite|(?:^|[/-])gpt-4\.1-nano/, "lower-cost-chat"],
  [/(?:^|\/)gemini-2\.5-flash(?!.*image)/, "balanced-chat"],
];

/**
 * Returns a model's price: from the operator's table, else the gateway's list, else the public prices, else
 * the specified tiers.
 */
export function findPrice(
  modelId: string,
  table: PriceTable | undefined,
  listed: ModelPrice | undefined,
): KnownPrice | undefined {
  const own = table === undefined ? undefined : fromTable(modelId, table);
  if (own !== undefined) return { price: own, isGuess: false };
  if (listed !== undefined) return { price: listed, isGuess: false };
  const known = publicPrice(modelId);
  if (known !== undefined) return { price: known, isGuess: true };
  const tier = tierByName.find(([pattern]) => pattern.test(modelId))?.[1];
  return tier === undefined ? undefined : { price: priceTiers[tier], isGuess: true };
}

function fromTable(modelId: string, table: PriceTable): ModelPrice | undefined {
  if (Object.hasOwn(table, modelId)) return table[modelId];
  let best: string | undefined;
  for (const key of Object.keys(table)) {
    const isMatch = key.endsWith("*") && modelId.startsWith(key.slice(0, -1));
    if (isMatch && (best === undefined || key.length > best.length)) best = key;
  }
  return best === undefined ? undefined : table[best];
}

/** The tokens estimated for an image when the gateway reports no usage. */
export const tokensPerImage = 800;

/** Estimates the tokens of a text as a quarter of its UTF-8 bytes, rounded up. */
export function estimateTokens(text: string): number {
  return Math.ceil(Buffer.byteLength(text, "utf8") / 4);
}

/** Estimates the tokens of a prompt. Every image counts the same, whatever its size. */
export function estimatePromptTokens(messages: readonly ChatMessage[]): number {
  let tokens = 0;
  for (const { content } of messages) {
    if (typeof content === "string") tokens += estimateTokens(content);
    else
      for (const part of content) tokens += part.kind === "text" ? estimateTokens(part.text) : tokensPerImage;
  }
  return tokens;
}

/** What is known about the usage of a call. */
interface UsageFacts {
  readonly reported: ReportedUsage | undefined;
  /** Amounts that are concluded here and stand in for what was not reported. */
  readonly estimated: BilledAmounts;
  /** Amounts that are certain though not reported: images counted, or a duration that the gateway told. */
  readonly counted?: BilledAmounts;
  readonly price: KnownPrice | undefined;
}

/**
 * Leaves out reported counts of nothing where there is something, and then a cost of nothing too. Servers
 * that do not count send zeros.
 */
function withoutZeros<R extends BilledAmounts & { readonly costUsd?: number }>(
  reported: R,
  estimated: BilledAmounts,
): Partial<R> {
  const isWrong = (name: string, value: unknown): boolean =>
    value === 0 && (estimated[name as keyof BilledAmounts] ?? 0) > 0;
  const wrong = Object.entries(reported).flatMap(([name, value]) => (isWrong(name, value) ? [name] : []));
  if (wrong.length === 0) return reported;
  if (reported.costUsd === 0) wrong.push("costUsd");
  return Object.fromEntries(Object.entries(reported).filter(([name]) => !wrong.includes(name))) as Partial<R>;
}

/** Returns tokens and money of a call. `isEstimated`: a number was neither reported nor configured. */
export function toUsage(facts: UsageFacts): Usage {
  const { estimated, counted = {}, price } = facts;
  const { costUsd: reportedCost, ...reportedTokens } = withoutZeros(facts.reported ?? {}, estimated);
  const amounts: BilledAmounts = { ...estimated, ...counted, ...reportedTokens };
  const costUsd = reportedCost ?? (price === undefined ? undefined : costOf(price.price, amounts));
  const known = { ...counted, ...reportedTokens };
  const isGuessed = Object.keys(estimated).some((key) => known[key as keyof BilledAmounts] === undefined);
  const isPriceGuessed = reportedCost === undefined && costUsd !== undefined && price?.isGuess === true;
  return { ...amounts, ...(costUsd !== undefined && { costUsd }), isEstimated: isGuessed || isPriceGuessed };
}
