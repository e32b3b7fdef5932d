import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, afterEach, beforeAll, beforeEach, describe } from "vitest";
import { type PostgresServer, startPostgres } from "./postgres-server.ts";
import { type RedisServer, startRedis } from "./redis-server.ts";
import { has } from "./requirements.ts";
import { bytesOfFolder, bytesOfPostgres, bytesOfRedis } from "./store-bytes.ts";

/** An empty store of one test, not opened yet. */
export interface TestStore {
  readonly kind: "sqlite" | "redis" | "postgres";
  readonly url: string;
  /** For files of the test; a SQLite store is in it. */
  readonly folder: string;
  /** Every byte of the store, names included. */
  bytes(): Promise<Buffer>;
}

/** Declares tests once for each backend; `current` returns the test's own store. Servers not installed are skipped. */
export function describeStores(
  title: string,
  declare: (current: () => TestStore, kind: TestStore["kind"]) => void,
): void {
  describe(`sqlite: ${title}`, () => {
    declare(
      useFolder((folder) => ({
        kind: "sqlite",
        url: `sqlite:${join(folder, "parley.db")}`,
        folder,
        bytes: () => bytesOfFolder(folder),
      })),
      "sqlite",
    );
  });
  describe.skipIf(!has("redis"))(`redis: ${title}`, () => {
    let server: RedisServer;
    let database = 0;
    beforeAll(async () => {
      server = await startRedis();
    });
    afterAll(async () => {
      await server.remove();
    });
    declare(
      useFolder((folder) => {
        database = (database + 1) % 16;
        const url = `${server.url}/${database}`;
        return { kind: "redis", url, folder, bytes: () => bytesOfRedis(url) };
      }),
      "redis",
    );
  });
  describe.skipIf(!has("postgres"))(`postgres: ${title}`, () => {
    let server: PostgresServer;
    beforeAll(async () => {
      server = await startPostgres();
    });
    afterAll(async () => {
      await server.remove();
    });
    let schemas = 0;
    declare(
      useFolder((folder) => {
        schemas++;
        const url = `${server.url}?schema=store_${schemas}`;
        return { kind: "postgres", url, folder, bytes: () => bytesOfPostgres(url) };
      }),
      "postgres",
    );
  });
}

function useFolder(toStore: (folder: string) => TestStore): () => TestStore {
  let store: TestStore;
  beforeEach(async () => {
    store = toStore(await mkdtemp(join(tmpdir(), "parley-store-")));
  });
  afterEach(async () => {
    await rm(store.folder, { recursive: true });
  });
  return () => store;
}
