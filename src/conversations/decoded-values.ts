import { LRUCache } from "lru-cache";
import { type EntryAddress, type Space, spaces } from "./backend.ts";

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

/** Of the stored texts of a space, in characters; decoded values take about as much again. */
const maxChars = 2 * 1024 * 1024;
/** A longer text, such as a file that people sent, would take the place of many. */
const maxTextChars = 64 * 1024;

/** @see {@link DecodedValues} */
export function createDecodedValues(decode: (at: EntryAddress, stored: string) => Envelope): DecodedValues {
  // By space, then by key: joining both would cost more than the look-up.
  const caches = new Map(
    spaces.map((space) => [
      space,
      new LRUCache<string, Decoded>({
        maxSize: maxChars,
        maxEntrySize: maxTextChars,
        sizeCalculation: ({ stored }, key) => stored.length + key.length,
      }),
    ]),
  );
  const valuesOf = (space: Space) => caches.get(space) as LRUCache<string, Decoded>;
  return {
    of(at, stored) {
      const values = valuesOf(at.space);
      const known = values.get(at.key);
      // Decided by the stored text alone: whoever wrote it, and wherever it came from.
      if (known?.stored === stored) return known.envelope;
      const envelope = decode(at, stored);
      if (at.space !== "record") values.set(at.key, { stored, envelope: freeze(envelope) });
      return envelope;
    },
    drop(at) {
      valuesOf(at.space).delete(at.key);
    },
  };
}

function freeze<T>(value: T): T {
  if (typeof value !== "object" || value === null) return value;
  for (const part of Object.values(value)) freeze(part);
  return Object.freeze(value);
}
