import { randomBytes, randomUUID } from "node:crypto";
import { buffer } from "node:stream/consumers";
import fc from "fast-check";
import { beforeEach, describe, expect, it } from "vitest";
import type { RollingSummary, StoredMessage } from "../../src/core/storage.ts";
import type { Store } from "../../src/conversations/open-store.ts";
import { holds } from "../support/store-bytes.ts";
import { eventOf, freshId, messageOf } from "../support/store-samples.ts";
import { describeStores } from "../support/stores.ts";
import { beginTurn, endOf } from "../support/turn-steps.ts";

const bob = { id: "test:bob", name: "Bob" };

/** Sums up by naming what it was given, after what was named before. */
const names = (before: RollingSummary | undefined, messages: readonly StoredMessage[]) =>
  Promise.resolve({
    text: [before?.text ?? "", ...messages.map(({ parts }) => textOf(parts))].join(" ").trim(),
    costUsd: 1,
  });

function textOf(parts: StoredMessage["parts"]): string {
  return parts.map((part) => ("text" in part ? part.text : "")).join("");
}

describeStores("the summary of a conversation", (current, kind) => {
  let store: Store;
  beforeEach(async () => {
    store = await current().open();
  });

  const say = (id: string, text: string, more: Partial<StoredMessage> = {}) =>
    store.conversations.append(id, { ...messageOf(text, text), ...more });
  const sayAll = async (id: string, texts: readonly string[]) => {
    for (const text of texts) await say(id, text);
  };
  /** Sums up what was said before a message, one message of size 1 after the other, `maxSize` at a time. */
  const sumUp = (
    id: string,
    before: string,
    { ahead = before, maxSize = 99, resetAfter = undefined as string | undefined, make = names } = {},
  ) => store.conversations.sumUp(id, { before: before, ahead, maxSize, resetAfter, sizeOf: () => 1 }, make);
  const summaryOf = async (id: string) => (await store.conversations.summary(id))?.text;

  it("covers each message before a given one exactly once, however it grew", async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(
          fc.record({
            said: fc.nat(6),
            out: fc.nat(9),
            ahead: fc.nat(5),
            maxSize: fc.integer({ min: 1, max: 5 }),
          }),
          { minLength: 1, maxLength: 6 },
        ),
        async (steps) => {
          const id = freshId();
          const all: string[] = [];
          for (const { said, out, ahead, maxSize } of steps) {
            const next = Array.from({ length: said + 1 }, () => `m${all.length}-${randomUUID().slice(0, 8)}`);
            for (const text of next) {
              await say(id, text);
              all.push(text);
            }
            const before = Math.min(out, all.length - 1);
            const until = Math.min(before + ahead, all.length - 1);
            let result = { isComplete: false };
            for (let round = 0; !result.isComplete; round++) {
              expect(round).toBeLessThan(99);
              result = await sumUp(id, all[before]!, { ahead: all[until]!, maxSize });
            }
            const summary = await store.conversations.summary(id);
            const covered = summary?.text.split(" ") ?? [];
            expect(covered).toEqual(all.slice(0, covered.length));
            expect(covered.length).toBeGreaterThanOrEqual(before);
            expect(summary?.until ?? 0).toBe(covered.length);
            expect(summary?.messages ?? 0).toBe(covered.length);
          }
        },
      ),
      { numRuns: kind === "sqlite" ? 30 : 5 },
    );
  });

  it("is made once, with what its requests cost in all, and outlives a restart", async () => {
    const id = freshId();
    await sayAll(id, ["a", "b", "c", "d", "e"]);
    expect(await sumUp(id, "c", { ahead: "d", maxSize: 2 })).toEqual({
      summary: { text: "a b", from: 0, until: 2, messages: 2, costUsd: 1 },
      isComplete: true,
    });
    expect(
      (await sumUp(id, "c", { ahead: "e", make: () => Promise.reject(new Error("asked again")) })).summary
        ?.text,
    ).toBe("a b");
    expect((await sumUp(id, "e")).summary).toMatchObject({ text: "a b c d", costUsd: 2 });
    store = await current().reopen();
    expect(await summaryOf(id)).toBe("a b c d");
    expect(await summaryOf(freshId())).toBeUndefined();
  });

  it("is not made up to a message that is not stored", async () => {
    const id = freshId();
    await sayAll(id, ["a", "b"]);
    expect(await sumUp(id, "unknown")).toEqual({ summary: undefined, isComplete: false });
  });

  it("stays as it is where the next step fails, and the step can be taken again", async () => {
    const id = freshId();
    await sayAll(id, ["a", "b", "c"]);
    await sumUp(id, "b");
    await expect(sumUp(id, "c", { make: () => Promise.reject(new Error("no answer")) })).rejects.toThrow(
      "no answer",
    );
    expect(await summaryOf(id)).toBe("a");
    expect((await sumUp(id, "c")).summary?.text).toBe("a b");
  });

  it("is written once by two processes, and by one that resumes the work of a dead one", async () => {
    const id = freshId();
    await sayAll(id, ["a", "b", "c"]);
    // The dead process never comes back from its request.
    const died = Promise.withResolvers<void>();
    void sumUp(id, "c", {
      make() {
        died.resolve();
        return new Promise(() => undefined);
      },
    });
    await died.promise;
    const asked = Promise.withResolvers<void>();
    const answered = Promise.withResolvers<void>();
    const slow = sumUp(id, "c", {
      async make(...given) {
        asked.resolve();
        await answered.promise;
        return names(...given);
      },
    });
    await asked.promise;
    expect((await sumUp(id, "c")).summary?.text).toBe("a b");
    answered.resolve();
    expect(await slow).toEqual({ summary: undefined, isComplete: false });
    expect(await store.conversations.summary(id)).toMatchObject({ text: "a b", costUsd: 1 });
  });

  it("goes with a reset, and begins anew after it", async () => {
    const id = freshId();
    await sayAll(id, ["a", "b", "c", "d"]);
    await sumUp(id, "c");
    await store.conversations.saveSettings(id, { title: "t" });
    expect(await summaryOf(id)).toBe("a b");
    await store.conversations.saveSettings(id, { resetAfter: "b" });
    expect(await summaryOf(id)).toBeUndefined();
    expect((await sumUp(id, "d", { resetAfter: "b" })).summary).toMatchObject({ text: "c", from: 2 });
  });

  describe("with a message that is erased", () => {
    const secret = () => `secret-${randomUUID()}`;
    const erasures: Readonly<Record<string, (id: string, message: string) => Promise<unknown>>> = {
      "or deleted": (id, message) => store.erasure.removeMessages(id, { ids: [message] }),
      "or edited": (id, message) =>
        store.erasure.replaceMessage(id, { ...messageOf(message, "other words"), author: bob, editedAt: 5 }),
      "or asked anew with its files": async (id, message) => {
        const event = { ...eventOf(freshId(), id), attachments: [{ id: "f", name: "f", source: {} }] };
        await store.inbox.accept(event);
        const attempt = await beginTurn(store.inbox, [event.key], { isAsked: false });
        const messages = [{ ...messageOf(message, "other words"), author: bob }];
        await store.inbox.write(attempt, { kind: "asked", messages });
      },
      "or replaced in the end of its turn": async (id, message) => {
        const event = eventOf(freshId(), id);
        await store.inbox.accept(event);
        const attempt = await beginTurn(store.inbox, [event.key], { isAsked: false });
        const answer = { ...messageOf(message, "other words"), author: bob };
        await store.inbox.write(attempt, endOf(attempt, undefined, { answer, earlier: "erased" }));
      },
      "or forgotten": (id) => store.erasure.forgetAuthor(id, bob.id),
      "or forgotten everywhere": () => store.erasure.forgetAuthor(undefined, bob.id),
      "with its conversation": (id) => store.erasure.deleteConversation(id),
    };

    it.each(Object.entries(erasures))(
      "%s: is gone from the bytes of the store, and is made without it",
      async (_, erase) => {
        const id = freshId();
        const words = secret();
        await say(id, "a");
        await say(id, words, { author: bob });
        await sayAll(id, ["c", "d"]);
        expect((await sumUp(id, "d")).summary?.text).toBe(`a ${words} c`);
        await erase(id, words);
        expect(await summaryOf(id)).toBeUndefined();
        // The id of the message is its words here, so only the summary's text is looked for.
        expect(holds(await current().bytes(), `a ${words} c`)).toBe(false);
        await say(id, "e");
        await sumUp(id, "e");
        expect((await summaryOf(id)) ?? "").not.toContain(words);
      },
    );

    it.each(Object.entries(erasures))("%s while it is made: is not stored", async (_, erase) => {
      const id = freshId();
      const words = secret();
      await say(id, "a");
      await say(id, words, { author: bob });
      await sayAll(id, ["c", "d"]);
      const made = await sumUp(id, "d", {
        async make(...given) {
          await erase(id, words);
          return names(...given);
        },
      });
      expect(made).toEqual({ summary: undefined, isComplete: false });
      expect(await summaryOf(id)).toBeUndefined();
      expect(holds(await current().bytes(), `a ${words} c`)).toBe(false);
    });

    it("that it does not cover, stays", async () => {
      const id = freshId();
      await sayAll(id, ["a", "b", "c", "d"]);
      await sumUp(id, "c");
      await store.erasure.removeMessages(id, { ids: ["d"] });
      await store.erasure.replaceMessage(id, messageOf("c", "other words"));
      expect(await summaryOf(id)).toBe("a b");
    });

    it("among hundreds, goes with any of them", async () => {
      const id = freshId();
      const texts = Array.from({ length: 450 }, (_, index) => `m${index}`);
      await sayAll(id, texts);
      await say(id, "end");
      await sumUp(id, "end", { maxSize: 1000 });
      expect((await store.conversations.summary(id))?.messages).toBe(450);
      await store.erasure.removeMessages(id, { ids: texts.slice(30) });
      expect(await summaryOf(id)).toBeUndefined();
    });
  });

  it("is encrypted like all that people wrote, and exported with it", async () => {
    const id = freshId();
    store = await current().reopen({ encryptionKeys: [randomBytes(32).toString("base64")] });
    await sayAll(id, ["apples", "pears", "plums"]);
    await sumUp(id, "plums");
    expect(holds(await current().bytes(), "apples pears")).toBe(false);
    const { files } = await store.exportConversation(id);
    const texts = await Promise.all(files.map(async (file) => (await buffer(file.read())).toString()));
    expect(texts[0]).toContain("apples pears");
    expect(JSON.parse(texts[1] ?? "")).toMatchObject({ summary: { text: "apples pears", messages: 2 } });
  });
});

describeStores(
  "the summary of a conversation whose messages expire",
  (current) => {
    const hourMs = 3_600_000;

    it("leaves out those that will soon be removed, and goes with the oldest of the others", async () => {
      const store = await current().open({ retentionDays: 1 });
      const id = freshId();
      const now = Date.now();
      for (const [text, hours] of [
        ["old", 23],
        ["older half", 20],
        ["new", 1],
        ["end", 0],
      ] as const)
        await store.conversations.append(id, { ...messageOf(text, text), createdAt: now - hours * hourMs });
      await store.conversations.sumUp(
        id,
        { before: "end", ahead: "end", maxSize: 99, resetAfter: undefined, sizeOf: () => 1 },
        names,
      );
      expect((await store.conversations.summary(id))?.text).toBe("older half new");
      await store.sweep(now + 3 * hourMs);
      expect(await store.conversations.summary(id)).toBeDefined();
      await store.sweep(now + 5 * hourMs);
      expect(await store.conversations.summary(id)).toBeUndefined();
    });
  },
  ["sqlite"],
);
