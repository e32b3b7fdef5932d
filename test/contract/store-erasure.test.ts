import { buffer } from "node:stream/consumers";
import { randomUUID } from "node:crypto";
import { beforeEach, describe, expect, it } from "vitest";
import { messageIds } from "../../src/core/message-ids.ts";
import type { StoredMessage } from "../../src/core/storage.ts";
import type { Store } from "../../src/conversations/open-store.ts";
import { holds } from "../support/store-bytes.ts";
import { eventOf, messageOf } from "../support/store-samples.ts";
import { describeStores } from "../support/stores.ts";
import {
  againOf,
  answerTurn,
  beginTurn,
  callOf,
  deletionOf,
  endOf,
  openKeys,
  questionOf,
} from "../support/turn-steps.ts";

const ann = { id: "test:ann", name: "Ann" };
const bob = { id: "test:bob", name: "Bob" };
const answerOf = (id: string, text: string): StoredMessage => {
  const { author: _, ...message } = messageOf(id, text);
  return { ...message, role: "assistant", outcome: "complete" };
};
const retryOf = (key: string) => againOf(key, { reason: "retry", isLastOnly: false });
const secretOf = (who: string) => `${who}-${randomUUID()}`;

describeStores("erasure", (current) => {
  let store: Store;
  beforeEach(async () => {
    store = await current().open();
  });

  /** Stores a message with a new picture, whose turn is over. */
  const say = async (conversationId: string, author: typeof ann, secret: string, shared?: Uint8Array) => {
    const key = `${conversationId}/${randomUUID()}`;
    const id = messageIds.user(key);
    const blob = await store.conversations.putBlob(
      conversationId,
      Buffer.from(`picture ${secret}`),
      "image/png",
    );
    const parts: StoredMessage["parts"] = [
      { kind: "text", text: secret },
      { kind: "image", blob, name: `${secret}.png` },
      ...(shared === undefined
        ? []
        : [
            {
              kind: "image",
              blob: await store.conversations.putBlob(conversationId, shared, "image/png"),
              name: "shared.png",
            } as const,
          ]),
    ];
    const event = { ...eventOf(key, conversationId), author, text: secret };
    await store.inbox.accept(event);
    const question = { ...questionOf(event), parts };
    const begun = await store.inbox.begin(await store.inbox.read([key]), { messages: [question] });
    expect(begun).toBeDefined();
    const attempt = { key, attempt: 1, conversationId };
    await store.inbox.write(attempt, { kind: "address", address: { note: secret }, shownAs: [] });
    await store.inbox.write(attempt, endOf(attempt));
    await store.inbox.write(attempt, { kind: "close" });
    return { key, id, blob, event };
  };
  const textsOf = async (conversationId: string) =>
    (await store.conversations.recent(conversationId, { maxMessages: 999 })).flatMap(({ parts }) =>
      parts.flatMap((part) => (part.kind === "text" ? [part.text] : [])),
    );

  it("erases one author's messages in a shared conversation and keeps the others'", async () => {
    const [hers, his] = [secretOf("hers"), secretOf("his")];
    const shared = Buffer.from("a picture both sent");
    const first = await say("test:1", ann, hers, shared);
    await store.conversations.saveSettings("test:1", { title: hers, model: "m" });
    const second = await say("test:1", bob, his, shared);
    await store.conversations.append("test:1", answerOf("a1", "answer to both"));
    expect(holds(await current().bytes(), hers)).toBe(true);

    expect(await store.erasure.forgetAuthor("test:1", ann.id)).toEqual({
      messages: 1,
      blobs: 1,
      conversations: 0,
      settings: 0,
      ratings: 0,
    });

    expect(await textsOf("test:1")).toEqual([his, "answer to both"]);
    // It is read while the store is open, so the write-ahead log is included.
    expect(holds(await current().bytes(), hers)).toBe(false);
    expect(holds(await current().bytes(), his)).toBe(true);
    expect(await store.conversations.getBlob("test:1", first.blob.hash)).toBeUndefined();
    expect(await store.conversations.getBlob("test:1", second.blob.hash)).toBeDefined();
    expect(await store.conversations.settings("test:1")).toEqual({ model: "m" });
    expect(await store.inbox.accept(first.event)).toBe("duplicate");
    expect(await store.inbox.change(retryOf(first.key))).toMatchObject({ result: "gone" });
    expect(await store.inbox.change(retryOf(second.key))).toMatchObject({ result: "done" });
    expect(await store.conversations.append("test:1", messageOf(first.id, "again"))).toBe("duplicate");
    await say("test:1", bob, "goes on");
    expect(await textsOf("test:1")).toEqual([his, "answer to both", "goes on"]);
  });

  it("erases an author everywhere, and conversations without other authors as a whole", async () => {
    const [hers, his] = [secretOf("hers"), secretOf("his")];
    await say("test:private", ann, hers);
    await store.conversations.append("test:private", {
      ...messageOf("a", `you said ${hers}`),
      role: "assistant",
    });
    await say("other:shared", ann, hers);
    await say("other:shared", bob, his);
    await say("test:bobs", bob, his);
    const open = { ...eventOf("still-open"), author: ann };
    await store.inbox.accept(open);

    expect(await store.erasure.forgetAuthor(undefined, ann.id)).toEqual({
      messages: 3,
      blobs: 2,
      conversations: 1,
      settings: 0,
      ratings: 0,
    });

    expect(holds(await current().bytes(), hers)).toBe(false);
    expect(await store.conversations.existing(["test:private"])).toEqual([]);
    expect(await textsOf("other:shared")).toEqual([his]);
    expect(await textsOf("test:bobs")).toEqual([his]);
    for (const [platform, left] of [
      ["other:", "other:shared"],
      ["test:", "test:bobs"],
    ] as const)
      expect(await store.lists.list(platform, { max: 9 })).toMatchObject([{ conversationId: left }]);
    expect(await openKeys(store.inbox)).toEqual(["still-open"]);
    expect(await store.erasure.forgetAuthor(undefined, ann.id)).toEqual({
      messages: 0,
      blobs: 0,
      conversations: 0,
      settings: 0,
      ratings: 0,
    });
  });

  it("deletes a conversation of any length, which can start anew", async () => {
    const secret = secretOf("long");
    await say("test:2", ann, secret);
    await store.conversations.saveSettings("test:2", { title: secret });
    for (let n = 0; n < 250; n++)
      await store.conversations.append("test:2", messageOf(`${n}`, `${secret} ${n}`));
    const other = secretOf("other");
    await say("test:22", ann, other);

    expect(await store.erasure.deleteConversation("test:2")).toEqual({
      messages: 251,
      blobs: 1,
      conversations: 1,
      settings: 0,
      ratings: 0,
    });

    expect(holds(await current().bytes(), secret)).toBe(false);
    expect(await store.conversations.existing(["test:2"])).toEqual([]);
    expect(await textsOf("test:22")).toEqual([other]);
    expect(await store.conversations.append("test:2", messageOf("0", "anew"))).toBe("appended");
    expect(await textsOf("test:2")).toEqual(["anew"]);
  });

  it("erases single messages with their own pictures, and refuses their ids from then on", async () => {
    const [gone, stays] = [secretOf("gone"), secretOf("stays")];
    const shared = Buffer.from("a picture in both");
    const first = await say("test:5", ann, gone, shared);
    const second = await say("test:5", bob, stays, shared);
    await store.conversations.append("test:5", {
      ...answerOf("a1", secretOf("answer")),
      shownAs: ["shown:1", "shown:2"],
    });
    await store.conversations.saveSettings("test:5", { title: gone, model: "m", resetAfter: first.id });
    const removed = { ids: [first.id], shownAs: ["shown:2"] };

    expect(await store.erasure.removeMessages("test:5", removed)).toEqual({
      messages: 2,
      blobs: 1,
      conversations: 0,
      settings: 0,
      ratings: 0,
    });
    await store.inbox.change(deletionOf(first.key));

    expect(await textsOf("test:5")).toEqual([stays]);
    expect(holds(await current().bytes(), gone)).toBe(false);
    expect(holds(await current().bytes(), "answer-")).toBe(false);
    expect(holds(await current().bytes(), "a picture in both")).toBe(true);
    expect(await store.conversations.settings("test:5")).toEqual({ model: "m" });
    expect(await store.conversations.append("test:5", messageOf(first.id))).toBe("duplicate");
    expect(await store.inbox.accept(first.event)).toBe("duplicate");
    expect(await store.inbox.change(retryOf(first.key))).toMatchObject({ result: "gone" });
    // It is repeated, as after a crash, and done before the message is stored.
    expect(await store.erasure.removeMessages("test:5", removed)).toMatchObject({
      messages: 0,
      blobs: 0,
    });
    await store.erasure.removeMessages("test:5", { ids: ["late"] });
    expect(await store.conversations.append("test:5", messageOf("late"))).toBe("duplicate");
    expect(await store.conversations.find("test:5", "late")).toBeUndefined();
    expect(await store.conversations.find("test:5", second.id)).toBeDefined();
  });

  describe("of an answer with earlier versions", () => {
    /** Asks a question whose answer took the place of another one, which had a picture. */
    const ask = async (author: typeof ann, words: { readonly earlier: string; readonly newest: string }) => {
      const { key, id } = await say("test:7", author, secretOf("question"));
      const answerId = messageIds.answer(key);
      const blob = await store.conversations.putBlob("test:7", Buffer.from(words.earlier), "image/png");
      const image = { kind: "image", blob, name: "earlier.png" } as const;
      for (const [text, pictures] of [
        [words.earlier, [image]],
        [words.newest, []],
      ] as const) {
        await store.inbox.change(retryOf(key));
        const attempt = await beginTurn(store.inbox, [key]);
        const written = answerOf(answerId, text);
        const answer = { ...written, parts: [...written.parts, ...pictures], turnKey: key };
        const how = { answer: { ...answer, attempt: attempt.attempt }, earlier: "version" } as const;
        await store.inbox.write(attempt, endOf(attempt, undefined, how));
        await store.inbox.write(attempt, { kind: "close" });
      }
      expect(holds(await current().bytes(), words.earlier)).toBe(true);
      return { key, id, answerId, blob };
    };
    const isGone = async (secret: string) =>
      expect.poll(async () => holds(await current().bytes(), secret), { timeout: 20_000 }).toBe(false);

    it("erases them with the answer", async () => {
      const words = { earlier: secretOf("earlier"), newest: secretOf("newest") };
      const { answerId, blob } = await ask(ann, words);
      await store.erasure.removeMessages("test:7", { ids: [], withLooseFiles: true });
      expect(await store.conversations.getBlob("test:7", blob.hash)).toBeDefined();
      await store.erasure.removeMessages("test:7", { ids: [answerId] });
      await isGone(words.earlier);
      await isGone(words.newest);
      expect(await store.conversations.getBlob("test:7", blob.hash)).toBeUndefined();
    });

    it.each(["from the log", "as a change of its turn"])("erases them with the question, %s", async (how) => {
      const words = { earlier: secretOf("earlier"), newest: secretOf("newest") };
      const { key, id, blob } = await ask(ann, words);
      if (how === "from the log") await store.erasure.removeMessages("test:7", { ids: [id] });
      else await store.inbox.change(deletionOf(key));
      await isGone(words.earlier);
      expect(await textsOf("test:7")).toEqual([words.newest]);
      expect(await store.conversations.getBlob("test:7", blob.hash)).toBeUndefined();
    });

    it("erases those to an author who is forgotten; those to others stay", async () => {
      const hers = { earlier: secretOf("hers"), newest: secretOf("hers-new") };
      const his = { earlier: secretOf("his"), newest: secretOf("his-new") };
      await ask(ann, hers);
      const { blob } = await ask(bob, his);
      await store.erasure.forgetAuthor("test:7", ann.id);
      await isGone(hers.earlier);
      expect(holds(await current().bytes(), his.earlier)).toBe(true);
      expect(await store.conversations.getBlob("test:7", blob.hash)).toBeDefined();
      await store.erasure.deleteConversation("test:7");
      await isGone(his.earlier);
    });

    it("exports them as data with their pictures, and the newest to read", async () => {
      await ask(ann, { earlier: "earlier words", newest: "newest words" });
      const { files } = await store.exportConversation("test:7");
      const texts = new Map<string, string>();
      for (const file of files) texts.set(file.name, (await buffer(file.read())).toString());
      expect(texts.get("conversation.md")).toContain("newest words");
      expect(texts.get("conversation.md")).not.toContain("earlier words");
      expect(texts.get("conversation.json")).toContain("earlier words");
      expect(files).toHaveLength(4);
    });
  });

  it("erases what a deleted message was the title, the reset and the picture of", async () => {
    const first = await say("test:8", bob, secretOf("his"));
    const secret = secretOf("hers");
    const second = await say("test:8", ann, secret);
    await say("test:8", ann, secretOf("after"));
    await store.conversations.saveSettings("test:8", { title: "hers", model: "m", resetAfter: second.id });
    await store.inbox.change(deletionOf(second.key));
    expect(await store.conversations.settings("test:8")).toEqual({
      title: "hers",
      model: "m",
      resetAfter: first.id,
    });
    expect(await store.conversations.getBlob("test:8", second.blob.hash)).toBeUndefined();
    expect(holds(await current().bytes(), secret)).toBe(false);
    await store.inbox.change(deletionOf(first.key));
    expect(await store.conversations.settings("test:8")).toEqual({ model: "m" });
  });

  it("erases a message whose turn was erased with what somebody else wrote", async () => {
    const hers = { ...eventOf("hers", "test:9"), author: ann };
    const his = { ...eventOf("his", "test:9"), author: bob, text: secretOf("his") };
    await answerTurn(store.inbox, [hers, his]);
    await store.erasure.forgetAuthor("test:9", ann.id);
    expect(await textsOf("test:9")).toEqual([his.text, "the answer"]);
    expect(await store.inbox.change(deletionOf("his"))).toMatchObject({ result: "done" });
    expect(await store.inbox.read(["hers", "his"])).toMatchObject([{ state: "erased" }, { state: "erased" }]);
    expect(holds(await current().bytes(), his.text)).toBe(false);
  });

  describe("of a call that can be asked again, of which no log knows", () => {
    const call = (secret: string) => {
      const subject = { author: bob, text: secret, attachments: [] };
      return { ...callOf("test:call", "test:10", secret), author: ann, isPrivate: true, subject };
    };
    const close = async (secret: string, isRepeatable: boolean) => {
      await store.inbox.accept(call(secret));
      const attempt = await beginTurn(store.inbox, ["test:call"], { isAsked: false });
      await store.inbox.write(attempt, endOf(attempt, undefined, { kind: "failed" }));
      await store.inbox.write(attempt, { kind: "close", isRepeatable });
    };

    it.each([
      ["with its conversation", () => store.erasure.deleteConversation("test:10")],
      ["with its author", () => store.erasure.forgetAuthor(undefined, ann.id)],
      [
        "with the author of the message that it was used on",
        () => store.erasure.forgetAuthor(undefined, bob.id),
      ],
    ] as const)("erases it %s", async (_, erase) => {
      const secret = secretOf("prompt");
      await close(secret, true);
      expect((await store.inbox.read(["test:call"]))[0]?.event).toMatchObject({
        options: { prompt: secret },
      });
      await erase();
      expect(await store.inbox.read(["test:call"])).toMatchObject([{ state: "erased" }]);
      expect(holds(await current().bytes(), secret)).toBe(false);
    });

    it("counts it as no conversation, and keeps nothing of one that cannot", async () => {
      const secret = secretOf("prompt");
      await close(secret, true);
      expect(await store.erasure.countAuthor(undefined, ann.id)).toMatchObject({ conversations: 0 });
      await store.inbox.change(retryOf("test:call"));
      const attempt = await beginTurn(store.inbox, ["test:call"]);
      await store.inbox.write(attempt, endOf(attempt));
      await store.inbox.write(attempt, { kind: "close" });
      expect(JSON.stringify(await store.inbox.read(["test:call"]))).not.toContain(secret);
    });
  });

  it("erases files that no message shows only on request", async () => {
    await say("test:6", ann, secretOf("stays"));
    const { hash } = await store.conversations.putBlob(
      "test:6",
      Buffer.from("a stopped turn's"),
      "image/png",
    );
    await store.erasure.removeMessages("test:6", { ids: ["x"] });
    expect(await store.conversations.getBlob("test:6", hash)).toBeDefined();
    await store.erasure.removeMessages("test:6", { ids: ["x"], withLooseFiles: true });
    expect(await store.conversations.getBlob("test:6", hash)).toBeUndefined();
  });

  it("counts what forgetting an author would erase, and erases nothing", async () => {
    await say("test:7", ann, secretOf("one"));
    await store.conversations.append("test:7", answerOf("a1", "answer"));
    const alone = { messages: 2, blobs: 1, conversations: 1, settings: 0, ratings: 0 };
    expect(await store.erasure.countAuthor("test:7", ann.id)).toEqual(alone);
    await say("test:7", bob, secretOf("two"));
    const shared = { messages: 1, blobs: 1, conversations: 0, settings: 0, ratings: 0 };
    expect(await store.erasure.countAuthor("test:7", ann.id)).toEqual(shared);
    expect(await store.erasure.countAuthor(undefined, ann.id)).toEqual(shared);
    expect(await store.erasure.countAuthor(undefined, "test:nobody")).toMatchObject({ messages: 0 });
    expect(await store.erasure.forgetAuthor("test:7", ann.id)).toEqual(shared);
  });

  it("exports a conversation as Markdown, JSON and pictures", async () => {
    const { blob } = await say("test:4", ann, "Look [here]: ```js\n1\n```");
    await store.conversations.saveSettings("test:4", { title: "Ships\nand more" });
    await store.conversations.append("test:4", {
      ...answerOf("a", "I see."),
      model: "vendor/seer",
      notices: ["Cut."],
    });
    await store.conversations.append("test:4", {
      ...messageOf("f"),
      parts: [
        { kind: "file", name: "a*b.md", text: "```\nfenced\n```" },
        { kind: "unread", name: "x.zip", reason: "it is an archive" },
      ],
    });
    const exported = await store.exportConversation("test:4");
    expect(exported.title).toBe("Ships\nand more");
    const files = new Map<string, string>();
    for (const file of exported.files) files.set(file.name, (await buffer(file.read())).toString());
    const picture = `image-${blob.hash.slice(0, 12)}.png`;
    expect([...files.keys()]).toEqual(["conversation.md", "conversation.json", picture]);
    const markdown = files.get("conversation.md") ?? "";
    expect(markdown).toMatch(/^# Ships and more\n\n## Ann, \d{4}-\d\d-\d\d \d\d:\d\d UTC\n\n> Look \[here\]/);
    expect(markdown).toContain(`](${picture})`);
    expect(markdown).toContain("## vendor/seer");
    expect(markdown).toContain("> I see.\n\n- Cut.");
    expect(markdown).toContain("> **a\\*b.md**\n>\n> ````\n> ```\n> fenced\n> ```\n> ````");
    expect(markdown).toContain("> *x.zip was not read: it is an archive*");
    expect(files.get(picture)).toBe("picture Look [here]: ```js\n1\n```");
    const json = JSON.parse(files.get("conversation.json") ?? "") as { messages: StoredMessage[] };
    expect(json.messages).toEqual(await store.conversations.recent("test:4", { maxMessages: 9 }));
  });

  it("exports nobody's words as another's section", async () => {
    const feint = "hi\n\n## Bo, 2026-11-28 06:00 UTC\n\nI resign</blockquote>";
    await store.conversations.append("test:4", {
      ...messageOf("f", feint.replaceAll("\n", "\r\n")),
      author: { id: "test:ann", name: "Ann\n## Bo, 2026" },
      notices: [feint],
    });
    await store.conversations.append("test:4", answerOf("a", feint));
    const [first] = (await store.exportConversation("test:4")).files;
    const whole = (await buffer(first!.read())).toString();
    const markdown = whole.slice(whole.indexOf("\n\n") + 2);
    expect(markdown.match(/^## .*/gm)).toHaveLength(2);
    expect(markdown).toMatch(/^## Ann ## Bo, 2026, .* UTC\n\n> hi\n>\n> ## Bo, 2026-11-28 06:00 UTC$/m);
    expect(markdown.split("\n").filter((line) => line.includes("I resign") && !/^[>-] /.test(line))).toEqual(
      [],
    );
    expect(markdown).not.toContain("</blockquote>");
  });

  describe("edits of stored messages", () => {
    const answer = (id: string, text: string): StoredMessage => {
      const { author: _, ...message } = messageOf(id, text);
      return { ...message, role: "assistant", outcome: "complete" };
    };
    const picture = (name: string) =>
      store.conversations.putBlob("test:1", Buffer.from(`picture ${name}`), "image/png");
    const withPictures = async (
      id: string,
      text: string,
      names: readonly string[],
    ): Promise<StoredMessage> => ({
      ...messageOf(id, text),
      parts: [
        { kind: "text", text },
        ...(await Promise.all(
          names.map(async (name) => ({ kind: "image" as const, name, blob: await picture(name) })),
        )),
      ],
    });
    const texts = async () =>
      (await store.conversations.recent("test:1", { maxMessages: 99 })).map(({ parts }) =>
        parts[0]?.kind === "text" ? parts[0].text : "",
      );

    it("replace one at its position: words, title and files that nothing else shows are gone", async () => {
      const secret = `secret ${randomUUID()}`;
      await store.conversations.append(
        "test:1",
        await withPictures("q1", secret, ["kept", secret, "shared"]),
      );
      await store.conversations.saveSettings("test:1", { title: secret, model: "m" });
      await store.conversations.append("test:1", answer("a1", "an answer"));
      await store.conversations.append("test:1", await withPictures("q2", "next", ["shared"]));
      const changed = { ...(await withPictures("q1", "harmless", ["kept"])), editedAt: 5000 };
      expect(await store.erasure.replaceMessage("test:1", changed)).toBe(true);
      expect(await texts()).toEqual(["harmless", "an answer", "next"]);
      expect(await store.conversations.find("test:1", "q1")).toEqual(changed);
      expect(await store.conversations.settings("test:1")).toEqual({ model: "m" });
      expect(holds(await current().bytes(), secret)).toBe(false);
      const hashOf = async (name: string) => (await picture(name)).hash;
      for (const name of ["kept", "shared"])
        expect(await store.conversations.getBlob("test:1", await hashOf(name))).toBeDefined();
    });

    it("keep a title that was not made of the message", async () => {
      await store.conversations.append("test:1", messageOf("q1", "first"));
      await store.conversations.append("test:1", messageOf("q2", "second"));
      await store.conversations.saveSettings("test:1", { title: "first" });
      expect(await store.erasure.replaceMessage("test:1", { ...messageOf("q2", "new"), editedAt: 1 })).toBe(
        true,
      );
      expect(await store.conversations.settings("test:1")).toEqual({ title: "first" });
    });

    it("older than the stored one, or of what is not stored or erased, change nothing", async () => {
      await store.conversations.append("test:1", { ...messageOf("q1", "second"), editedAt: 2000 });
      expect(
        await store.erasure.replaceMessage("test:1", { ...messageOf("q1", "first"), editedAt: 1000 }),
      ).toBe(false);
      expect(await store.erasure.replaceMessage("test:1", messageOf("q2", "none"))).toBe(false);
      await store.erasure.removeMessages("test:1", { ids: ["q1", "q3"] });
      for (const id of ["q1", "q3"])
        expect(
          await store.erasure.replaceMessage("test:1", { ...messageOf(id, "back"), editedAt: 9000 }),
        ).toBe(false);
      expect(await texts()).toEqual([]);
    });
  });

  describe("of conversations by place", () => {
    it("lists the conversations within a place until they move or are deleted", async () => {
      await store.conversations.saveSettings("test:1", { within: ["test:guild:1", "test:channel:1"] });
      await store.conversations.saveSettings("test:2", { within: ["test:guild:1", "test:channel:2"] });
      await store.conversations.saveSettings("test:3", { title: "nowhere" });
      const within = async (place: string) => (await store.conversations.listWithin(place)).toSorted();
      expect(await within("test:guild:1")).toEqual(["test:1", "test:2"]);
      expect(await within("test:channel:1")).toEqual(["test:1"]);
      expect(await within("test:guild")).toEqual([]);

      await store.conversations.saveSettings("test:1", { title: "still there" });
      expect(await within("test:channel:1")).toEqual(["test:1"]);
      await store.conversations.saveSettings("test:1", { within: ["test:guild:2"] });
      expect(await within("test:guild:1")).toEqual(["test:2"]);
      expect(await within("test:channel:1")).toEqual([]);
      await store.erasure.deleteConversation("test:2");
      expect(await within("test:guild:1")).toEqual([]);
      expect(await within("test:guild:2")).toEqual(["test:1"]);
    });

    it("leave no trace of a deleted conversation and of a forgotten author", async () => {
      const author = { id: "test:secret-author", name: "Ann" };
      await store.conversations.append("test:secret-id", { ...messageOf("m1"), author });
      await store.conversations.append("test:shared", { ...messageOf("m2"), author });
      await store.conversations.append("test:shared", messageOf("m3"));
      await store.conversations.saveSettings("test:secret-id", { within: ["test:secret-place"] });
      expect((await current().bytes()).includes("secret-")).toBe(true);
      await store.erasure.forgetAuthor(undefined, author.id);
      expect((await current().bytes()).includes("secret-")).toBe(false);
    });

    it("forget an author's later messages too", async () => {
      const author = { id: "test:bob", name: "Bob" };
      await store.conversations.append("test:1", messageOf("m1"));
      for (const id of ["m2", "m3"]) {
        await store.conversations.append("test:1", { ...messageOf(id), author });
        expect(await store.erasure.forgetAuthor(undefined, author.id)).toMatchObject({ messages: 1 });
      }
    });
  });
});
