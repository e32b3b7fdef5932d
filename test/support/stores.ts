import { rm } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, afterEach, beforeAll, beforeEach, describe, inject } from "vitest";
import { openStore, type Store, type StoreOptions } from "../../src/conversations/open-store.ts";
import { makeFastFolder } from "./fast-folder.ts";
import { has } from "./requirements.ts";
import { askForStore, serveStores, type SharedServers } from "./shared-servers.ts";
import { silentLog } from "./silent-log.ts";
import { bytesOfFolder, bytesOfPostgres, bytesOfRedis } from "./store-bytes.ts";

/** An empty store of one test, not opened yet. */
export interface TestStore {
  readonly kind: "sqlite" | "redis" | "postgres";
  readonly url: string;
  /** This folder is for files of the test. A SQLite store is in it. */
  readonly folder: string;
  /** Returns every byte of the store, names included. */
  bytes(): Promise<Buffer>;
  /** Opens the store as another process would. It is closed at the end of the test. */
  open(options?: Partial<StoreOptions>): Promise<Store>;
  /** Closes all that is open and opens it again, as after a restart. */
  reopen(options?: Partial<StoreOptions>): Promise<Store>;
}

/** A server shares the machine with all other tests, so that it may take longer than in service. */
const busyMs = 20_000;

const allKinds: readonly TestStore["kind"][] = ["sqlite", "redis", "postgres"];

/** Declares tests once for each given backend that is installed. `current` returns the test's store. */
export function describeStores(
  title: string,
  declare: (current: () => TestStore, kind: TestStore["kind"]) => void,
  kinds = allKinds,
): void {
  for (const kind of kinds)
    describe.skipIf(kind !== "sqlite" && !has(kind))(`${kind}: ${title}`, () => {
      const newUrl = kind === "sqlite" ? undefined : useServer(kind);
      let store: TestStore;
      const opened = new Set<Store>();
      const closeAll = async () => {
        for (const one of opened) await one.close();
      };
      beforeEach(async () => {
        const folder = await makeFastFolder("parley-store-");
        const url = (await newUrl?.()) ?? `sqlite:${join(folder, "parley.db")}`;
        const bytes = () => {
          if (kind === "sqlite") return bytesOfFolder(folder);
          return kind === "redis" ? bytesOfRedis(url) : bytesOfPostgres(url);
        };
        const open = async (options: Partial<StoreOptions> = {}) => {
          const one = await openStore(url, { log: silentLog, deadlineMs: busyMs, ...options });
          const tracked: Store = {
            ...one,
            async close() {
              opened.delete(tracked);
              await one.close();
            },
          };
          opened.add(tracked);
          return tracked;
        };
        const reopen = async (options?: Partial<StoreOptions>) => {
          await closeAll();
          return open(options);
        };
        store = { kind, url, folder, bytes, open, reopen };
      });
      afterEach(async () => {
        await closeAll();
        await rm(store.folder, { recursive: true });
      });
      declare(() => store, kind);
    });
}

/** Returns the server of this run, or one of this file where the run has none (`shared-servers.ts`). */
function useServer(kind: "redis" | "postgres"): () => Promise<string> {
  let own: SharedServers | undefined;
  let url = "";
  beforeAll(async () => {
    const shared = inject("sharedServers") as string | undefined;
    own = shared === undefined ? await serveStores() : undefined;
    url = shared ?? own?.url ?? "";
  });
  afterAll(() => own?.close());
  return () => askForStore(url, kind);
}
