import { createHash } from "node:crypto";

/** Pseudo-random numbers from `low` up to `high`. The same seed gives the same numbers. */
export type Random = (low: number, high: number) => number;

/** A chain of SHA-256 hashes, read four bytes at a time. */
export function createRandom(seed: string): Random {
  let hash = createHash("sha256").update(seed).digest();
  let at = 0;
  return (low, high) => {
    if (at === hash.length) {
      hash = createHash("sha256").update(hash).digest();
      at = 0;
    }
    at += 4;
    return low + (hash.readUInt32BE(at - 4) / 2 ** 32) * (high - low);
  };
}
