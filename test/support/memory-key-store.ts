import { ParleyError } from "../../src/core/errors.ts";
import type { Json } from "../../src/core/events.ts";
import type { KeyValue } from "../../src/embedded-gateway/keys/key-ring.ts";

/** A store of gateway keys in memory. Reads and writes take a turn of the event loop, as in a real store. */
export interface MemoryKeyStore extends KeyValue {
  readonly values: Map<string, Json>;
  isDown: boolean;
  reads: number;
}

export function createMemoryKeyStore(): MemoryKeyStore {
  const values = new Map<string, Json>();
  const store: MemoryKeyStore = {
    values,
    isDown: false,
    reads: 0,
    get: async (key) => {
      await takeTurn();
      store.reads += 1;
      if (store.isDown) throw new ParleyError("store-unavailable", "down");
      return structuredClone(values.get(key));
    },
    set: async (key, value) => {
      await takeTurn();
      if (store.isDown) throw new ParleyError("store-unavailable", "down");
      values.set(key, structuredClone(value));
    },
    delete: async (key) => void values.delete(key),
  };
  return store;
}

function takeTurn(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}
