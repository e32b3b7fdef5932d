import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import type { Json } from "../../../../src/core/events.ts";
import type { EditTarget } from "../../../../src/platforms/delivery/edit-target.ts";
import { createEditingReply } from "../../../../src/platforms/delivery/editing-reply.ts";
import { silentLog } from "../../../support/silent-log.ts";
import { createFakeTarget } from "./fake-target.ts";

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

/** A reply whose platform shows a sign of work. `signs`: what it showed, in order. */
function setUp(more: Partial<EditTarget> = {}, savedRefs: readonly Json[] = []) {
  const signs: (string | undefined)[] = [];
  const saved: (readonly Json[])[] = [];
  const target = createFakeTarget({
    sign: {
      showsWords: false,
      show: (status) => void signs.push(`shown ${status ?? ""}`),
      clear: () => void signs.push("cleared"),
    },
    ...more,
  });
  const reply = createEditingReply({
    target,
    savedRefs,
    saveRefs: async (refs) => void saved.push(refs),
    placeholder: "Thinking",
    log: silentLog,
  });
  return { target, reply, signs, saved };
}

describe("a reply with a sign of work", () => {
  it("posts no placeholder: the first text is the first post", async () => {
    const { target, reply, signs, saved } = setUp();
    await reply.show();
    expect(signs).toEqual(["shown Thinking"]);
    expect(saved).toEqual([[]]);
    reply.status("Transcribing");
    await vi.advanceTimersByTimeAsync(5000);
    expect(target.calls).toEqual([]);
    expect(signs).toEqual(["shown Thinking", "shown Transcribing"]);
    reply.write({ text: "Hello" });
    await vi.advanceTimersByTimeAsync(0);
    expect(target.calls.map(({ kind, content }) => [kind, content?.text])).toEqual([["post", "Hello"]]);
    expect(signs.at(-1)).toBe("cleared");
    expect(saved.at(-1)).toEqual([{ id: 0 }]);
    await reply.finish();
  });

  it("posts the words of a long step where the sign shows none, and the text takes their place", async () => {
    const { target, reply } = setUp();
    await reply.show();
    reply.status("Transcribing part 1 of 2", { isLong: true });
    await vi.advanceTimersByTimeAsync(0);
    reply.status("Transcribing part 2 of 2", { isLong: true });
    await vi.advanceTimersByTimeAsync(10_000);
    reply.write({ text: "Hello" });
    await vi.advanceTimersByTimeAsync(10_000);
    await reply.finish();
    expect(target.calls.map(({ kind, content }) => [kind, content?.text, content?.status])).toEqual([
      ["post", "", "Transcribing part 1 of 2"],
      ["edit", "", "Transcribing part 2 of 2"],
      ["edit", "Hello", undefined],
      ["edit", "Hello", undefined],
    ]);
  });

  it("leaves them to a sign that shows words", async () => {
    const { target, reply } = setUp({
      sign: { showsWords: true, show: () => undefined, clear: () => undefined },
    });
    await reply.show();
    reply.status("Transcribing part 1 of 2", { isLong: true });
    await vi.advanceTimersByTimeAsync(5000);
    expect(target.calls).toEqual([]);
    reply.abandon();
  });

  it("clears it when it fails or is abandoned without text", async () => {
    const failed = setUp();
    await failed.reply.show();
    await failed.reply.fail({ text: "No answer." });
    expect(failed.signs.at(-1)).toBe("cleared");
    const abandoned = setUp();
    await abandoned.reply.show();
    abandoned.reply.abandon();
    expect(abandoned.signs.at(-1)).toBe("cleared");
  });

  it("says in the messages of an earlier run that there will be another answer", async () => {
    const { target, reply } = setUp();
    await target.post({ text: "failed", state: "failed" }, new AbortController().signal, "final");
    const resumed = createEditingReply({
      target,
      savedRefs: [{ id: 0 }],
      saveRefs: () => Promise.resolve(),
      placeholder: "Thinking",
      log: silentLog,
    });
    await resumed.show();
    expect(target.messages).toEqual([{ text: "", state: "waiting", status: "Thinking" }]);
    reply.abandon();
    resumed.abandon();
  });
});

describe("a reply whose target has no room", () => {
  it("waits with its first text, and shows the latest when there is room", async () => {
    let roomInMs = 700;
    const { target, reply } = setUp({ roomInMs: () => roomInMs });
    await reply.show();
    reply.write({ text: "one" });
    await vi.advanceTimersByTimeAsync(600);
    reply.write({ text: "one two" });
    expect(target.calls).toEqual([]);
    roomInMs = 0;
    await vi.advanceTimersByTimeAsync(100);
    expect(target.calls.map(({ content }) => content?.text)).toEqual(["one two"]);
    await reply.finish();
  });

  it("shows nothing before the end where there is none, and then everything", async () => {
    const asked: string[] = [];
    const { target, reply } = setUp({
      roomInMs(kind) {
        asked.push(kind);
        return Infinity;
      },
    });
    await reply.show();
    for (let index = 0; index < 100; index += 1) {
      reply.write({ text: `text ${index}` });
      await vi.advanceTimersByTimeAsync(50);
    }
    expect(target.calls).toEqual([]);
    // A target is not asked for every piece of text.
    expect(asked.length).toBeLessThan(10);
    await reply.finish();
    expect(target.messages).toEqual([{ text: "text 99", state: "finished", notices: [] }]);
  });

  it("asks for room of the right kind", async () => {
    const asked: string[] = [];
    const { reply } = setUp({
      roomInMs(kind) {
        asked.push(kind);
        return 0;
      },
    });
    await reply.show();
    reply.write({ text: "one" });
    await vi.advanceTimersByTimeAsync(2000);
    reply.write({ text: "one two" });
    await vi.advanceTimersByTimeAsync(2000);
    expect(asked).toEqual(["first", "preview"]);
    await reply.finish();
  });

  it("says how urgent each call is", async () => {
    const urgencies: string[] = [];
    const { target, reply } = setUp();
    const inner = { ...target };
    Object.assign(target, {
      post: (...given: Parameters<EditTarget["post"]>) => (urgencies.push(given[2]), inner.post(...given)),
      edit: (...given: Parameters<EditTarget["edit"]>) => (urgencies.push(given[3]), inner.edit(...given)),
    });
    await reply.show();
    reply.write({ text: "one" });
    await vi.advanceTimersByTimeAsync(2000);
    reply.write({ text: "one two" });
    await vi.advanceTimersByTimeAsync(100);
    reply.write({ text: "one two three" });
    await reply.finish();
    expect(urgencies).toEqual(["first", "preview", "final"]);
  });
});

describe("a message that an edit posts anew", () => {
  it("is edited and saved as the new one", async () => {
    const { target, reply, saved } = setUp();
    const inner = { ...target };
    Object.assign(target, {
      async edit(...given: Parameters<EditTarget["edit"]>) {
        await inner.edit(...given);
        target.messages[1] = target.messages[0]!;
        return { id: 1 };
      },
    });
    await reply.show();
    reply.write({ text: "one" });
    await vi.advanceTimersByTimeAsync(2000);
    reply.write({ text: "one two" });
    await reply.finish();
    expect(saved.at(-1)).toEqual([{ id: 1 }]);
  });

  it("is closed once", async () => {
    let closed = 0;
    const { reply } = setUp({ close: () => void (closed += 1) });
    await reply.show();
    reply.write({ text: "one" });
    await reply.finish();
    reply.abandon();
    expect(closed).toBe(1);
  });
});
