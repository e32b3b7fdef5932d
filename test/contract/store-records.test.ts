import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, it, vi } from "vitest";
import { openStore } from "../../src/conversations/open-store.ts";
import { silentLog } from "../support/fakes.ts";
import { describeStores } from "../support/stores.ts";
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

describeStores("records", (current) => {
  it("lose no change that two processes make at once", async () => {
    const stores = [await current().open(), await current().open({ exclusive: false })];
    const add = (n: number) =>
      stores[n % 2]!.records.update("list", (value) => [...(Array.isArray(value) ? value : []), n]);
    await Promise.all(Array.from({ length: 20 }, (_, n) => add(n)));
    const [one, other] = await Promise.all(stores.map((store) => store.records.get("list")));
    expect(new Set(one as number[]).size).toBe(20);
    expect(other).toEqual(one);
  });

  it("that are changed for some time are gone after it, and a change finds none", async () => {
    const { records } = await current().open();
    await records.update("lease", () => "mine", 200);
    expect(await records.get("lease")).toBe("mine");
    await vi.waitUntil(async () => (await records.get("lease")) === undefined, {
      timeout: 5000,
      interval: 20,
    });
    await records.update("lease", (before) => (before === undefined ? "another's" : undefined), 60_000);
    expect(await records.get("lease")).toBe("another's");
  });

  it("stay as they are where a change makes nothing of them, or throws", async () => {
    const { records } = await current().open();
    await records.update("none", () => undefined);
    expect(await records.get("none")).toBeUndefined();
    await records.set("kept", 1);
    const fail = () => {
      throw new Error("taken");
    };
    await expect(records.update("kept", fail)).rejects.toThrow("taken");
    expect(await records.get("kept")).toBe(1);
  });
});
