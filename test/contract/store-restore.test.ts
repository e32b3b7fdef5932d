import { copyFile, mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { openStore, type Store } from "../../src/conversations/open-store.ts";
import { silentLog } from "../support/silent-log.ts";
import { messageOf } from "../support/store-samples.ts";

let folder: string;
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "parley-restore-"));
});
afterEach(async () => {
  await rm(folder, { recursive: true });
});

const copy = () => join(folder, "copy", "parley.db");

async function withStore<T>(
  file: string,
  work: (store: Store) => Promise<T>,
  options: { exclusive?: boolean } = {},
): Promise<T> {
  const store = await openStore(`sqlite:${file}`, { log: silentLog, ...options });
  try {
    return await work(store);
  } finally {
    await store.close();
  }
}

async function backUp(): Promise<{ before: number }> {
  const file = join(folder, "parley.db");
  return withStore(file, async (store) => {
    await store.conversations.append("web:1", messageOf("kept"));
    expect(store.restored).toBeUndefined();
    const before = Date.now();
    await store.backup(join(folder, "copy"));
    return { before };
  });
}

describe("a backup that is put in place", () => {
  it("says when it was made and when it was opened, also after a crash right then", async () => {
    const { before } = await backUp();
    const first = await withStore(copy(), async (store) => store.restored);
    expect(first?.backedUpAt).toBeGreaterThanOrEqual(before);
    expect(first?.restoredAt).toBeGreaterThanOrEqual(first?.backedUpAt ?? Infinity);
    expect(await withStore(copy(), async (store) => store.restored)).toEqual(first);
  });

  it("counts from the bot's own open, not from a program that looks at it", async () => {
    await backUp();
    expect(await withStore(copy(), async (store) => store.restored, { exclusive: false })).toBeUndefined();
    expect(await withStore(copy(), async (store) => store.restored)).toBeDefined();
  });

  it("counts anew when the same backup is put in place again", async () => {
    await backUp();
    await copyFile(copy(), join(folder, "again.db"));
    const first = await withStore(copy(), async (store) => store.restored);
    const second = await withStore(join(folder, "again.db"), async (store) => store.restored);
    expect(second?.backedUpAt).toBe(first?.backedUpAt);
    expect(second?.restoredAt).toBeGreaterThanOrEqual(first?.restoredAt ?? Infinity);
  });
});
