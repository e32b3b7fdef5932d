import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { createGroupCommit } from "../../../../src/conversations/sqlite/group-commit.ts";

let folder: string;
let database: DatabaseSync;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "parley-group-"));
  database = new DatabaseSync(join(folder, "test.db"));
  database.exec("PRAGMA journal_mode = WAL; CREATE TABLE words (word TEXT PRIMARY KEY)");
});
afterEach(() => {
  database.close();
  rmSync(folder, { recursive: true });
});

class FileError extends Error {}

const createSubject = () =>
  createGroupCommit(database, { isOfOneWrite: (error) => !(error instanceof FileError) });

/** Returns what SQLite waits for when it commits now: 2 the disk, 1 nothing. */
const synchronous = () => database.prepare("PRAGMA synchronous").get()?.["synchronous"];
/** Resolves also to what SQLite waited for. */
const insert = (word: string) => () => {
  const isWritten = database.prepare("INSERT OR IGNORE INTO words (word) VALUES (?)").run(word).changes > 0;
  return { result: [isWritten ? word : "taken", synchronous()], isWritten };
};
const words = () =>
  database
    .prepare("SELECT word FROM words ORDER BY rowid")
    .all()
    .map((row) => row["word"]);

describe("group commit", () => {
  it("writes what comes in one moment in one transaction that waits for the disk, in order", async () => {
    const group = createSubject();
    const writes = ["c", "a", "b"].map((word) => group.run(insert(word), word === "a" ? "soon" : "durable"));
    expect(await Promise.all(writes)).toEqual([
      ["c", 2],
      ["a", 2],
      ["b", 2],
    ]);
    expect(words()).toEqual(["c", "a", "b"]);
    expect(group.counts).toEqual({ commits: 1, durableCommits: 1, syncs: 1 });
  });

  it("resolves soon without the disk", async () => {
    const group = createSubject();
    expect(await group.run(insert("a"), "soon")).toEqual(["a", 1]);
    expect(group.counts).toEqual({ commits: 1, durableCommits: 0, syncs: 0 });
    await group.run(insert("b"), "durable");
  });

  it("does not say that an entry is taken before the one that took it is on disk", async () => {
    const group = createSubject();
    await group.run(insert("a"), "soon");
    expect(await group.run(insert("a"), "durable")).toEqual(["taken", 2]);
    // Now the disk has it, so nothing is written.
    await group.run(insert("a"), "durable");
  });

  it("lets a write that fails take no other with it", async () => {
    const group = createSubject();
    const broken = () => {
      insert("half")();
      throw new Error("too large");
    };
    const writes = [
      group.run(insert("a"), "durable"),
      group.run(broken, "durable"),
      group.run(insert("a"), "durable"),
      group.run(insert("b"), "durable"),
    ];
    expect(await Promise.allSettled(writes)).toEqual([
      { status: "fulfilled", value: ["a", 2] },
      { status: "rejected", reason: expect.objectContaining({ message: "too large" }) },
      { status: "fulfilled", value: ["taken", 2] },
      { status: "fulfilled", value: ["b", 2] },
    ]);
    expect(words()).toEqual(["a", "b"]);
  });

  it("fails every write of a transaction that the file refuses, and none after it", async () => {
    const group = createSubject();
    const writes = [
      group.run(insert("a"), "durable"),
      group.run(() => {
        throw new FileError("full");
      }, "soon"),
      group.run(insert("b"), "soon"),
    ];
    const outcomes = await Promise.allSettled(writes);
    expect(outcomes.map(({ status }) => status)).toEqual(["rejected", "rejected", "rejected"]);
    expect(words()).toEqual([]);
    expect(await group.run(insert("c"), "durable")).toEqual(["c", 2]);
  });

  it("commits at once when it is flushed, and has the disk write what was committed before", async () => {
    const group = createSubject();
    await group.run(insert("a"), "soon");
    const write = group.run(insert("b"), "soon");
    group.flush();
    expect(words()).toEqual(["a", "b"]);
    expect(await write).toEqual(["b", 1]);
    group.flush();
  });
});
