/** What a model costs, in USD. A model has the fields that apply to it. */
export interface ModelPrice {
  /** For a million tokens of the prompt. */
  readonly inputPerMillionUsd?: number | undefined;
  /** For a million tokens of the answer. */
  readonly outputPerMillionUsd?: number | undefined;
  readonly perAudioMinuteUsd?: number | undefined;
  readonly perImageUsd?: number | undefined;
}

/** The higher of two prices, field by field: no call costs more at either. */
export function higherPrice(one: ModelPrice, other: ModelPrice): ModelPrice {
  const highest = (field: keyof ModelPrice): number | undefined => {
    const values = [one[field], other[field]].filter((value) => value !== undefined);
    return values.length === 0 ? undefined : Math.max(...values);
  };
  return {
    inputPerMillionUsd: highest("inputPerMillionUsd"),
    outputPerMillionUsd: highest("outputPerMillionUsd"),
    perAudioMinuteUsd: highest("perAudioMinuteUsd"),
    perImageUsd: highest("perImageUsd"),
  };
}

/** The amounts of a call that prices apply to. */
export interface BilledAmounts {
  readonly promptTokens?: number;
  readonly completionTokens?: number;
  readonly audioSeconds?: number;
  /** Number of images. */
  readonly images?: number;
}

/** Cost of a call in USD, to a billionth. `undefined` when the price has no field for anything that was used. */
export function costOf(price: ModelPrice, amounts: BilledAmounts): number | undefined {
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
