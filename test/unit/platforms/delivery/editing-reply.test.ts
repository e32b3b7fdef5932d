import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { ParleyError } from "../../../../src/core/errors.ts";
import type { Json } from "../../../../src/core/events.ts";
import type { Log } from "../../../../src/core/telemetry.ts";
import type { ReplyFile } from "../../../../src/core/reply.ts";
import { createEditingReply } from "../../../../src/platforms/delivery/editing-reply.ts";
import { createManualClock } from "../../../support/manual-clock.ts";
import { createFakeTarget, type FakeTarget } from "./fake-target.ts";

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

const words = (count: number) => Array.from({ length: count }, (_, index) => `word${index}`).join(" ");
const tooFast = (retryAfterMs: number) => new ParleyError("platform-rejected", "too fast", { retryAfterMs });
const unreachable = () => new ParleyError("platform-unreachable", "no answer");
const picture: ReplyFile = { name: "a.png", mediaType: "image/png", bytes: new Uint8Array(3), altText: "a" };

function createLog(): Log & { readonly warnings: string[] } {
  const warnings: string[] = [];
  const log = {
    warnings,
    debug() {},
    info() {},
    warn: (_: unknown, message: string) => void warnings.push(message),
    error: (_: unknown, message: string) => void warnings.push(message),
    child: () => log,
  };
  return log;
}

function setUp(options: Partial<Parameters<typeof createEditingReply>[0]> & { target?: FakeTarget } = {}) {
  const target = options.target ?? createFakeTarget();
  const saved: (readonly Json[])[] = [];
  const log = createLog();
  const reply = createEditingReply({
    saveRefs: (refs) => {
      saved.push(refs);
      return Promise.resolve();
    },
    log,
    ...options,
    target,
  });
  return { target, saved, log, reply };
}

/** Runs all pending microtasks and due timers. */
const settle = () => vi.advanceTimersByTimeAsync(0);
const textsOf = (target: FakeTarget) => target.messages.map((message) => message.text);

