import { mkdtempSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, it } from "vitest";
import type { BackendChange } from "../../../../src/conversations/backend.ts";
import { openSqliteBackend, type SqliteBackend } from "../../../../src/conversations/sql/sqlite.ts";

let folder: string;
let backend: SqliteBackend;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "parley-durable-"));
  backend = openSqliteBackend(join(folder, "test.db"));
});
afterEach(async () => {
  await backend.close();
  rmSync(folder, { recursive: true });
});

const at = (key: string) => ({ space: "record", key }) as const;
const set = (key: string): BackendChange => ({ kind: "set", at: at(key), value: "{}", expires: undefined });
/** What was committed. SQLite waits for the disk, where it does, after it has written the log of writes. */
const logBytes = () => statSync(join(folder, "test.db-wal")).size;

it("waits for the disk once for all writes of a moment of which one is durable", async () => {
  await Promise.all([
    backend.apply([], [set("a")], "soon"),
    backend.apply([], [set("b")]),
    backend.apply([], [set("c")], "soon"),
  ]);
  expect(backend.writes()).toEqual({ commits: 1, durableCommits: 1, syncs: 1 });
});

it("does not wait for the disk where nothing of a moment is durable", async () => {
  await backend.apply([], [set("a")], "soon");
  expect(backend.writes()).toEqual({ commits: 1, durableCommits: 0, syncs: 0 });
});

it("does not say that an entry is taken before the one that took it is on disk", async () => {
  await backend.apply([], [set("a")], "soon");
  const before = logBytes();
  expect(await backend.apply([at("a")], [set("a")])).toBe(0);
  // Without a changed page SQLite would not have waited for the disk.
  expect(logBytes()).toBeGreaterThan(before);
  expect(backend.writes()).toEqual({ commits: 2, durableCommits: 1, syncs: 1 });
  // Now the disk has it, so nothing is written.
  const after = logBytes();
  expect(await backend.apply([at("a")], [set("a")])).toBe(0);
  expect(logBytes()).toBe(after);
});

it("lets a write that fails take no other with it", async () => {
  const broken = { kind: "set", at: at("broken"), value: undefined, expires: undefined } as unknown;
  const outcomes = await Promise.allSettled([
    backend.apply([], [set("a")]),
    backend.apply([], [set("half"), broken as BackendChange]),
    backend.apply([at("a")], [set("b")]),
  ]);
  expect(outcomes.map(({ status }) => status)).toEqual(["fulfilled", "rejected", "fulfilled"]);
  expect(await backend.read(["a", "half", "b"].map(at))).toEqual(["{}", undefined, undefined]);
});
