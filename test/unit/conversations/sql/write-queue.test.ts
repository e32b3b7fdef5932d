import { afterEach, describe, expect, it } from "vitest";
import { createWriteQueue } from "../../../../src/conversations/sql/write-queue.ts";
import { createManualClock } from "../../../support/manual-clock.ts";

class FileError extends Error {}

interface Word {
  readonly text: string;
  readonly failure?: Error;
}

/** The transactions that were committed. */
let committed: string[][] = [];
afterEach(() => {
  committed = [];
});

/** A queue whose transactions hold words, and end when they may. */
const createSubject = (mayEnd: () => Promise<void> = async () => {}) => {
  const clock = createManualClock();
  const queue = createWriteQueue<Word>({
    async commit(words) {
      await mayEnd();
      const failure = words.find((word) => word.failure !== undefined)?.failure;
      if (failure !== undefined) throw failure;
      committed.push(words.map(({ text }) => text));
      return words.map(({ text }) => `${text}!`);
    },
    isOfOneWrite: (error) => !(error instanceof FileError),
    fits: (batch) => batch.length < 5,
    maxWaitMs: 1000,
    clock,
  });
  return { clock, write: (text: string, failure?: Error) => queue({ text, ...(failure && { failure }) }) };
};

describe("the writes of one moment", () => {
  it("are one transaction, in order", async () => {
    const { write } = createSubject();
    expect(await Promise.all(["c", "a", "b"].map((text) => write(text)))).toEqual(["c!", "a!", "b!"]);
    expect(committed).toEqual([["c", "a", "b"]]);
  });

  it("wait together for the transaction that runs, as many as fit", async () => {
    const running = Promise.withResolvers<void>();
    const { write } = createSubject(() => running.promise);
    const first = write("first");
    await new Promise((resolve) => setImmediate(resolve));
    const rest = ["a", "b", "c", "d", "e", "f"].map((text) => write(text));
    running.resolve();
    await Promise.all([first, ...rest]);
    expect(committed).toEqual([["first"], ["a", "b", "c", "d", "e"], ["f"]]);
  });

  it("fail alone where one is at fault, and stay in order", async () => {
    const { write } = createSubject();
    const writes = [write("a"), write("broken", new Error("too large")), write("b")];
    expect(await Promise.allSettled(writes)).toEqual([
      { status: "fulfilled", value: "a!" },
      { status: "rejected", reason: expect.objectContaining({ message: "too large" }) },
      { status: "fulfilled", value: "b!" },
    ]);
    expect(committed).toEqual([["a"], ["b"]]);
  });

  it("all fail where the file is at fault, and those after them do not", async () => {
    const { write } = createSubject();
    const writes = [write("a"), write("broken", new FileError("full")), write("b")];
    const outcomes = await Promise.allSettled(writes);
    expect(outcomes.map(({ status }) => status)).toEqual(["rejected", "rejected", "rejected"]);
    expect(await write("c")).toBe("c!");
    expect(committed).toEqual([["c"]]);
  });

  it("are not sent when they have waited too long behind another", async () => {
    const running = Promise.withResolvers<void>();
    const { write, clock } = createSubject(() => running.promise);
    const first = write("first");
    await new Promise((resolve) => setImmediate(resolve));
    const late = write("late");
    await clock.advance(1001);
    const inTime = write("in time");
    running.resolve();
    await expect(late).rejects.toThrow("not sent");
    await Promise.all([first, inTime]);
    expect(committed).toEqual([["first"], ["in time"]]);
  });
});
