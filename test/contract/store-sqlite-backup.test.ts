import { copyFile, mkdtemp, readdir, readFile, rm, stat } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { openStore, type Store } from "../../src/conversations/open-store.ts";
import { silentLog } from "../support/silent-log.ts";
import { messageOf } from "../support/store-samples.ts";

let folder: string;
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "parley-backup-"));
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

describe("backup", () => {
  it("is a consistent snapshot of a store in use that can be opened as a store", async () => {
    const target = join(folder, "backup");
    const bytes = Buffer.from("a picture");
    const { atStart, acknowledged } = await withStore(join(folder, "live/parley.db"), async (store) => {
      const { hash } = await store.conversations.putBlob("web:1", bytes, "image/png");
      const acknowledged: string[] = [];
      const end = new AbortController();
      const writer = (async () => {
        for (let n = 0; !end.signal.aborted; n++) {
          await store.conversations.append("web:1", messageOf(`m${n}`, "x".repeat(2000)));
          acknowledged.push(`m${n}`);
          await new Promise((resolve) => setImmediate(resolve));
        }
      })();
      while (acknowledged.length < 200) await new Promise((resolve) => setImmediate(resolve));
      const atStart = acknowledged.length;
      await store.backup(target);
      end.abort();
      await writer;
      expect(hash).toHaveLength(64);
      return { atStart, acknowledged };
    });
    expect((await stat(join(target, "parley.db"))).mode & 0o777).toBe(0o600);
    await withStore(join(target, "parley.db"), async (store) => {
      const ids = (await store.conversations.recent("web:1", { maxMessages: 100_000 })).map(({ id }) => id);
      expect(ids.length).toBeGreaterThanOrEqual(atStart);
      expect(ids).toEqual(acknowledged.slice(0, ids.length));
      const [name] = await readdir(join(target, "blobs"));
      const [hash] = await readdir(join(target, "blobs", name ?? ""));
      expect(Buffer.from((await store.conversations.getBlob("web:1", hash ?? ""))?.bytes ?? [])).toEqual(
        bytes,
      );
    });
  });

  it("never fails because the store is written to meanwhile", async () => {
    await withStore(join(folder, "live/parley.db"), async (store) => {
      const end = new AbortController();
      const writer = (async () => {
        for (let n = 0; !end.signal.aborted; n++) {
          await store.records.set(`key ${n}`, "x".repeat(2000));
          await new Promise((resolve) => setImmediate(resolve));
        }
      })();
      // A failed first step of a backup must be repeated.
      for (let n = 0; n < 40; n++) await store.backup(join(folder, `backup ${n}`));
      end.abort();
      await writer;
    });
  });

  it("never overwrites another backup", async () => {
    await withStore(join(folder, "live/parley.db"), async (store) => {
      await store.backup(join(folder, "backup"));
      const before = await readFile(join(folder, "backup/parley.db"));
      await expect(store.backup(join(folder, "backup"))).rejects.toMatchObject({ code: "config" });
      expect(await readFile(join(folder, "backup/parley.db"))).toEqual(before);
    });
  });
});

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
