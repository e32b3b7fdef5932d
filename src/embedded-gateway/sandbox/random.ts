import { createHash } from "node:crypto";

/** Numbers from 0 to 1 that look random and are the same for the same seed. */
export interface Random {
  next(): number;
  between(low: number, high: number): number;
  pick<T>(items: readonly [T, ...T[]]): T;
}

/** Mulberry32, seeded by the hash of a text. */
export function createRandom(seed: string): Random {
  let state = createHash("sha256").update(seed).digest().readUInt32BE(0);
  const next = (): number => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296;
  };
  return {
    next,
    between: (low, high) => low + next() * (high - low),
    pick: (items) => items[Math.floor(next() * items.length)] ?? items[0],
  };
}
