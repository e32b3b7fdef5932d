import { ParleyError } from "../core/errors.ts";
import { postgresStore } from "./sql/postgres-store.ts";
import { redisStore } from "./redis/redis-store.ts";
import { sqliteStore } from "./sql/sqlite-store.ts";
import type { StoreBackend } from "./backend.ts";

/** Every kind of store. A new one needs a folder beside this file and a line here. */
const backends: readonly StoreBackend[] = [
  sqliteStore, // sqlite:
  redisStore, // redis:// and rediss://
  postgresStore, // postgres:// and postgresql://
];

/** The store of a fresh installation. */
export const defaultStoreUrl = "sqlite:data/parley.db";

/** Ends "STORE_URL …" if a store URL is wrong. It never quotes the URL. */
export function storeUrlProblem(url: string): string | undefined {
  const backend = findBackend(url);
  return backend === undefined
    ? `must be ${joinWords(backends.flatMap(({ urlForms }) => urlForms))}`
    : backend.checkUrl(url);
}

/** Ends "STORE_URL …" if a store URL that is right lets others on the network read the store. */
export function storeExposure(url: string): string | undefined {
  return findBackend(url)?.findExposure?.(url);
}

/**
 * Finds the backend that opens a URL.
 * @throws ParleyError `config` for an unknown scheme or a malformed URL
 */
export function backendOf(url: string): StoreBackend {
  const backend = findBackend(url);
  const problem = storeUrlProblem(url);
  if (backend === undefined || problem !== undefined)
    throw new ParleyError("config", `STORE_URL ${problem ?? "is unknown"}`);
  return backend;
}

/** A folder for data outside of the store, which the store's URL names, or `data`. It may be relative. */
export function dataFolderOf(url: string): string {
  return findBackend(url)?.dataFolder(url) ?? "data";
}

/** Whether several processes may run turns on the store of a URL. */
export function isSharedStore(url: string): boolean {
  return findBackend(url)?.isShared === true;
}

function findBackend(url: string): StoreBackend | undefined {
  const scheme = url.slice(0, Math.max(0, url.indexOf(":")));
  return backends.find(({ schemes }) => schemes.includes(scheme));
}

function joinWords(words: readonly string[]): string {
  return words.length < 2 ? words.join("") : `${words.slice(0, -1).join(", ")} or ${words.at(-1)}`;
}
