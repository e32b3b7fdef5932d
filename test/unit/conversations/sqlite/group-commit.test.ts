import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { createGroupCommit, type GroupCommit } from "../../../../src/conversations/sqlite/group-commit.ts";
import { createManualClock, type ManualClock } from "../../../support/manual-clock.ts";

let folder: string;
let database: DatabaseSync;
let clock: ManualClock;
beforeEach(() => {
  clock = createManualClock();
  folder = mkdtempSync(join(tmpdir(), "parley-group-"));
  database = new DatabaseSync(join(folder, "test.db"));
  database.exec("PRAGMA journal_mode = WAL; CREATE TABLE words (word TEXT PRIMARY KEY)");
});
afterEach(() => {
  database.close();
  rmSync(folder, { recursive: true });
});

class FileError extends Error {}

/** A disk that is as fast as the test lets it be, and a trail that remembers its notes. */
function createSubject(): {
  readonly group: GroupCommit;
  readonly notes: number[];
  /** Ends the sync in flight. */
  readonly endSync: (error?: Error) => void;
  readonly syncs: () => number;
} {
  const running: ((error: unknown) => void)[] = [];
  const notes: number[] = [];
  let syncs = 0;
  let commits = 0;
  const group = createGroupCommit(database, {
    clock,
    onRollback: () => {},
    trail: { advance: () => ++commits, note: (commit) => void notes.push(commit) },
    disk: {
      sync(done) {
        syncs++;
        running.push(done);
      },
      syncNow: () => undefined,
    },
    isOfOneWrite: (error) => !(error instanceof FileError),
  });
  return { group, notes, endSync: (error) => running.shift()?.(error), syncs: () => syncs };
}

const insert = (word: string) => () => {
  const isWritten = database.prepare("INSERT OR IGNORE INTO words (word) VALUES (?)").run(word).changes > 0;
  return { result: isWritten ? word : "taken", isWritten };
};
const words = () =>
  database
    .prepare("SELECT word FROM words ORDER BY rowid")
    .all()
    .map((row) => row["word"]);
const nextMoment = () => new Promise<void>((resolve) => setImmediate(() => setImmediate(resolve)));
/** Whether a promise is settled by now. */
const isSettled = async (promise: Promise<unknown>) => {
  const pending = Symbol("pending");
  return (await Promise.race([promise.catch(() => undefined), nextMoment().then(() => pending)])) !== pending;
};

