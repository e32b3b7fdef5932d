import { createHash, randomBytes, randomUUID } from "node:crypto";
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import { isParleyError } from "../../src/core/errors.ts";
import type { StoredMessage } from "../../src/core/storage.ts";
import { eventOf, freshId, messageOf } from "../support/store-samples.ts";
import { writeFromProcesses } from "./store-processes.ts";
import type { Store } from "../../src/conversations/open-store.ts";

/** What a backend brings to the contract. */
export interface StoreSubject {
  readonly url: string;
  /** Opens the same store; several at a time if the backend allows it. */
  open(): Promise<Store>;
  /** Makes every write fail until `end`. */
  readonly outage: { begin(): Promise<void>; end(): Promise<void> };
}

/** The contract of every store, whichever its backend. */
export function storeContract(name: string, subject: () => StoreSubject): void {
  describe(`${name}: store contract`, () => {
    let store: Store;
    beforeAll(async () => {
      store = await subject().open();
    });
    afterAll(async () => {
      await store.close();
    });

    describe("claims", () => {
      it("are one process's at a time until they end; where none is beside it, always", async () => {
        const name = freshId();
        expect(await store.claims.claim(name, 300)).toBe(true);
        expect(await store.claims.claim(`${name} 2`, 300)).toBe(true);
        expect(await store.claims.claim(name, 300)).toBe(!store.claims.isShared);
        await vi.waitFor(async () => expect(await store.claims.claim(name, 300)).toBe(true));
      });
    });

    describe("settings", () => {
      it("are read for several holders at once, in their order", async () => {
        const [one, two, none] = [freshId(), freshId(), freshId()];
        await store.settings.change(one, { "chat-model": "a", temperature: 0 });
        await store.settings.change(two, { "who-may-use": ["test:role:1"] });
        expect(await store.settings.read([two, none, one])).toEqual([
          { "who-may-use": ["test:role:1"] },
          {},
          { "chat-model": "a", temperature: 0 },
        ]);
        expect(await store.settings.read([])).toEqual([]);
      });

      it("change one by one: the others stay, and undefined removes", async () => {
        const holder = freshId();
        await Promise.all([
          store.settings.change(holder, { "chat-model": "a" }),
          store.settings.change(holder, { calm: "on" }),
          store.settings.change(holder, { language: "German" }),
        ]);
        await store.settings.change(holder, { calm: undefined, language: "Dutch" });
        expect(await store.settings.read([holder])).toEqual([{ "chat-model": "a", language: "Dutch" }]);
      });

      it("are erased with their holder", async () => {
        const holder = freshId();
        await store.settings.change(holder, { calm: "on" });
        await store.settings.erase(holder);
        await store.settings.erase(holder);
        expect(await store.settings.read([holder])).toEqual([{}]);
      });

      it("of a person are erased with all that the person wrote, and are counted before", async () => {
        const person = freshId();
        await store.settings.change(person, { calm: "on", language: "German" });
        const nothing = { messages: 0, blobs: 0, conversations: 0 };
        expect(await store.erasure.countAuthor(freshId(), person)).toEqual(nothing);
        await store.erasure.forgetAuthor(freshId(), person);
        expect(await store.erasure.countAuthor(undefined, person)).toEqual({ ...nothing, settings: 2 });
        expect(await store.erasure.forgetAuthor(undefined, person)).toEqual({ ...nothing, settings: 2 });
        expect(await store.erasure.forgetAuthor(undefined, person)).toEqual(nothing);
        expect(await store.settings.read([person])).toEqual([{}]);
      });

      it("of a conversation are kept with it, and go with it", async () => {
        const id = freshId();
        await store.conversations.saveSettings(id, { model: "a", chosen: { calm: "on" } });
        await store.conversations.saveSettings(id, { model: undefined });
        expect(await store.conversations.settings(id)).toEqual({ chosen: { calm: "on" } });
        await store.erasure.deleteConversation(id);
        expect(await store.conversations.settings(id)).toEqual({});
      });
    });

    describe("conversations", () => {
      it("returns appended messages, oldest first", async () => {
        const id = freshId();
        for (const n of [1, 2, 3])
          expect(await store.conversations.append(id, messageOf(`m${n}`))).toBe("appended");
        const ids = async (maxMessages: number) =>
          (await store.conversations.recent(id, { maxMessages })).map((message) => message.id);
        expect(await ids(10)).toEqual(["m1", "m2", "m3"]);
        expect(await ids(2)).toEqual(["m2", "m3"]);
        expect(await ids(0)).toEqual([]);
      });

      it("returns a message as it was appended", async () => {
        const id = freshId();
        const message: StoredMessage = {
          ...messageOf("m/with slash%", ':colon\0nul\u2028"quotes"😀\n:base64:AAAA'),
          role: "assistant",
          attempt: 2,
          outcome: "failed",
          failure: "The gateway is away.",
          notices: [":a", "b"],
          model: "vendor/model:tag",
          usage: { promptTokens: 3, costUsd: 0.000_12, isEstimated: false },
          inContext: false,
          parts: [
            { kind: "text", text: ':colon\0nul\u2028"quotes"😀\n:base64:AAAA' },
            {
              kind: "image",
              blob: { hash: "0".repeat(64), mediaType: "image/png", sizeBytes: 3 },
              name: "x.png",
            },
          ],
        };
        await store.conversations.append(id, message);
        expect(await store.conversations.recent(id, { maxMessages: 1 })).toEqual([message]);
        expect(await store.conversations.find(id, message.id)).toEqual(message);
      });

      it("stores a message id once", async () => {
        const id = freshId();
        await store.conversations.append(id, messageOf("same", "first"));
        await store.conversations.append(id, messageOf("other"));
        expect(await store.conversations.append(id, messageOf("same", "second"))).toBe("duplicate");
        const texts = (await store.conversations.recent(id, { maxMessages: 10 })).map(({ parts }) => parts);
        expect(texts).toEqual([
          [{ kind: "text", text: "first" }],
          [{ kind: "text", text: "words of other" }],
        ]);
      });

      it("stores each of 1,000 messages appended at once exactly once", async () => {
        const id = freshId();
        const ids = Array.from({ length: 1000 }, (_, n) => `m${n}`);
        const answers = await Promise.all(ids.map((each) => store.conversations.append(id, messageOf(each))));
        expect(new Set(answers)).toEqual(new Set(["appended"]));
        const kept = await store.conversations.recent(id, { maxMessages: 5000 });
        expect(kept.map((message) => message.id)).toEqual(ids);
      });

      it("separates conversations with similar ids", async () => {
        const base = freshId();
        const ids = [base, `${base}/`, `${base}%2F`, `${base}/0000000000`, `${base}_`, `${base}:`];
        for (const id of ids) await store.conversations.append(id, messageOf(id));
        for (const id of ids) {
          expect((await store.conversations.recent(id, { maxMessages: 10 })).map((m) => m.id)).toEqual([id]);
        }
      });

      it("knows only conversations with messages or settings", async () => {
        const [spoken, set, unknown] = [freshId(), freshId(), freshId()];
        await store.conversations.append(spoken, messageOf("m"));
        await store.conversations.saveSettings(set, { model: "m1" });
        expect(await store.conversations.exists(spoken)).toBe(true);
        expect(await store.conversations.exists(set)).toBe(true);
        expect(await store.conversations.exists(unknown)).toBe(false);
        expect(await store.conversations.existing([set, unknown, spoken])).toEqual([set, spoken]);
        expect(await store.conversations.recent(unknown, { maxMessages: 10 })).toEqual([]);
        expect(await store.conversations.find(unknown, "m")).toBeUndefined();
        expect(await store.conversations.settings(unknown)).toEqual({});
      });

      it("merges settings", async () => {
        const id = freshId();
        await store.conversations.saveSettings(id, { model: "m1" });
        await Promise.all([
          store.conversations.saveSettings(id, { title: "Ships" }),
          store.conversations.saveSettings(id, { model: "m2" }),
        ]);
        expect(await store.conversations.settings(id)).toEqual({ model: "m2", title: "Ships" });
      });

      it("lists a platform's conversations with titles, the most recently active first", async () => {
        const scope = `list${randomUUID().replaceAll("-", "")}`;
        const ids = ["a", "b", "c"].map((each) => `${scope}:${each}`);
        for (const id of ids) {
          await store.conversations.append(id, messageOf(id, `About ${id}\nand more`));
          await pastThisMillisecond();
        }
        await store.conversations.saveSettings(ids[1] as string, { title: "Named" });
        await store.conversations.append(ids[0] as string, messageOf("again"));
        const listed = await store.conversations.list(`${scope}:`, { max: 10 });
        expect(listed.map(({ conversationId }) => conversationId)).toEqual([ids[0], ids[2], ids[1]]);
        expect(listed.map(({ title }) => title)).toEqual([
          `About ${ids[0]} and more`,
          `About ${ids[2]} and more`,
          "Named",
        ]);
        expect(listed[0]?.updatedAt).toBeGreaterThan(listed[1]?.updatedAt as number);
        expect(await store.conversations.list(`${scope}:b`, { max: 10 })).toHaveLength(1);
        expect(await store.conversations.list(`${scope}:`, { max: 2 })).toHaveLength(2);
        expect(await store.conversations.list("", { max: 1000 })).toEqual(
          expect.arrayContaining([...listed]),
        );
        expect(await store.conversations.list("nobody:", { max: 10 })).toEqual([]);
      });
    });

    describe("blobs", () => {
      it("stores bytes under their SHA-256, within their conversation", async () => {
        const [id, other] = [freshId(), freshId()];
        const bytes = randomBytes(300_000);
        const ref = await store.conversations.putBlob(id, bytes, "image/png");
        const hash = createHash("sha256").update(bytes).digest("hex");
        expect(ref).toEqual({ hash, mediaType: "image/png", sizeBytes: 300_000 });
        expect(await store.conversations.putBlob(id, bytes, "image/png")).toEqual(ref);
        const kept = await store.conversations.getBlob(id, hash);
        expect(kept?.mediaType).toBe("image/png");
        expect(Buffer.from(kept?.bytes ?? []).equals(bytes)).toBe(true);
        expect(await store.conversations.getBlob(other, hash)).toBeUndefined();
      });

      it("stores the same bytes put many times at once", async () => {
        const id = freshId();
        const bytes = randomBytes(10_000);
        const refs = await Promise.all(
          Array.from({ length: 20 }, () => store.conversations.putBlob(id, bytes, "audio/ogg")),
        );
        const kept = await store.conversations.getBlob(id, refs[0]?.hash as string);
        expect(Buffer.from(kept?.bytes ?? []).equals(bytes)).toBe(true);
      });

      it.each(["../../../etc/passwd", "..", "", "/etc/passwd", "A".repeat(64), `${"0".repeat(63)}/`])(
        "has no blob of the name %j",
        async (name) => {
          expect(await store.conversations.getBlob(freshId(), name)).toBeUndefined();
        },
      );

      it.each(["../../escape", "/absolute", "a\0b", ".", "x".repeat(5000)])(
        "stores blobs of a conversation with the id %j",
        async (id) => {
          const bytes = randomBytes(16);
          const { hash } = await store.conversations.putBlob(id, bytes, "text/plain");
          expect(Buffer.from((await store.conversations.getBlob(id, hash))?.bytes ?? []).equals(bytes)).toBe(
            true,
          );
        },
      );
    });

    describe("inbox", () => {
      const openKeys = async (keys: readonly string[]) =>
        (await store.inbox.listOpen()).map(({ event }) => event.key).filter((key) => keys.includes(key));

      it("accepts an event once, also when its deliveries race", async () => {
        const key = freshId();
        const answers = await Promise.all(Array.from({ length: 50 }, () => store.inbox.accept(eventOf(key))));
        expect(answers.filter((answer) => answer === "accepted")).toHaveLength(1);
        expect(answers.filter((answer) => answer === "duplicate")).toHaveLength(49);
      });

      it("lists open events, oldest first, with their turns", async () => {
        const keys = Array.from({ length: 20 }, freshId);
        for (const key of keys) await store.inbox.accept(eventOf(key));
        expect(await openKeys(keys)).toEqual(keys);
        const turn = { keys: keys.slice(0, 2), address: { channel: "c", messages: ["1"] }, attempts: 1 };
        await store.inbox.saveTurn(turn);
        const entry = (await store.inbox.listOpen()).find(({ event }) => event.key === keys[0]);
        expect(entry?.turn).toEqual(turn);
        expect(entry?.event).toEqual({ ...eventOf(keys[0] as string), sentAt: entry?.event.sentAt });
        expect(entry?.acceptedAt).toBeGreaterThan(Date.now() - 60_000);
      });

      it("returns duplicate for closed events, and lists them no more", async () => {
        const keys = [freshId(), freshId(), freshId()];
        for (const key of keys) await store.inbox.accept(eventOf(key));
        await store.inbox.close(keys.slice(0, 2));
        expect(await openKeys(keys)).toEqual([keys[2]]);
        expect(await store.inbox.isOpen(keys[0] as string)).toBe(false);
        expect(await store.inbox.isOpen(keys[2] as string)).toBe(true);
        expect(await store.inbox.isOpen(freshId())).toBe(false);
        expect(await store.inbox.accept(eventOf(keys[0] as string))).toBe("duplicate");
        expect(await openKeys(keys)).toEqual([keys[2]]);
      });

      it("grants an attempt at an event to one process; one for a single process grants it always", async () => {
        const [one, two] = [freshId(), freshId()];
        for (const key of [one, two]) await store.inbox.accept(eventOf(key));
        const turn = (keys: string[], attempts: number) => ({ keys, address: { at: attempts }, attempts });
        const { isShared } = store.queue;
        expect(await store.inbox.claimTurn(turn([one, two], 1))).toBe(true);
        expect(await store.inbox.claimTurn(turn([one, two], 1))).toBe(!isShared);
        expect(await store.inbox.claimTurn(turn([two], 1))).toBe(!isShared);
        expect(await store.inbox.saveTurn(turn([one, two], 1))).toBe(true);
        expect(await store.inbox.claimTurn(turn([one, two], 2))).toBe(true);
        // The process of the first attempt was paused.
        expect(await store.inbox.saveTurn(turn([one, two], 1))).toBe(!isShared);
        expect(await store.inbox.saveTurn(turn([one, two], 2))).toBe(true);
        const [entry] = await store.inbox.lookUp([one]);
        expect(entry?.turn).toEqual(turn([one, two], 2));
      });

      it("reopens a closed entry with its turn", async () => {
        const key = freshId();
        await store.inbox.accept(eventOf(key));
        const turn = { keys: [key], address: { message: "7" }, attempts: 2 };
        await store.inbox.saveTurn(turn);
        await store.inbox.close([key]);
        const entry = await store.inbox.reopen(key);
        expect(entry?.event.key).toBe(key);
        expect(entry?.turn).toEqual(turn);
        expect(await openKeys([key])).toEqual([key]);
        expect(await store.inbox.reopen(freshId())).toBeUndefined();
      });
    });

    describe("queue", () => {
      it("runs one at a time within a conversation, in order, and other conversations meanwhile", async () => {
        const [id, other] = [freshId(), freshId()];
        const steps: string[] = [];
        const gate = Promise.withResolvers<void>();
        const first = store.queue.run(id, async () => {
          steps.push("first begins");
          await gate.promise;
          steps.push("first ends");
        });
        const second = store.queue.run(id, async () => steps.push("second"));
        await store.queue.run(other, async () => steps.push("other"));
        gate.resolve();
        await Promise.all([first, second]);
        await store.queue.idle();
        expect(steps.indexOf("other")).toBeLessThan(steps.indexOf("first ends"));
        expect(steps.filter((step) => step !== "other")).toEqual(["first begins", "first ends", "second"]);
      });

      it("continues after failed work, and returns the result of work", async () => {
        const id = freshId();
        const failed = store.queue.run(id, async () => {
          throw new Error("broken turn");
        });
        const answered = store.queue.run(id, async (signal) => signal.aborted);
        await expect(failed).rejects.toThrow("broken turn");
        expect(await answered).toBe(false);
      });
    });

    describe("outage", () => {
      // Servers that sentinels watch take up to 20 s until they replicate again.
      it(
        "is an error of writes and reads, never an empty result, and passes",
        { timeout: 60_000 },
        async () => {
          const id = freshId();
          const key = freshId();
          await store.conversations.append(id, messageOf("before"));
          await store.inbox.accept(eventOf(key));
          const { hash } = await store.conversations.putBlob(id, randomBytes(100), "image/png");

          await subject().outage.begin();
          const writes = {
            append: () => store.conversations.append(id, messageOf("meanwhile")),
            saveSettings: () => store.conversations.saveSettings(id, { model: "m" }),
            putBlob: () => store.conversations.putBlob(id, randomBytes(100), "image/png"),
            accept: () => store.inbox.accept(eventOf(freshId())),
            saveTurn: () => store.inbox.saveTurn({ keys: [key], address: {}, attempts: 1 }),
            close: () => store.inbox.close([key]),
          };
          for (const [name, write] of Object.entries(writes)) {
            expect(await codeOf(write()), name).toBe("store-unavailable");
          }
          const reads = {
            recent: async () => (await store.conversations.recent(id, { maxMessages: 5 })).length,
            find: async () => ((await store.conversations.find(id, "before")) === undefined ? 0 : 1),
            exists: async () => Number(await store.conversations.exists(id)),
            list: async () => (await store.conversations.list(id, { max: 1 })).length,
            getBlob: async () => ((await store.conversations.getBlob(id, hash)) === undefined ? 0 : 1),
            listOpen: async () =>
              (await store.inbox.listOpen()).filter(({ event }) => event.key === key).length,
            isOpen: async () => Number(await store.inbox.isOpen(key)),
          };
          for (const [name, read] of Object.entries(reads)) {
            const answer = await codeOf(read());
            expect(answer === "store-unavailable" || answer === 1, `${name}: ${String(answer)}`).toBe(true);
          }

          await subject().outage.end();
          await vi.waitFor(() => store.ping(), { timeout: 10_000, interval: 50 });
          expect(await store.conversations.append(id, messageOf("after"))).toBe("appended");
          const kept = (await store.conversations.recent(id, { maxMessages: 9 })).map(
            (message) => message.id,
          );
          expect(kept).toEqual(["before", "after"]);
          expect(await store.inbox.isOpen(key)).toBe(true);
        },
      );
    });

    it(
      "loses nothing when several processes write one conversation and are killed",
      { timeout: 90_000 },
      async () => {
        const id = freshId();
        const acknowledged = await writeFromProcesses(subject().url, id, {
          processes: 3,
          messages: 200,
          kills: 12,
        });
        const kept = (await store.conversations.recent(id, { maxMessages: 10_000 })).map(
          (message) => message.id,
        );
        expect(new Set(kept).size).toBe(kept.length);
        for (const [writer, ids] of acknowledged) {
          expect(ids).toHaveLength(200);
          // Includes messages whose writer was killed before it printed them: its next run found a duplicate.
          expect(kept.filter((each) => each.startsWith(`${writer}-`))).toEqual(ids);
        }
      },
    );

    it("responds to a ping", async () => {
      await store.ping();
    });
  });
}

/** The code of the error that `work` throws, or its result. */
async function codeOf(work: Promise<unknown>): Promise<unknown> {
  try {
    return await work;
  } catch (error) {
    return isParleyError(error) ? error.code : String(error);
  }
}

async function pastThisMillisecond(): Promise<void> {
  const now = Date.now();
  while (Date.now() === now) await new Promise((resolve) => setImmediate(resolve));
}
