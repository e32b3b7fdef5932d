import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { ParleyError } from "../../../../src/core/errors.ts";
import type { Json } from "../../../../src/core/events.ts";
import type { EditTarget } from "../../../../src/platforms/delivery/message-plan.ts";
import { createEditingReply } from "../../../../src/platforms/delivery/editing-reply.ts";
import { silentLog } from "../../../support/fakes.ts";
import { createFakeTarget, type FakeTarget } from "./fake-target.ts";

describe("signs of work", () => {
  beforeEach(() => void vi.useFakeTimers());
  afterEach(() => void vi.useRealTimers());

  /** Makes a reply whose platform shows a sign of work. `signs` lists what it showed, in order. */
  function setUp(more: Partial<EditTarget> = {}, savedRefs: readonly Json[] = []) {
    const signs: string[] = [];
    const saved: (readonly Json[])[] = [];
    const target = createFakeTarget({
      sign: {
        show: () => void signs.push("shown"),
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
      expect(signs).toEqual(["shown"]);
      expect(saved).toEqual([[]]);
      reply.status("Transcribing");
      await vi.advanceTimersByTimeAsync(5000);
      expect(target.calls).toEqual([]);
      expect(signs).toEqual(["shown", "shown"]);
      reply.write({ text: "Hello" });
      await vi.advanceTimersByTimeAsync(0);
      expect(target.calls.map(({ kind, content }) => [kind, content?.text])).toEqual([["post", "Hello"]]);
      expect(signs.at(-1)).toBe("cleared");
      expect(saved.at(-1)).toEqual([{ id: 0 }]);
      await reply.finish();
    });

    it("posts the words of a long step, and the text takes their place", async () => {
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
      await target.post(
        { text: "failed", state: "failed" },
        { urgency: "final", signal: new AbortController().signal },
      );
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
      expect(asked).toEqual(["first", "growth"]);
      await reply.finish();
    });

    it("says how urgent each call is", async () => {
      const urgencies: string[] = [];
      const { target, reply } = setUp();
      const inner = { ...target };
      Object.assign(target, {
        post: (...given: Parameters<EditTarget["post"]>) => (
          urgencies.push(given[1].urgency),
          inner.post(...given)
        ),
        edit: (...given: Parameters<EditTarget["edit"]>) => (
          urgencies.push(given[2].urgency),
          inner.edit(...given)
        ),
      });
      await reply.show();
      reply.write({ text: "one" });
      await vi.advanceTimersByTimeAsync(2000);
      reply.write({ text: "one two" });
      await vi.advanceTimersByTimeAsync(100);
      reply.write({ text: "one two three" });
      await reply.finish();
      expect(urgencies).toEqual(["first", "growth", "final"]);
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
});

describe("steering", () => {
  beforeEach(() => void vi.useFakeTimers());
  afterEach(() => void vi.useRealTimers());

  const words = (count: number) => Array.from({ length: count }, (_, index) => `word${index}`).join(" ");

  function setUp(options: Partial<Parameters<typeof createEditingReply>[0]> & { target?: FakeTarget } = {}) {
    const target = options.target ?? createFakeTarget();
    const saveRefs = () => Promise.resolve();
    return { target, reply: createEditingReply({ saveRefs, log: silentLog, ...options, target }) };
  }

  describe("a reply that people steer", () => {
    it("empties a message of an earlier, longer answer that it cannot delete", async () => {
      const target = createFakeTarget({ remove: () => Promise.reject(new Error("no")) });
      target.messages.push({ text: "old", state: "finished" }, { text: "older", state: "finished" });
      const { reply } = setUp({ target, savedRefs: [{ id: 0 }, { id: 1 }] });
      await reply.show();
      reply.write({ text: "short" });
      await reply.finish();
      expect(target.messages[1]).toEqual({
        text: "The answer is shorter now: nothing of it is left here.",
        state: "finished",
      });
    });

    it("has a Stop button on its last message while it grows, which costs no edit of its own", async () => {
      const stop = { kind: "stop", key: "k" } as const;
      const { reply, target } = setUp({ stop });
      await reply.show();
      expect(target.messages).toEqual([{ text: "", state: "waiting", actions: [stop] }]);
      reply.write({ text: words(25) });
      await vi.advanceTimersByTimeAsync(5000);
      expect(target.messages.map(({ actions }) => actions)).toEqual([undefined, [stop]]);
      const details = { kind: "details", key: "d" } as const;
      await reply.finish({ actions: [details] });
      expect(target.messages.map(({ actions }) => actions)).toEqual([undefined, [details]]);
      expect(target.calls.map(({ kind }) => kind)).toEqual(["post", "edit", "post", "edit"]);
    });

    it("that is short and whole at once has no Stop button", async () => {
      const { reply, target } = setUp({ stop: { kind: "stop", key: "k" }, firstMessageIsShown: true });
      await reply.show();
      target.gate = new Promise((resolve) => setTimeout(resolve, 100));
      const done = reply.finish({ notices: [] });
      await vi.advanceTimersByTimeAsync(200);
      await done;
      expect(target.calls).toMatchObject([{ kind: "post", content: { state: "finished" } }]);
      expect(target.calls[0]?.content?.actions).toBeUndefined();
    });

    it("that is whole when it is written has no Stop button, which would cost an edit more", async () => {
      const { reply, target } = setUp({ stop: { kind: "stop", key: "k" } });
      await reply.show();
      reply.write({ text: "All of it.", isWhole: true });
      await reply.finish();
      expect(target.calls.slice(1).map(({ content }) => content?.actions)).toEqual([undefined, undefined]);
    });
  });
});

describe("abandoning", () => {
  beforeEach(() => void vi.useFakeTimers());
  afterEach(() => {
    vi.restoreAllMocks();
    vi.useRealTimers();
  });

  const unreachable = () => new ParleyError("platform-unreachable", "no answer");

  function setUp() {
    const target = createFakeTarget();
    const lease = { isFresh: true };
    return {
      target,
      lease,
      reply: createEditingReply({
        target,
        log: silentLog,
        saveRefs: () => Promise.resolve(),
        isFresh: () => lease.isFresh,
      }),
    };
  }

  describe("a reply that another process may resume", () => {
    const file = { name: "a.png", mediaType: "image/png", bytes: new Uint8Array(1), altText: "a" };

    for (const how of ["write", "finish", "fail", "attach"] as const) {
      it(`${how}: shows nothing more once the lease is over`, async () => {
        const { reply, target, lease } = setUp();
        await reply.show();
        reply.write({ text: "Hello" });
        await vi.advanceTimersByTimeAsync(3000);
        const calls = target.calls.length;
        lease.isFresh = false;
        reply.write({ text: "Hello there" });
        const work =
          how === "finish"
            ? reply.finish()
            : how === "fail"
              ? reply.fail({ text: "no" })
              : how === "attach"
                ? reply.attach(file)
                : undefined;
        const settled = Promise.allSettled([work]);
        await vi.advanceTimersByTimeAsync(5000);
        // A lease that another process has had does not come back.
        lease.isFresh = true;
        await vi.advanceTimersByTimeAsync(200_000);
        if (work !== undefined)
          expect(await settled).toMatchObject([{ status: "rejected", reason: { code: "stopping" } }]);
        expect(target.calls.length).toBe(calls);
        expect(target.messages.map(({ text }) => text)).toEqual(["Hello"]);
        expect(target.files).toEqual([]);
      });
    }

    it("does not repeat a call that has failed once the lease is over", async () => {
      const { reply, target, lease } = setUp();
      await reply.show();
      reply.write({ text: "Hello" });
      await vi.advanceTimersByTimeAsync(0);
      target.failures.push(unreachable());
      const ending = Promise.allSettled([reply.finish()]);
      const calls = target.calls.length;
      lease.isFresh = false;
      await vi.advanceTimersByTimeAsync(200_000);
      expect(await ending).toMatchObject([{ status: "rejected", reason: { code: "stopping" } }]);
      expect(target.calls.length).toBeLessThanOrEqual(calls + 1);
    });

    it("stops retrying the end when it is abandoned", async () => {
      const { reply, target } = setUp();
      await reply.show();
      reply.write({ text: "Hello" });
      await vi.advanceTimersByTimeAsync(0);
      target.failures.push(...Array.from({ length: 50 }, unreachable));
      const ending = reply.finish();
      void Promise.allSettled([ending]);
      await vi.advanceTimersByTimeAsync(5000);
      reply.abandon();
      await expect(ending).rejects.toMatchObject({ code: "stopping" });
      const calls = target.calls.length;
      await vi.advanceTimersByTimeAsync(200_000);
      expect(target.calls.length).toBe(calls);
    });
  });
});

describe("calm", () => {
  beforeEach(() => void vi.useFakeTimers());
  afterEach(() => void vi.useRealTimers());

  describe("a calm reply", () => {
    it("shows its final text in one post, and nothing before", async () => {
      const target = createFakeTarget();
      const saved: (readonly Json[])[] = [];
      const reply = createEditingReply({
        target,
        isCalm: true,
        placeholder: "Thinking",
        saveRefs: async (refs) => void saved.push(refs),
        log: silentLog,
      });
      await reply.show();
      reply.status("Reading");
      reply.write({ text: "Hello" });
      await vi.advanceTimersByTimeAsync(5000);
      reply.write({ text: "Hello you" });
      await vi.advanceTimersByTimeAsync(5000);
      expect(target.calls).toEqual([]);
      expect(saved).toEqual([[]]);
      await reply.finish({ notices: ["A notice."] });
      expect(target.calls.map(({ kind }) => kind)).toEqual(["post"]);
      expect(target.messages).toEqual([{ text: "Hello you", state: "finished", notices: ["A notice."] }]);
      expect(saved.at(-1)).toEqual([{ id: 0 }]);
    });
  });

  describe("a reply that only ends what an earlier run has shown", () => {
    it("puts no placeholder back before its end", async () => {
      const target = createFakeTarget();
      const first = createEditingReply({
        target,
        placeholder: "Thinking",
        saveRefs: async () => {},
        log: silentLog,
      });
      await first.show();
      first.abandon();
      const reply = createEditingReply({
        target,
        isEndOnly: true,
        placeholder: "Thinking",
        savedRefs: [{ id: 0 }],
        saveRefs: async () => {},
        log: silentLog,
      });
      await reply.show();
      expect(target.calls.map(({ kind }) => kind)).toEqual(["post"]);
      await reply.fail({ text: "Too old." });
      expect(target.calls.map(({ kind }) => kind)).toEqual(["post", "edit"]);
      expect(target.messages).toMatchObject([{ failure: "Too old.", state: "failed" }]);
    });
  });
});
