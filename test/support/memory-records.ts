import type { Claims, Records } from "../../src/core/storage.ts";
import type { Json } from "../../src/core/events.ts";

/** The records and claims that several instances share, in memory. Nothing in it expires. */
export interface SharedMemory {
  readonly records: Records;
  readonly claims: Claims;
}

/** Creates an empty {@link SharedMemory}. */
export function createSharedMemory(): SharedMemory {
  const values = new Map<string, Json>();
  const claimed = new Set<string>();
  return {
    records: {
      get: (key) => Promise.resolve(structuredClone(values.get(key))),
      set(key, value) {
        values.set(key, structuredClone(value));
        return Promise.resolve();
      },
      async update(key, change) {
        const value = change(structuredClone(values.get(key)));
        if (value !== undefined) values.set(key, structuredClone(value));
      },
      delete(key) {
        values.delete(key);
        return Promise.resolve();
      },
    },
    claims: {
      isShared: true,
      claim(name) {
        const isFree = !claimed.has(name);
        claimed.add(name);
        return Promise.resolve(isFree);
      },
    },
  };
}
