import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, it } from "vitest";
import { openStore } from "../../src/conversations/open-store.ts";
import { silentLog } from "../support/fakes.ts";
import { bytesOfFolder, holds } from "../support/store-bytes.ts";

it("a record that is removed, such as the token of a workspace, is gone from the files at once", async () => {
  const folder = await mkdtemp(join(tmpdir(), "parley-records-"));
  const store = await openStore(`sqlite:${join(folder, "parley.db")}`, { log: silentLog });
  try {
    const token = "xoxb-secret-of-a-workspace-4711";
    await store.records.set("slack installation T1", { token });
    expect(holds(await bytesOfFolder(folder), token)).toBe(true);
    await store.records.delete("slack installation T1");
    expect(holds(await bytesOfFolder(folder), token)).toBe(false);
  } finally {
    await store.close();
    await rm(folder, { recursive: true, force: true });
  }
});
