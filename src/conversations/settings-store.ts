import type { LayerValues, SettingsStore } from "../core/layered-settings.ts";
import type { KeyedQueue } from "../support/keyed-queue.ts";
import type { KeyValueStore } from "./key-value.ts";
import { entryAt } from "./store-keys.ts";

/**
 * The settings of servers, channels and persons, an entry each; nothing of it expires. Two processes that change one
 * holder at the same moment: the later change wins. `writers`: the changes of this process, by holder.
 */
export function createSettingsStore(store: KeyValueStore, writers: KeyedQueue): SettingsStore {
  return {
    async read(holders) {
      const keys = holders.map((holder) => entryAt.layer(holder).key);
      const found = await store.getMany<LayerValues>("layer", keys);
      return holders.map((_, index) => found[index] ?? {});
    },
    change: (holder, change) =>
      writers.run(holder, async () => {
        const at = entryAt.layer(holder);
        const before = await store.get<LayerValues>(at.space, at.key);
        const entries = Object.entries({ ...before, ...change }).filter(([, value]) => value !== undefined);
        await store.write([
          entries.length === 0
            ? { kind: "delete", at }
            : { kind: "set", at, value: Object.fromEntries(entries) },
        ]);
      }),
    erase: (holder) =>
      writers.run(holder, async () => {
        await store.write([{ kind: "delete", at: entryAt.layer(holder) }]);
        await store.backend.scrub();
      }),
  };
}
