import { LRUCache } from "lru-cache";
import type { EntryAddress } from "./backend.ts";

/** A stored value as Keyv has it. */
export interface Envelope {
  readonly value?: unknown;
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

/** Of all stored texts, in characters; decoded values take about as much again. */
const maxChars = 4 * 1024 * 1024;
/** A longer text, such as a file that people sent, would take the place of many. */
const maxTextChars = 64 * 1024;

/** @see {@link DecodedValues} */
export function createDecodedValues(decode: (at: EntryAddress, stored: string) => Envelope): DecodedValues {
  const values = new LRUCache<string, { readonly stored: string; readonly envelope: Envelope }>({
    maxSize: maxChars,
    maxEntrySize: maxTextChars,
    sizeCalculation: ({ stored }, name) => stored.length + name.length,
  });
  return {
    of(at, stored) {
      const name = toName(at);
      const known = values.get(name);
      // Decided by the stored text alone: whoever wrote it, and wherever it came from.
      if (known?.stored === stored) return known.envelope;
      const envelope = decode(at, stored);
      if (at.space !== "record") values.set(name, { stored, envelope: freeze(envelope) });
      return envelope;
    },
    drop(at) {
      values.delete(toName(at));
    },
  };
}

function toName({ space, key }: EntryAddress): string {
  return `${space}\0${key}`;
}

function freeze<T>(value: T): T {
  if (typeof value !== "object" || value === null) return value;
  for (const part of Object.values(value)) freeze(part);
  return Object.freeze(value);
}