describe("createEditingReply", () => {
  it("shows a placeholder and saves its reference", async () => {
    const { reply, target, saved } = setUp({ placeholder: "Thinking" });
    await reply.show();
    expect(target.messages).toEqual([{ text: "", state: "waiting", status: "Thinking" }]);
    expect(saved).toEqual([[{ id: 0 }]]);
  });

  it.each([
    ["takes no change now", tooFast(60_000)],
    ["does not answer", unreachable()],
  ])("does not wait to change what an earlier run has shown where the platform %s", async (_, failure) => {
    const target = createFakeTarget();
    target.messages.push({ text: "Half", state: "streaming" });
    target.failures.push(failure);
    const { reply } = setUp({ target, savedRefs: [{ id: 0 }] });
    let isShown = false;
    const showing = reply.show().then(() => (isShown = true));
    await settle();
    expect(isShown).toBe(true);
    reply.write({ text: "Whole" });
    const finished = reply.finish();
    await vi.advanceTimersByTimeAsync(2000);
    await Promise.all([showing, finished]);
    expect(target.messages).toMatchObject([{ text: "Whole", state: "finished" }]);
  });

  it("shows the first text within the call that writes it", async () => {
    const { reply, target } = setUp();
    await reply.show();
    await settle();
    reply.write({ text: "Hello" });
    expect(target.calls.at(-1)?.content).toEqual({ text: "Hello", state: "streaming" });
  });

  it("shows the first text at once, even just after a status", async () => {
    const { reply, target } = setUp();
    await reply.show();
    await vi.advanceTimersByTimeAsync(5000);
    reply.status("Transcribing note.ogg");
    await settle();
    expect(target.messages[0]).toEqual({ text: "", state: "waiting", status: "Transcribing note.ogg" });
    reply.write({ text: "Hello" });
    expect(target.calls.at(-1)?.content?.text).toBe("Hello");
  });

  it("shows no text before the placeholder is posted and saved", async () => {
    let release = () => {};
    const target = createFakeTarget();
    target.gate = new Promise((resolve) => (release = resolve));
    const { reply } = setUp({ target });
    const shown = reply.show();
    reply.write({ text: "Hello" });
    expect(target.calls).toHaveLength(1);
    release();
    await shown;
    await settle();
    expect(textsOf(target)).toEqual(["Hello"]);
    expect(target.mostAtOnce()).toBe(1);
  });

  it("shows the latest text once per interval, and nothing twice", async () => {
    const { reply, target } = setUp();
    await reply.show();
    for (let index = 1; index <= 300; index += 1) {
      reply.write({ text: `text ${index}` });
      await vi.advanceTimersByTimeAsync(10);
    }
    await vi.advanceTimersByTimeAsync(10_000);
    const edits = target.calls.filter(({ kind }) => kind === "edit");
    expect(edits.map(({ content }) => content?.text)).toEqual(["text 1", "text 100", "text 200", "text 300"]);
    for (const [index, edit] of edits.entries()) {
      const before = edits[index - 1];
      if (before !== undefined) expect(edit.at - before.at).toBeGreaterThanOrEqual(1000);
    }
    reply.write({ text: "text 300" });
    await vi.advanceTimersByTimeAsync(10_000);
    expect(target.calls).toHaveLength(edits.length + 1);
  });

  it("never has two edits in flight, however slow they are", async () => {
    const { reply, target } = setUp();
    await reply.show();
    target.gate = new Promise((resolve) => setTimeout(resolve, 7000));
    reply.write({ text: "a" });
    await vi.advanceTimersByTimeAsync(3000);
    reply.write({ text: "b" });
    await vi.advanceTimersByTimeAsync(3000);
    const finished = reply.finish();
    await vi.advanceTimersByTimeAsync(5000);
    await finished;
    expect(target.mostAtOnce()).toBe(1);
    expect(target.messages).toEqual([{ text: "b", state: "finished", notices: [] }]);
  });

  it("continues in further messages and does not edit earlier ones", async () => {
    const { reply, target, saved } = setUp();
    await reply.show();
    for (let count = 1; count <= 40; count += 1) {
      reply.write({ text: words(count) });
      await vi.advanceTimersByTimeAsync(1000);
    }
    const before = target.calls.length;
    expect(target.messages.map(({ state }) => state)).toEqual(["finished", "finished", "streaming"]);
    expect(textsOf(target).join(" ")).toBe(words(40));
    await reply.finish({ notices: ["The end."] });
    expect(target.calls.length - before).toBe(1);
    expect(target.messages.at(-1)).toMatchObject({ state: "finished", notices: ["The end."] });
    expect(saved.at(-1)).toEqual([{ id: 0 }, { id: 1 }, { id: 2 }]);
  });

  it("closes an unfinished code block and omits an incomplete table row", async () => {
    const { reply, target } = setUp();
    await reply.show();
    reply.write({ text: "See:\n\n```js\nlet a" });
    expect(target.calls.at(-1)?.content?.text).toBe("See:\n\n```js\nlet a\n```");
    await vi.advanceTimersByTimeAsync(1000);
    reply.write({ text: "| a | b |\n|---|---|\n| 1" });
    await settle();
    expect(textsOf(target)).toEqual(["| a | b |\n|---|---|"]);
    await reply.finish();
    expect(textsOf(target)).toEqual(["| a | b |\n|---|---|\n| 1"]);
  });

  it("grows again after a rate limit, and as fast as before", async () => {
    let closedUntil = 0;
    const target = createFakeTarget({ roomInMs: () => Math.max(0, closedUntil - performance.now()) });
    const { reply } = setUp({ target });
    await reply.show();
    target.failures.push(tooFast(3000));
    reply.write({ text: "a" });
    closedUntil = performance.now() + 3000;
    await settle();
    reply.write({ text: "b" });
    await vi.advanceTimersByTimeAsync(2999);
    expect(target.calls).toHaveLength(2);
    await vi.advanceTimersByTimeAsync(1);
    expect(textsOf(target)).toEqual(["b"]);
    reply.write({ text: "c" });
    await vi.advanceTimersByTimeAsync(999);
    expect(textsOf(target)).toEqual(["b"]);
    await vi.advanceTimersByTimeAsync(1);
    expect(textsOf(target)).toEqual(["c"]);
  });

  it("stops streaming after three failures and still shows the end", async () => {
    const { reply, target } = setUp();
    await reply.show();
    target.failures.push(unreachable(), unreachable(), unreachable());
    reply.write({ text: "a" });
    await vi.advanceTimersByTimeAsync(60_000);
    reply.write({ text: "all of it" });
    await vi.advanceTimersByTimeAsync(60_000);
    expect(target.calls).toHaveLength(4);
    await reply.finish();
    expect(target.messages).toEqual([{ text: "all of it", state: "finished", notices: [] }]);
  });

  it("retries the end no earlier than Retry-After", async () => {
    const { reply, target } = setUp();
    await reply.show();
    reply.write({ text: "a" });
    await settle();
    target.failures.push(unreachable(), tooFast(20_000), unreachable());
    const finished = reply.finish();
    await vi.advanceTimersByTimeAsync(60_000);
    await finished;
    expect(target.messages).toEqual([{ text: "a", state: "finished", notices: [] }]);
    const [, , first, second, third] = target.calls;
    expect((second?.at ?? 0) - (first?.at ?? 0)).toBeGreaterThanOrEqual(500);
    expect((third?.at ?? 0) - (second?.at ?? 0)).toBeGreaterThanOrEqual(20_000);
  });

  it("rejects when the end cannot be shown within two minutes, and can still fail", async () => {
    const { reply, target } = setUp();
    await reply.show();
    target.failures.push(...Array.from({ length: 40 }, unreachable));
    const finished = reply.finish();
    const outcome = expect(finished).rejects.toMatchObject({ code: "platform-unreachable" });
    const before = performance.now();
    await vi.advanceTimersByTimeAsync(300_000);
    await outcome;
    expect((target.calls.at(-1)?.at ?? 0) - before).toBeLessThanOrEqual(120_000);
    target.failures.length = 0;
    await reply.fail({ text: "It could not be shown." });
    expect(target.messages[0]).toMatchObject({ state: "failed", failure: "It could not be shown." });
  });

  it("rejects permanent errors at once", async () => {
    const { reply, target } = setUp();
    await reply.show();
    target.failures.push(new ParleyError("platform-forbidden", "not allowed"));
    await expect(reply.finish()).rejects.toMatchObject({ code: "platform-forbidden" });
  });

  it("posts a message again that cannot be edited any more", async () => {
    const { reply, target, saved } = setUp();
    await reply.show();
    reply.write({ text: "a" });
    await settle();
    target.failures.push(new ParleyError("platform-rejected", "no such message"));
    await reply.finish();
    expect(target.messages.at(-1)).toEqual({ text: "a", state: "finished", notices: [] });
    expect(saved.at(-1)).toEqual([{ id: 1 }]);
  });

  it("shows notices and failures on the last message", async () => {
    const { reply, target } = setUp();
    await reply.show();
    reply.write({ text: words(25) });
    await reply.fail({ text: "The gateway went away.", notices: ["Cut."], retryKey: "key" });
    expect(target.messages).toHaveLength(2);
    expect(target.messages[0]).toEqual({ text: expect.stringContaining("word0"), state: "finished" });
    expect(target.messages[1]).toMatchObject({
      state: "failed",
      failure: "The gateway went away.",
      notices: ["Cut."],
      retryKey: "key",
    });
    expect(textsOf(target).join(" ")).toBe(words(25));
  });

  it("uploads a very long answer as a file and says so", async () => {
    const { reply, target } = setUp();
    await reply.show();
    reply.write({ text: words(200) });
    await vi.advanceTimersByTimeAsync(10_000);
    expect(target.messages).toHaveLength(3);
    expect(target.messages[2]?.status).toContain("goes on");
    await reply.finish({ notices: ["First."] });
    expect(target.messages).toHaveLength(3);
    expect(target.messages[2]?.notices).toEqual(["First.", expect.stringContaining("answer.md")]);
    expect(target.files.map(({ name }) => name)).toEqual(["answer.md"]);
    expect(Buffer.from(target.files[0]?.bytes ?? []).toString()).toBe(words(200));
  });

  it("shows a very long answer in messages where the file is rejected", async () => {
    const target = createFakeTarget({
      upload: () => Promise.reject(new ParleyError("platform-forbidden", "no files")),
    });
    const { reply } = setUp({ target });
    await reply.show();
    reply.write({ text: words(200) });
    await reply.finish();
    expect(textsOf(target).join(" ")).toBe(words(200));
    expect(target.messages.at(-1)).toMatchObject({ state: "finished", notices: [] });
  });

  it("edits the messages of an earlier process", async () => {
    const target = createFakeTarget();
    target.messages.push(
      { text: "old", state: "streaming" },
      { text: "older", state: "streaming" },
      { text: "oldest", state: "streaming" },
    );
    const { reply, saved } = setUp({ target, savedRefs: [{ id: 0 }, { id: 1 }, { id: 2 }] });
    await reply.show();
    expect(target.messages[0]).toEqual({ text: "", state: "waiting" });
    reply.write({ text: words(25) });
    await reply.finish();
    expect(target.messages).toHaveLength(2);
    expect(target.messages[0]?.text.startsWith("word0")).toBe(true);
    expect(target.messages[1]).toMatchObject({ state: "finished", notices: [] });
    expect(saved).toEqual([[{ id: 0 }, { id: 1 }]]);
    expect(target.calls.at(-1)).toMatchObject({ kind: "remove" });
  });

  it("posts no placeholder where the platform shows its own, but saves the address", async () => {
    const { reply, target, saved } = setUp({ firstMessageIsShown: true });
    await reply.show();
    expect(target.calls).toEqual([]);
    expect(saved).toEqual([[]]);
    await settle();
    reply.write({ text: "Hello" });
    expect(target.calls.at(-1)).toMatchObject({
      kind: "post",
      content: { text: "Hello", state: "streaming" },
    });
    await reply.finish();
    expect(target.messages).toEqual([{ text: "Hello", state: "finished", notices: [] }]);
  });

  it("shows files alone where there is no text and no notice", async () => {
    const { reply, target } = setUp({ firstMessageIsShown: true });
    await reply.show();
    await reply.attach(picture);
    await reply.finish();
    expect(target.messages).toEqual([]);
    expect(target.files).toEqual([picture]);
  });

  it("uploads files in order, batched, before the end", async () => {
    const { reply, target } = setUp();
    await reply.show();
    const names = ["a.png", "b.png", "c.png"];
    const attached = Promise.all(names.map((name) => reply.attach({ ...picture, name })));
    await reply.finish();
    await attached;
    expect(target.files.map(({ name }) => name)).toEqual(names);
    expect(target.calls.map(({ kind }) => kind)).toEqual(["post", "upload", "edit"]);
  });

  it("rejects an attach whose upload fails, and continues", async () => {
    const { reply, target } = setUp();
    await reply.show();
    target.failures.push(new ParleyError("platform-rejected", "too large"));
    await expect(reply.attach(picture)).rejects.toMatchObject({ code: "platform-rejected" });
    await reply.attach(picture);
    expect(target.files).toHaveLength(1);
  });

  it("ends once", async () => {
    const { reply, target, log } = setUp();
    await reply.show();
    reply.write({ text: "a" });
    await Promise.all([reply.finish(), reply.fail({ text: "too late" })]);
    await reply.finish({ notices: ["too late"] });
    reply.write({ text: "too late" });
    reply.status("too late");
    await vi.advanceTimersByTimeAsync(10_000);
    expect(target.messages).toEqual([{ text: "a", state: "finished", notices: [] }]);
    expect(log.warnings).toHaveLength(2);
  });

  it("does not throw from write or status", async () => {
    const broken = () => {
      throw new Error("broken");
    };
    const { reply, log } = setUp({
      target: createFakeTarget({ edit: broken, post: broken, lengthOf: broken }),
    });
    expect(() => reply.write({ text: "a" })).not.toThrow();
    expect(() => reply.status("b")).not.toThrow();
    await vi.advanceTimersByTimeAsync(60_000);
    expect(log.warnings.length).toBeGreaterThan(0);
  });

  it("rejects show where the address cannot be saved", async () => {
    const saveRefs = () => Promise.reject(new ParleyError("store-unavailable", "disk full"));
    const { reply } = setUp({ saveRefs });
    const shown = expect(reply.show()).rejects.toMatchObject({ code: "stopping" });
    await vi.advanceTimersByTimeAsync(20_000);
    await shown;
  });

  it("saves the address of a message that the end posts, although the store is away at first", async () => {
    let failures = 0;
    const saved: number[] = [];
    const saveRefs = (refs: readonly Json[]) => {
      failures -= 1;
      if (failures >= 0) return Promise.reject(new ParleyError("store-unavailable", "away"));
      saved.push(refs.length);
      return Promise.resolve();
    };
    const { reply, target } = setUp({ saveRefs });
    await reply.show();
    failures = 2;
    reply.write({ text: words(30) });
    const finished = reply.finish();
    await vi.advanceTimersByTimeAsync(2000);
    await finished;
    expect(textsOf(target).join(" ")).toBe(words(30));
    expect(saved.at(-1)).toBe(target.messages.length);
  });

  it("shows the end even if the address of its last message cannot be saved, and leaves its turn open", async () => {
    let isBroken = false;
    const saveRefs = () =>
      isBroken ? Promise.reject(new ParleyError("store-unavailable", "disk full")) : Promise.resolve();
    const { reply, target } = setUp({ saveRefs });
    await reply.show();
    isBroken = true;
    reply.write({ text: words(30) });
    const finished = expect(reply.finish()).rejects.toMatchObject({ code: "stopping" });
    await vi.advanceTimersByTimeAsync(1000);
    expect(textsOf(target).join(" ")).toBe(words(30));
    await vi.advanceTimersByTimeAsync(20_000);
    await finished;
  });

  it("shows a failure without the text, where the platform refuses the text", async () => {
    const refuse = (content: { readonly text: string }) =>
      content.text.includes("bad") ? new ParleyError("platform-rejected", "blocked") : undefined;
    const target = createFakeTarget();
    const post = target.post.bind(target);
    const edit = target.edit.bind(target);
    target.post = async (content, ...rest) => {
      const refusal = refuse(content);
      if (refusal !== undefined) throw refusal;
      return await post(content, ...rest);
    };
    target.edit = async (ref, content, ...rest) => {
      const refusal = refuse(content);
      if (refusal !== undefined) throw refusal;
      return await edit(ref, content, ...rest);
    };
    const { reply } = setUp({ target });
    await reply.show();
    reply.write({ text: "bad" });
    await expect(reply.finish()).rejects.toMatchObject({ code: "platform-rejected" });
    await reply.fail({ text: "The platform refused it." });
    expect(target.messages).toMatchObject([
      { text: "", state: "failed", failure: "The platform refused it." },
    ]);
  });

  it("removes the message that an earlier run has posted and not saved, where the text no longer needs it", async () => {
    const found: Json[] = [{ id: 1 }];
    const target = createFakeTarget({ findNext: () => Promise.resolve(found.shift()) });
    target.messages.push({ text: "a", state: "streaming" }, { text: "b", state: "streaming" });
    const { reply } = setUp({ target, savedRefs: [{ id: 0 }] });
    reply.write({ text: "short", isWhole: true });
    await reply.finish();
    expect(textsOf(target)).toEqual(["short"]);
  });

  // Whoever learns of the deletion would take a message that an address still has for the answer.
  it.each([
    ["a message of a longer answer", { savedRefs: [{ id: 0 }, { id: 1 }] }],
    [
      "the file of a longer answer",
      {
        savedRefs: [{ id: 0 }],
        savedFiles: { hashes: ["h"], refs: [{ id: 1 }], answer: { hash: "h", ref: { id: 1 } } },
      },
    ],
  ])(
    "removes %s once the address without it is saved, although the store is away at first",
    async (_, earlier) => {
      let failures = 2;
      const removedAt: number[] = [];
      const target = createFakeTarget({
        remove: () => {
          removedAt.push(failures);
          return Promise.resolve();
        },
      });
      target.messages.push({ text: "a", state: "streaming" }, { text: "b", state: "streaming" });
      const saveRefs = () => {
        if (failures === 0) return Promise.resolve();
        failures -= 1;
        return Promise.reject(new ParleyError("store-unavailable", "away"));
      };
      const { reply } = setUp({ target, saveRefs, ...earlier });
      reply.write({ text: "short", isWhole: true });
      const finished = reply.finish();
      await vi.advanceTimersByTimeAsync(2000);
      await finished;
      expect(removedAt).toEqual([0]);
    },
  );

  it("removes nothing while the store is away, and leaves that to the next run", async () => {
    let isAway = false;
    const saveRefs = () =>
      isAway ? Promise.reject(new ParleyError("store-unavailable", "away")) : Promise.resolve();
    const { reply, target } = setUp({ saveRefs, savedRefs: [{ id: 0 }, { id: 1 }] });
    target.messages.push({ text: "a", state: "streaming" }, { text: "b", state: "streaming" });
    isAway = true;
    reply.write({ text: "short", isWhole: true });
    const finished = expect(reply.finish()).rejects.toMatchObject({ code: "stopping" });
    await vi.advanceTimersByTimeAsync(20_000);
    await finished;
    expect(textsOf(target)).toEqual(["short", "b"]);
  });

  it("leaves no timers", async () => {
    const clock = createManualClock();
    const { reply } = setUp({ clock });
    await reply.show();
    reply.write({ text: "a" });
    await settle();
    reply.write({ text: "b" });
    expect(clock.waiting()).toBe(1);
    await reply.finish();
    expect(clock.waiting()).toBe(0);
  });
});
