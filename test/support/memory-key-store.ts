import { rm } from "node:fs/promises";
import { join } from "node:path";
import { onTestFinished } from "vitest";
import { openStore, type Store } from "../../src/conversations/open-store.ts";
import { ParleyError } from "../../src/core/errors.ts";
import type { Json } from "../../src/core/events.ts";
import type { KeyStore } from "../../src/embedded-gateway/key-ring.ts";
import { makeFastFolder } from "./fast-folder.ts";
import { silentLog } from "./silent-log.ts";

/**
 * A store of gateway keys in memory, whose reads and writes take a turn of the event loop. They spend through
 * the ledger of a SQLite store, which is removed with the test.
 */
export interface MemoryKeyStore extends KeyStore {
  readonly values: Map<string, Json>;
  isDown: boolean;
  reads: number;
  /** How often the ledger was asked for while the store was down. */
  refusals: number;
}

export function createMemoryKeyStore(): MemoryKeyStore {
  const values = new Map<string, Json>();
  let opened: Promise<Store> | undefined;
  /** Opens the store on first use. @throws ParleyError `store-unavailable` while it is down */
  const ledger = async () => {
    if (store.isDown) {
      store.refusals += 1;
      throw new ParleyError("store-unavailable", "down");
    }
    return (await (opened ??= openSqlite())).spending;
  };
  const store: MemoryKeyStore = {
    values,
    isDown: false,
    reads: 0,
    refusals: 0,
    records: {
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
      update: async (key, change) => {
        await takeTurn();
        if (store.isDown) throw new ParleyError("store-unavailable", "down");
        const value = change(structuredClone(values.get(key)));
        if (value !== undefined) values.set(key, structuredClone(value));
      },
    },
    spending: {
      reserve: async (...reserve) => (await ledger()).reserve(...reserve),
      settle: async (...call) => (await ledger()).settle(...call),
      spentUsd: async (...scope) => (await ledger()).spentUsd(...scope),
      usage: async (query) => (await ledger()).usage(query),
    },
  };
  return store;
}

async function openSqlite(): Promise<Store> {
  const folder = await makeFastFolder("parley-keys-");
  const store = await openStore(`sqlite:${join(folder, "parley.db")}`, { log: silentLog });
  onTestFinished(async () => {
    await store.close();
    await rm(folder, { recursive: true });
  });
  return store;
}

function takeTurn(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}
