import { join } from "node:path";
import { startPostgres } from "../../support/postgres-server.ts";
import { bytesOfFolder, bytesOfPostgres } from "../../support/store-bytes.ts";
import type { FaultMaker, FaultTools } from "./faults.ts";
import { startRedisPair } from "./redis-pair.ts";
import { mountSmallDisk } from "./small-disk.ts";
import { diskFaults, postgresFaults, redisFaults } from "./store-faults.ts";

/** A store that faults are made in. */
export interface ChaosStore {
  /** The `STORE_URL`. */
  readonly url: string;
  faults(tools: FaultTools): readonly FaultMaker[];
  /** The kinds of faults that cannot be made here, and why. */
  readonly notMade: readonly string[];
  /** Returns the data at rest of the present primaries. */
  bytes(): Promise<Buffer>;
  remove(): Promise<void>;
}

const kinds = {
  async redis() {
    const redis = await startRedisPair();
    return {
      url: redis.url,
      faults: (tools) => redisFaults(redis, tools),
      notMade: [],
      bytes: () => bytesOfFolder(redis.primary().folder),
      remove: () => redis.remove(),
    };
  },
  async postgres() {
    const server = await startPostgres();
    return {
      url: server.url,
      faults: (tools) => postgresFaults(server, tools),
      notMade: [],
      bytes: () => bytesOfPostgres(server.url),
      remove: () => server.remove(),
    };
  },
  async sqlite(folder) {
    const disk = await mountSmallDisk();
    const storeFolder = disk?.folder ?? folder;
    return {
      url: `sqlite:${join(storeFolder, "parley.db")}`,
      faults: (tools) => (disk === undefined ? [] : diskFaults(disk, tools)),
      notMade: disk === undefined ? ["diskFull: needs a user who may mount"] : [],
      bytes: () => bytesOfFolder(storeFolder),
      remove: async () => disk?.remove(),
    };
  },
} satisfies Readonly<Record<string, (folder: string) => Promise<ChaosStore>>>;

/** The kinds of stores, as `--store` takes them. */
export type ChaosStoreName = keyof typeof kinds;
export const chaosStoreNames = Object.keys(kinds) as readonly ChaosStoreName[];

/** `folder` is for what the store keeps in files of its own. */
export function startChaosStore(name: ChaosStoreName, folder: string): Promise<ChaosStore> {
  return kinds[name](folder);
}
