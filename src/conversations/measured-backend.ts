import type { Backend, Space } from "./backend.ts";

/** What a store's operation was: `soon` and `count` are writes that wait for no disk. */
export type StoreOperation = "read" | "write" | "soon" | "count";

/** Called after each operation of a store, with its time in seconds. */
export type OnStoreOperation = (operation: StoreOperation, outcome: "ok" | "error", seconds: number) => void;

/** A backend whose reads and writes are timed. Scans and maintenance are not. */
export function createMeasuredBackend(backend: Backend, onOperation: OnStoreOperation): Backend {
  async function timed<T>(operation: StoreOperation, work: () => Promise<T>): Promise<T> {
    const startedAt = performance.now();
    let outcome: "ok" | "error" = "error";
    try {
      const result = await work();
      outcome = "ok";
      return result;
    } finally {
      onOperation(operation, outcome, (performance.now() - startedAt) / 1000);
    }
  }
  const readers = new Map<Space, ReturnType<Backend["reader"]>>();
  return {
    ...backend,
    reader(space) {
      let measured = readers.get(space);
      if (measured === undefined) {
        const reader = backend.reader(space);
        measured = {
          get: (key) => timed("read", () => reader.get(key)),
          getMany: (keys) => timed("read", () => reader.getMany(keys)),
          hasMany: (keys) => timed("read", () => reader.hasMany(keys)),
        };
        readers.set(space, measured);
      }
      return measured;
    },
    apply: (conditions, changes, resolves, onWritten) =>
      timed(resolves === "soon" ? "soon" : "write", () =>
        backend.apply(conditions, changes, resolves, onWritten),
      ),
    count: (limits, changes, early) => timed("count", () => backend.count(limits, changes, early)),
    replace: (at, old, value, resolves) =>
      timed(resolves === "soon" ? "soon" : "write", () => backend.replace(at, old, value, resolves)),
    readIndex: (name, page) => timed("read", () => backend.readIndex(name, page)),
  };
}
