import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll } from "vitest";
import { openStore } from "../../src/conversations/open-store.ts";
import { silentLog } from "./silent-log.ts";
import { storeContract } from "./store.ts";

let folder: string;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "parley-store-"));
});
afterAll(async () => {
  await rm(folder, { recursive: true });
});

storeContract("sqlite", () => ({
  open: () => openStore(`sqlite:${join(folder, "data/parley.db")}`, { log: silentLog }),
}));
