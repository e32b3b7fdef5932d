import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { afterAll, beforeAll } from "vitest";
import { openStore } from "../../src/conversations/open-store.ts";
import { silentLog } from "../support/silent-log.ts";
import { storeContract } from "./store.ts";

let folder: string;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "parley-store-"));
});
afterAll(async () => {
  await rm(folder, { recursive: true });
});

const file = () => join(folder, "data/parley.db");
let intruder: DatabaseSync | undefined;

storeContract("sqlite", () => ({
  url: `sqlite:${file()}`,
  open: () => openStore(`sqlite:${file()}`, { log: silentLog, exclusive: false }),
  outage: {
    // Another program that keeps the file locked.
    async begin() {
      intruder = new DatabaseSync(file());
      intruder.exec("BEGIN EXCLUSIVE");
    },
    async end() {
      intruder?.close();
    },
  },
}));
