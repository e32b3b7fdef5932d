import type { Claims, Records } from "../../src/core/storage.ts";
import type { Clock } from "../../src/core/clock.ts";
import type { Json } from "../../src/core/events.ts";

/** The records and claims that several instances share, in memory. Claims do not expire. */
export interface SharedMemory {
  readonly records: Records;
  readonly claims: Claims;
}

/** Creates an empty {@link SharedMemory}. @param clock by which records expire; without one they do not */
export function createSharedMemory(clock?: Pick<Clock, "monotonic">): SharedMemory {
  const values = new Map<string, { readonly value: Json; readonly expiresAt: number }>();
  const claimed = new Set<string>();
  const now = (): number => clock?.monotonic() ?? 0;
  const read = (key: string): Json | undefined => {
    const found = values.get(key);
    return found === undefined || found.expiresAt <= now() ? undefined : structuredClone(found.value);
  };
  const write = (key: string, value: Json, ttlMs = Infinity): void => {
    values.set(key, { value: structuredClone(value), expiresAt: now() + ttlMs });
  };
  return {
    records: {
      get: (key) => Promise.resolve(read(key)),
      set: async (key, value, ttlMs) => write(key, value, ttlMs),
      async update(key, change, ttlMs) {
        const value = change(read(key));
        if (value !== undefined) write(key, value, ttlMs);
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
