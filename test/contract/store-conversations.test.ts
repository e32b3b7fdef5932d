import { createHash, randomBytes, randomUUID } from "node:crypto";
import { beforeEach, describe, expect, it } from "vitest";
import { ratingBy } from "../../src/core/raters.ts";
import { maxRatings, type StoredMessage } from "../../src/core/storage.ts";
import type { Store } from "../../src/conversations/open-store.ts";
import { eventOf, freshId, messageOf } from "../support/store-samples.ts";
import { describeStores } from "../support/stores.ts";
import { endOf } from "../support/turn-steps.ts";

describeStores("settings and conversations", (current) => {
  let store: Store;
  beforeEach(async () => {
    store = await current().open();
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
      const nothing = { messages: 0, blobs: 0, conversations: 0, settings: 0, ratings: 0 };
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

    it("returns the message with which a conversation began, until that is erased", async () => {
      const id = freshId();
      expect(await store.conversations.find(id, { isFirst: true })).toBeUndefined();
      for (const name of ["first", "second"]) await store.conversations.append(id, messageOf(name));
      expect((await store.conversations.find(id, { isFirst: true }))?.id).toBe("first");
      await store.erasure.removeMessages(id, { ids: ["first"] });
      expect(await store.conversations.find(id, { isFirst: true })).toBeUndefined();
    });

    it("stores a message id once", async () => {
      const id = freshId();
      await store.conversations.append(id, messageOf("same", "first"));
      await store.conversations.append(id, messageOf("other"));
      expect(await store.conversations.append(id, messageOf("same", "second"))).toBe("duplicate");
      const texts = (await store.conversations.recent(id, { maxMessages: 10 })).map(({ parts }) => parts);
      expect(texts).toEqual([[{ kind: "text", text: "first" }], [{ kind: "text", text: "words of other" }]]);
    });

    it("stores each of 300 messages appended at once exactly once", async () => {
      const id = freshId();
      const ids = Array.from({ length: 300 }, (_, n) => `m${n}`);
      const answers = await Promise.all(ids.map((each) => store.conversations.append(id, messageOf(each))));
      expect(new Set(answers)).toEqual(new Set(["appended"]));
      const kept = await store.conversations.recent(id, { maxMessages: 5000 });
      expect(kept.map((message) => message.id)).toEqual(ids);
    });

    it("stores what several processes append at once, each in its order", async () => {
      store = await current().reopen({ exclusive: false });
      const writers = [
        store,
        await current().open({ exclusive: false }),
        await current().open({ exclusive: false }),
      ];
      const id = freshId();
      await Promise.all(
        writers.map(async ({ conversations }, writer) => {
          for (let n = 0; n < 30; n++) await conversations.append(id, messageOf(`w${writer}-${n}`));
        }),
      );
      const kept = (await store.conversations.recent(id, { maxMessages: 1000 })).map((message) => message.id);
      expect(kept).toHaveLength(90);
      for (const writer of writers.keys())
        expect(kept.filter((each) => each.startsWith(`w${writer}-`))).toEqual(
          Array.from({ length: 30 }, (_, n) => `w${writer}-${n}`),
        );
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
      expect(await store.conversations.existing([spoken])).toEqual([spoken]);
      expect(await store.conversations.existing([set])).toEqual([set]);
      expect(await store.conversations.existing([unknown])).toEqual([]);
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
      const listed = await store.lists.list(`${scope}:`, { max: 10 });
      expect(listed.map(({ conversationId }) => conversationId)).toEqual([ids[0], ids[2], ids[1]]);
      expect(listed.map(({ title }) => title)).toEqual([
        `About ${ids[0]} and more`,
        `About ${ids[2]} and more`,
        "Named",
      ]);
      expect(listed[0]?.updatedAt).toBeGreaterThan(listed[1]?.updatedAt as number);
      expect(await store.lists.list(`${scope}:b`, { max: 10 })).toHaveLength(1);
      expect(await store.lists.list(`${scope}:`, { max: 2 })).toHaveLength(2);
      expect(await store.lists.list("nobody:", { max: 10 })).toEqual([]);
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

    // Attack: Blob names that lead out of their folder.
    it("has no blob by another name than its hash", async () => {
      for (const name of [
        "../../../etc/passwd",
        "..",
        "",
        "/etc/passwd",
        "A".repeat(64),
        `${"0".repeat(63)}/`,
      ])
        expect(await store.conversations.getBlob("test:1", name)).toBeUndefined();
    });

    it("stores blobs of conversations with any id", async () => {
      for (const id of ["../../escape", "/absolute", "a\0b", ".", "x".repeat(5000)]) {
        const bytes = randomBytes(16);
        const { hash } = await store.conversations.putBlob(id, bytes, "text/plain");
        expect(Buffer.from((await store.conversations.getBlob(id, hash))?.bytes ?? []).equals(bytes)).toBe(
          true,
        );
      }
    });
  });

  describe("what is noted with a message", () => {
    const id = freshId();
    const room = { isPeoples: true, readUpTo: "test:5" } as const;

    it("the places of a conversation come with its first message", async () => {
      const { conversations } = store;
      expect(
        await conversations.append(id, messageOf("1"), { within: ["test:guild:1", "test:channel:2"] }),
      ).toBe("appended");
      expect(await conversations.settings(id)).toEqual({ within: ["test:guild:1", "test:channel:2"] });
      expect(await conversations.listWithin("test:guild:1")).toEqual([id]);
      expect(await conversations.listWithin("test:channel:2")).toEqual([id]);
      // A later message does not move it.
      await conversations.append(id, messageOf("2"), { within: ["test:guild:3"] });
      expect(await conversations.settings(id)).toEqual({ within: ["test:guild:1", "test:channel:2"] });
      expect(await conversations.listWithin("test:guild:3")).toEqual([]);
    });

    it("places and other settings that are there stay", async () => {
      const { conversations } = store;
      await conversations.saveSettings(id, {
        model: "m",
        within: ["test:guild:1"],
        room: { isPeoples: true },
      });
      await conversations.append(id, messageOf("1"), {
        within: ["test:guild:3"],
        room: { readUpTo: "test:5" },
      });
      expect(await conversations.settings(id)).toEqual({ model: "m", within: ["test:guild:1"], room });
      expect(await conversations.listWithin("test:guild:1")).toEqual([id]);
      expect(await conversations.listWithin("test:guild:3")).toEqual([]);
    });

    it("what is known of a room changes with any message", async () => {
      const { conversations } = store;
      await conversations.append(id, messageOf("1"), { room });
      await conversations.append(id, messageOf("2"), { room: { readUpTo: "test:9" } });
      expect(await conversations.settings(id)).toEqual({ room: { isPeoples: true, readUpTo: "test:9" } });
    });

    it("nothing is noted with a message that is stored already", async () => {
      const { conversations } = store;
      await conversations.append(id, messageOf("1"), { room });
      expect(await conversations.append(id, messageOf("1"), { room: { readUpTo: "test:9" } })).toBe(
        "duplicate",
      );
      expect(await conversations.settings(id)).toEqual({ room });
    });

    it("a conversation that is erased takes it along", async () => {
      const { conversations, erasure } = store;
      await conversations.append(id, messageOf("1"), { within: ["test:guild:1"], room });
      await erasure.deleteConversation(id);
      expect(await conversations.settings(id)).toEqual({});
      expect(await conversations.listWithin("test:guild:1")).toEqual([]);
      expect(await conversations.existing([id])).toEqual([]);
    });
  });

  describe("ratings", () => {
    const rate = (personId: string, rating: "good" | "bad", id = answer.id) =>
      store.conversations.rate("test:1", id, { personId, rating });
    const ratings = async () => (await store.conversations.find("test:1", answer.id))?.ratings;
    const ratingOf = async (personId: string) =>
      ratingBy((await store.conversations.find("test:1", answer.id))!, personId);

    it("of several people at once are all kept, one of each, also after a restart", async () => {
      await store.conversations.append("test:1", answer);
      await Promise.all(["ann", "bob", "cleo"].map((rater) => rate(rater, "good")));
      expect(await rate("bob", "good")).toBe("unchanged");
      expect(await rate("bob", "bad")).toBe("rated");
      store = await current().reopen();
      expect(await Promise.all(["ann", "bob", "cleo", "dan"].map(ratingOf))).toEqual([
        "good",
        "bad",
        "good",
        undefined,
      ]);
      expect(JSON.stringify(await ratings())).not.toMatch(/ann|bob|cleo/);
    });

    it("are bounded, and those that are there can still be changed", async () => {
      await store.conversations.append("test:1", answer);
      for (let index = 0; index < maxRatings; index++) await rate(`r${index}`, "good");
      expect(await rate("one-more", "good")).toBe("unchanged");
      expect(await rate("r0", "bad")).toBe("rated");
      expect(Object.keys((await ratings()) ?? {})).toHaveLength(maxRatings);
    });

    it("are forgotten with the person, who may have written nothing; those of others stay", async () => {
      const { conversations, erasure } = store;
      await conversations.append("test:1", { ...answer, id: "t1/user", role: "user", author: bob });
      await conversations.append("test:1", answer);
      await conversations.append("test:2", answer);
      await rate("ann", "good");
      await rate(bob.id, "bad");
      await conversations.rate("test:2", answer.id, { personId: "ann", rating: "bad" });
      const one = { messages: 0, blobs: 0, conversations: 0, settings: 0, ratings: 1 };
      expect(await erasure.countAuthor("test:1", "ann")).toEqual(one);
      expect(await erasure.countAuthor(undefined, "ann")).toEqual({ ...one, ratings: 2 });
      expect(await erasure.forgetAuthor("test:1", "ann")).toEqual(one);
      expect(await ratingOf("ann")).toBeUndefined();
      expect(await ratingOf(bob.id)).toBe("bad");
      expect(await erasure.forgetAuthor(undefined, "ann")).toEqual(one);
      expect(await conversations.find("test:2", answer.id)).toEqual(answer);
      expect(await erasure.countAuthor(undefined, "ann")).toMatchObject({ messages: 0 });
      expect(await erasure.forgetAuthor(undefined, "ann")).toEqual({
        messages: 0,
        blobs: 0,
        conversations: 0,
        settings: 0,
        ratings: 0,
      });
    });

    it("are gone with the answer, of another attempt too, and questions have none", async () => {
      await store.conversations.append("test:1", { ...answer, id: "t1/user", role: "user" });
      await store.conversations.append("test:1", answer);
      expect(await rate("ann", "good", "t1/user")).toBe("gone");
      expect(await rate("ann", "good", "unknown")).toBe("gone");
      await rate("ann", "good");
      await store.inbox.accept(eventOf("t1", "test:1"));
      for (const attempt of [1, 2]) {
        await store.inbox.begin(await store.inbox.read(["t1"]));
        const run = { key: "t1", attempt, conversationId: "test:1" };
        const how = { answer: { ...answer, attempt }, earlier: "erased" } as const;
        if (attempt === 2) await store.inbox.write(run, endOf(run, undefined, how));
      }
      expect(await ratings()).toBeUndefined();
      await store.erasure.removeMessages("test:1", { ids: [answer.id] });
      expect(await rate("ann", "good")).toBe("gone");
    });
  });
});

const bob = { id: "bob", name: "Bob" };

const answer: StoredMessage = {
  id: "t1/assistant/1",
  role: "assistant",
  turnKey: "t1",
  attempt: 1,
  parts: [{ kind: "text", text: "an answer" }],
  createdAt: 1000,
  estimatedTokens: 3,
  outcome: "complete",
};

async function pastThisMillisecond(): Promise<void> {
  const now = Date.now();
  while (Date.now() === now) await new Promise((resolve) => setImmediate(resolve));
}
