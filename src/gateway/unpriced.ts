import { isPriced, type ModelOperation, type ModelPrice } from "../core/gateway.ts";
import type { PriceTable } from "../wire/prices.ts";

/** A model that calls are made of, also one that only answers in place of another. */
export interface UsedModel {
  readonly operation: ModelOperation;
  readonly id: string;
}

const examples = {
  chat: { inputPerMillionUsd: 1, outputPerMillionUsd: 4 },
  image: { perImageUsd: 0.04 },
  transcription: { perAudioMinuteUsd: 0.006 },
} as const satisfies Record<ModelOperation, ModelPrice>;

/** Models whose price nobody knows. */
interface Unpriced {
  /** Their ids, separated by commas. */
  readonly names: string;
  /** What an operator pastes into `.env`, with examples of prices beside those of `table`. */
  readonly line: string;
}

/** Returns the models without a price, or `undefined` where each has one. */
export function findUnpriced(
  used: readonly UsedModel[],
  priceOf: (id: string) => ModelPrice | undefined,
  table: PriceTable = {},
): Unpriced | undefined {
  const found = used.filter(({ operation, id }) => !isPriced(operation, priceOf(id)));
  if (found.length === 0) return undefined;
  const prices = new Map<string, ModelPrice>(Object.entries(table));
  for (const { operation, id } of found) prices.set(id, { ...prices.get(id), ...examples[operation] });
  return {
    names: [...new Set(found.map(({ id }) => id))].join(", "),
    line: `MODEL_PRICES=${JSON.stringify(Object.fromEntries(prices))}`,
  };
}

/** What an operator does about {@link Unpriced} models. */
export function unpricedRemedy({ line }: Unpriced): string {
  return `in .env, with what it costs (0 where it is yours): ${line}`;
}