describe("group commit", () => {
  it("writes what comes in one moment in one transaction with one sync, in order", async () => {
    const { group, endSync, notes } = createSubject();
    const writes = ["c", "a", "b"].map((word) => group.run(insert(word), "durable"));
    await nextMoment();
    endSync();
    expect(await Promise.all(writes)).toEqual(["c", "a", "b"]);
    expect(words()).toEqual(["c", "a", "b"]);
    expect(group.counts).toEqual({ commits: 1, durableCommits: 1, syncs: 1 });
    expect(notes).toEqual([1]);
  });

  it("says of what was written that it is committed, before the disk has it", async () => {
    const { group, endSync, syncs } = createSubject();
    const happened: string[] = [];
    const says = (word: string) => () =>
      void happened.push(`${word}, ${words().length} rows, ${syncs()} syncs`);
    const first = group.run(insert("a"), "durable", says("a"));
    const taken = group.run(insert("a"), "durable", says("a again"));
    const second = group.run(insert("b"), "durable", says("b"));
    await nextMoment();
    expect(happened).toEqual(["a, 2 rows, 1 syncs", "b, 2 rows, 1 syncs"]);
    expect(await isSettled(first)).toBe(false);
    endSync(new FileError("the disk is gone"));
    for (const write of [first, taken, second]) await expect(write).rejects.toThrow("the disk is gone");
    expect(happened).toHaveLength(2);
  });

  it("says nothing of a transaction that is rolled back", async () => {
    const { group } = createSubject();
    const onWritten = vi.fn();
    const fail = () => {
      throw new FileError("full");
    };
    const writes = [group.run(insert("a"), "durable", onWritten), group.run(fail, "durable", onWritten)];
    for (const write of writes) await expect(write).rejects.toThrow("full");
    expect(onWritten).not.toHaveBeenCalled();
  });

  it("resolves when the disk has the write, and writes of meanwhile share the next sync", async () => {
    const { group, endSync, syncs } = createSubject();
    const first = group.run(insert("a"), "durable");
    await nextMoment();
    const second = group.run(insert("b"), "durable");
    await nextMoment();
    const third = group.run(insert("c"), "durable");
    await nextMoment();
    expect(await isSettled(first)).toBe(false);
    endSync();
    expect(await first).toBe("a");
    expect(await isSettled(second)).toBe(false);
    endSync();
    expect(await Promise.all([second, third])).toEqual(["b", "c"]);
    expect(syncs()).toBe(2);
  });

  it("lets a write that fails take no other with it", async () => {
    const { group, endSync } = createSubject();
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
    const outcomes = Promise.allSettled(writes);
    await nextMoment();
    for (let n = 0; n < 4; n++) endSync();
    expect(await outcomes).toEqual([
      { status: "fulfilled", value: "a" },
      { status: "rejected", reason: expect.objectContaining({ message: "too large" }) },
      { status: "fulfilled", value: "taken" },
      { status: "fulfilled", value: "b" },
    ]);
    expect(words()).toEqual(["a", "b"]);
  });

  it("fails every write of a transaction that the file refuses, and none after it", async () => {
    const { group, endSync } = createSubject();
    const writes = [
      group.run(insert("a"), "durable"),
      group.run(() => {
        throw new FileError("full");
      }, "soon"),
      group.run(insert("b"), "counted"),
    ];
    const outcomes = await Promise.allSettled(writes);
    expect(outcomes.map(({ status }) => status)).toEqual(["rejected", "rejected", "rejected"]);
    expect(words()).toEqual([]);
    const later = group.run(insert("c"), "durable");
    await nextMoment();
    endSync();
    expect(await later).toBe("c");
  });

  it("fails what a failed sync was waited for with, and syncs it again with the next write", async () => {
    const { group, endSync, notes } = createSubject();
    const first = group.run(insert("a"), "durable");
    await nextMoment();
    endSync(new Error("EIO"));
    await expect(first).rejects.toThrow("EIO");
    expect(notes).toEqual([]);
    const second = group.run(insert("a"), "durable");
    await nextMoment();
    expect(await isSettled(second)).toBe(false);
    endSync();
    expect(await second).toBe("taken");
    expect(notes).toEqual([1]);
  });

  it("does not say that an entry is taken before the one that took it is on disk", async () => {
    const { group, endSync } = createSubject();
    void group.run(insert("a"), "soon");
    await nextMoment();
    const second = group.run(insert("a"), "durable");
    expect(await isSettled(second)).toBe(false);
    endSync();
    expect(await second).toBe("taken");
  });

  it("resolves soon when it is committed, and has it on disk 250 ms later, or with the next sync", async () => {
    const { group, endSync, syncs, notes } = createSubject();
    const writeSoon = async (word: string) => {
      const write = group.run(insert(word), "soon");
      await clock.advance(10);
      return write;
    };
    expect(await writeSoon("a")).toBe("a");
    expect(syncs()).toBe(0);
    await clock.advance(249);
    expect(syncs()).toBe(0);
    await clock.advance(1);
    expect(syncs()).toBe(1);
    // Committed while the disk is busy: it is not forgotten.
    await writeSoon("b");
    await clock.advance(250);
    endSync();
    await clock.advance(250);
    expect(syncs()).toBe(2);
    endSync();
    expect(notes).toEqual([1, 2]);

    await writeSoon("c");
    const durable = group.run(insert("d"), "durable");
    await nextMoment();
    endSync();
    await durable;
    await clock.advance(1000);
    expect(syncs()).toBe(3);
  });

  it("lets a write that can wait share the sync of the next one, for 5 ms", async () => {
    const { group, endSync, syncs, notes } = createSubject();
    let isWritten = false;
    const first = group.run(insert("a"), "together", () => (isWritten = true));
    await nextMoment();
    expect(isWritten).toBe(true);
    expect(await isSettled(first)).toBe(false);
    expect(syncs()).toBe(0);
    const second = group.run(insert("b"), "durable");
    await nextMoment();
    expect(syncs()).toBe(1);
    endSync();
    expect(await Promise.all([first, second])).toEqual(["a", "b"]);
    expect(group.counts).toEqual({ commits: 2, durableCommits: 2, syncs: 1 });
    expect(notes).toEqual([2]);

    const alone = group.run(insert("c"), "together");
    await nextMoment();
    await clock.advance(4);
    expect(syncs()).toBe(1);
    await clock.advance(1);
    expect(syncs()).toBe(2);
    expect(await isSettled(alone)).toBe(false);
    endSync();
    expect(await alone).toBe("c");
    await clock.advance(1000);
    expect(syncs()).toBe(2);
  });

  it("syncs a write that has waited for others next, where the disk was busy meanwhile", async () => {
    const { group, endSync, syncs } = createSubject();
    const before = group.run(insert("a"), "durable");
    await nextMoment();
    const write = group.run(insert("b"), "together");
    await nextMoment();
    expect(syncs()).toBe(1);
    endSync();
    await before;
    expect(syncs()).toBe(2);
    expect(await isSettled(write)).toBe(false);
    endSync(new Error("EIO"));
    await expect(write).rejects.toThrow("EIO");
  });

  it("never waits for the disk for counts, and does not note them", async () => {
    const { group, syncs, notes } = createSubject();
    expect(await group.run(insert("a"), "counted")).toBe("a");
    await clock.advance(1000);
    expect(syncs()).toBe(0);
    expect(notes).toEqual([]);
  });

  it("commits and syncs at once when it is flushed", async () => {
    const { group, notes } = createSubject();
    const write = group.run(insert("a"), "durable");
    group.flush();
    expect(words()).toEqual(["a"]);
    expect(await write).toBe("a");
    expect(notes).toEqual([1]);
  });
});
