/** What a model costs, in USD. A model has the fields that apply to it. */
export interface ModelPrice {
  readonly inputPerMillionUsd?: number;
  readonly outputPerMillionUsd?: number;
  readonly perAudioMinuteUsd?: number;
  readonly perImageUsd?: number;
}

/** Prices by model id; an id that ends in `*` stands for all that begin so, the longest one counts. */
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

/** The specification names tiers, not models; these families are sold at those prices. First match counts. */
const tierByName: readonly (readonly [RegExp, keyof typeof priceTiers])[] = [
  [/(?:^|\/)whisper-1$/, "legacy-transcription"],
  [/gpt-4o-transcribe/, "legacy-transcription"],
  [/mini-transcribe/, "standard-transcription"],
  [/whisper.*(?:turbo|fast|distil)|(?:turbo|fast|nano).*transcri/, "fast-transcription"],
  [/whisper/, "standard-transcription"],
  [/flash-lite|(?:^|[/-])gpt-4\.1-nano/, "lower-cost-chat"],
  [/(?:^|\/)gemini-2\.5-flash(?!.*image)/, "balanced-chat"],
];

/** A price and how sure it is: `isGuess` where it was concluded from the model's name. */
export interface FoundPrice {
  readonly price: ModelPrice;
  readonly isGuess: boolean;
}

/** Answers what a model costs: the operator's table first, then the gateway's own list, then the tiers. */
export function findPrice(
  modelId: string,
  table: PriceTable | undefined,
  listed: ModelPrice | undefined,
): FoundPrice | undefined {
  const own = table === undefined ? undefined : fromTable(modelId, table);
  if (own !== undefined) return { price: own, isGuess: false };
  if (listed !== undefined) return { price: listed, isGuess: false };
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

/** How much of what a call used. */
export interface Amounts {
  readonly promptTokens?: number;
  readonly completionTokens?: number;
  readonly audioSeconds?: number;
  readonly images?: number;
}

/** USD of a call, to a billionth. `undefined`: the price has no field for anything that was used. */
export function costOf(price: ModelPrice, amounts: Amounts): number | undefined {
  const items = [
    [price.inputPerMillionUsd, (amounts.promptTokens ?? Number.NaN) / 1e6],
    [price.outputPerMillionUsd, (amounts.completionTokens ?? Number.NaN) / 1e6],
    [price.perAudioMinuteUsd, (amounts.audioSeconds ?? Number.NaN) / 60],
    [price.perImageUsd, amounts.images ?? Number.NaN],
  ] as const;
  let cost: number | undefined;
  for (const [each, amount] of items) {
    if (each !== undefined && !Number.isNaN(amount)) cost = (cost ?? 0) + each * amount;
  }
  return cost === undefined ? undefined : Math.round(cost * 1e9) / 1e9;
}

/** A price in one line for people, e.g. "$0.10 in, $0.40 out per million tokens"; `undefined` where nothing is known. */
export function describePrice(found: FoundPrice | undefined): string | undefined {
  if (found === undefined) return undefined;
  const { inputPerMillionUsd, outputPerMillionUsd, perAudioMinuteUsd, perImageUsd } = found.price;
  const parts: string[] = [];
  const tokens = [
    inputPerMillionUsd === undefined ? undefined : `${usd(inputPerMillionUsd)} in`,
    outputPerMillionUsd === undefined ? undefined : `${usd(outputPerMillionUsd)} out`,
  ].filter((part) => part !== undefined);
  const known = [inputPerMillionUsd, outputPerMillionUsd, perAudioMinuteUsd, perImageUsd].filter(
    (value) => value !== undefined,
  );
  if (known.length === 0) return undefined;
  if (known.every((value) => value === 0)) return "free";
  if (tokens.length > 0) parts.push(`${tokens.join(", ")} per million tokens`);
  if (perAudioMinuteUsd !== undefined) parts.push(`${usd(perAudioMinuteUsd)} per audio minute`);
  if (perImageUsd !== undefined && perImageUsd > 0) parts.push(`${usd(perImageUsd)} per image`);
  return `${found.isGuess ? "about " : ""}${parts.join("; ")}`;
}

/** At least two decimals, and as many more as the amount needs, up to six. */
function usd(amount: number): string {
  const exact = amount.toFixed(6).replace(/0+$/, "");
  const decimals = exact.length - exact.indexOf(".") - 1;
  return `$${amount.toFixed(Math.max(2, decimals))}`;
}
