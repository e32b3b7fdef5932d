import type { EntryAddress } from "./backend.ts";
import { createCacheBySpace } from "./cache-by-space.ts";

/** A stored value as Keyv has it. */
export interface Envelope {
  readonly value?: unknown;
}

interface Decoded {
  readonly stored: string;
  readonly envelope: Envelope;
}

/**
 * Values that were decoded lately, so that what a turn reads again is decoded once. They are shared, and
 * therefore frozen; those of the space `record` are decoded each time, because their readers pass them to libraries that
 * change them.
 */
export interface DecodedValues {
  /** @throws what decoding throws */
  of(at: EntryAddress, stored: string): Envelope;
  /** Forgets a value that is written anew or erased. */
  drop(at: EntryAddress): void;
}

/** @see {@link DecodedValues} */
export function createDecodedValues(decode: (at: EntryAddress, stored: string) => Envelope): DecodedValues {
  // Decoded values take about as much again as their texts.
  const values = createCacheBySpace<Decoded>(({ stored }) => stored.length);
  return {
    of(at, stored) {
      const known = values.get(at);
      // Decided by the stored text alone: whoever wrote it, and wherever it came from.
      if (known?.stored === stored) return known.envelope;
      const envelope = decode(at, stored);
      if (at.space !== "record") values.set(at, { stored, envelope: freeze(envelope) });
      return envelope;
    },
    drop: (at) => values.delete(at),
  };
}

function freeze<T>(value: T): T {
  if (typeof value !== "object" || value === null) return value;
  for (const part of Object.values(value)) freeze(part);
  return Object.freeze(value);
}
