/** A seeded random source: the same seed gives the same sequence. */
export interface Random {
  /** Returns a number from 0 up to, not including, 1. */
  next(): number;
  /** Returns a whole number from `from` to `to`, both included. */
  between(from: number, to: number): number;
  /** @throws RangeError for an empty list */
  pick<T>(from: readonly T[]): T;
}

/** Creates a Mulberry32 generator. */
export function createRandom(seed: number): Random {
  let state = seed >>> 0;
  const next = (): number => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
  return {
    next,
    between: (from, to) => from + Math.floor(next() * (to - from + 1)),
    pick: (from) => {
      if (from.length === 0) throw new RangeError("nothing to pick from");
      return from[Math.floor(next() * from.length)]!;
    },
  };
}
