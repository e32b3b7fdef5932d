/**
 * Fills a small file system under a store in `<folder>`, and frees it. Prints what the store says, as JSON.
 */
import { rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { spawnSync } from "node:child_process";
import { createStoreChecks, openStore } from "../../src/conversations/open-store.ts";
import { isParleyError } from "../../src/core/errors.ts";
import { runDoctorChecks } from "../support/run-checks.ts";
import { silentLog } from "../support/silent-log.ts";
import { messageOf } from "../support/store-samples.ts";

const [folder = ""] = process.argv.slice(2);
const filler = join(folder, "filler");
const url = `sqlite:${join(folder, "parley.db")}`;
const store = await openStore(url, { log: silentLog });
/** Returns what the doctor says. */
const examine = async () => (await runDoctorChecks(createStoreChecks(url, { log: silentLog }))).text;
const seen: Record<string, unknown> = { empty: await store.findProblems(), emptyDoctor: await examine() };

await writeFile(filler, Buffer.alloc(30 * 1024 * 1024));
seen["nearlyFull"] = await store.findProblems();
seen["nearlyFullDoctor"] = await examine();

let acknowledged = 0;
for (;;) {
  try {
    await store.conversations.append("web:1", messageOf(`m${acknowledged}`, "x".repeat(100_000)));
    acknowledged++;
  } catch (error) {
    seen["full"] = isParleyError(error) ? error.code : String(error);
    break;
  }
}
seen["whileFull"] = await store.findProblems();
seen["fullDoctor"] = await examine();
const newest = await store.conversations.recent("web:1", { maxMessages: 10 });
seen["readable"] = newest.at(-1)?.id === `m${acknowledged - 1}` && newest.length === 10;
await rm(filler);
seen["freed"] = await store.findProblems();
seen["appended"] = await store.conversations.append("web:1", messageOf("after"));
await store.close();
spawnSync("mount", ["-o", "remount,ro", folder]);
seen["readOnlyDoctor"] = await examine();
process.stdout.write(JSON.stringify(seen));
