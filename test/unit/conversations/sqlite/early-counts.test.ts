import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { IndexChange, PassedLimit } from "../../../../src/conversations/backend.ts";
import {
  openSqliteBackend,
  type SqliteBackend,
} from "../../../../src/conversations/sqlite/sqlite-backend.ts";

let folder: string;
let backend: SqliteBackend;
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "parley-early-"));
  backend = openSqliteBackend(join(folder, "a.db"));
});
afterEach(async () => {
  await backend.close();
  await rm(folder, { recursive: true });
});

const add = (member: string, score = 1): IndexChange => ({
  kind: "add-score",
  index: "turns",
  member,
  score,
});
/** Counts, unless the member has been counted `max` times. */
const count = (
  member: string,
  max: number,
  onLost: () => void = () => expect.unreachable(),
): Promise<PassedLimit | undefined> =>
  backend.count([{ terms: [{ index: "turns", member }], max: max - 1 }], [add(member)], { onLost });
const page = { order: "lowest-first", offset: 0, max: 10 } as const;
const scoreOf = async (member: string) =>
  (await backend.readIndex("turns", page)).find((each) => each.member === member)?.score;
const written = () => new Promise<void>((resolve) => setImmediate(() => setImmediate(resolve)));

describe("an early count on SQLite", () => {
  it("is part of the sum for the next before it is written, and once when it is", async () => {
    const burst = await Promise.all(Array.from({ length: 5 }, () => count("ada", 3)));
    expect(burst.map((passed) => passed?.scores)).toEqual([undefined, undefined, undefined, [3], [3]]);
    expect(await count("bo", 1)).toBeUndefined();
    await written();
    expect(await scoreOf("ada")).toBe(3);
    expect((await count("ada", 3))?.scores).toEqual([3]);
    expect(await count("ada", 4)).toBeUndefined();
    expect((await count("ada", 4))?.scores).toEqual([4]);
  });

  it("is written also where nothing follows, and survives the end of the process", async () => {
    expect(await count("ada", 1)).toBeUndefined();
    await backend.close();
    backend = openSqliteBackend(join(folder, "a.db"));
    expect(await scoreOf("ada")).toBe(1);
  });

  it("says that it is lost where it cannot be written, and is no part of later sums", async () => {
    const blocker = new DatabaseSync(join(folder, "a.db"));
    blocker.exec("CREATE TRIGGER full BEFORE INSERT ON rankings BEGIN SELECT RAISE(ABORT, 'no room'); END");
    let lost = 0;
    expect(await count("ada", 1, () => lost++)).toBeUndefined();
    await expect.poll(() => lost).toBe(1);
    blocker.exec("DROP TRIGGER full");
    blocker.close();
    expect(await count("ada", 1)).toBeUndefined();
    await written();
    expect(await scoreOf("ada")).toBe(1);
    expect((await count("ada", 1))?.scores).toEqual([1]);
  });
});
