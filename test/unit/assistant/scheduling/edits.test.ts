import { describe, expect, it, vi } from "vitest";
import { ParleyError } from "../../../../src/core/errors.ts";
import type { IncomingMessage } from "../../../../src/core/events.ts";
import type { ChatRequest } from "../../../../src/core/gateway.ts";
import type { EditedMessage } from "../../../../src/core/receiver.ts";
import { fixture } from "../../../fixtures/fixtures.ts";
import { messageIds } from "../../../../src/core/message-ids.ts";
import { message, said } from "../../../support/fakes.ts";
import { beginAgain, editElsewhere } from "../../../support/left-turns.ts";
import { worldOfEachTest } from "../../../support/world-of-each-test.ts";

describe("edits of questions", () => {
  const world = worldOfEachTest(async () => ({ files: { png: await fixture("picture.png") } }));

  let editedAt = 1_800_000_000_000;

  const editOf = (
    { key, conversationId }: Pick<IncomingMessage, "key" | "conversationId">,
    text: string,
    more: Partial<EditedMessage> = {},
  ): EditedMessage => ({
    kind: "edit",
    key,
    editedAt: (editedAt += 1000),
    conversationIds: [conversationId],
    read: () => Promise.resolve({ text }),
    ...more,
  });
  const edit = (event: IncomingMessage, text: string, more: Partial<EditedMessage> = {}) =>
    world.assistant.changed(editOf(event, text, more));

  /** Makes the first answer hang after a word until it is aborted. Later ones repeat the question. */
  function hangOnce(): { readonly aborted: () => number } {
    let aborted = 0;
    let isFirst = true;
    world.gateway.answerWith(async function* hang(request: ChatRequest, signal: AbortSignal) {
      if (isFirst) {
        isFirst = false;
        yield { kind: "text", text: "half" };
        await new Promise((_, reject) =>
          signal.addEventListener("abort", () => {
            aborted += 1;
            reject(signal.reason);
          }),
        );
      }
      const last = request.messages.at(-1)?.content ?? "";
      yield { kind: "text", text: `re: ${typeof last === "string" ? last : "parts"}` };
      yield { kind: "finish", reason: "stop", model: request.model, usage: { isEstimated: true } };
    });
    return { aborted: () => aborted };
  }

  const replies = () => world.platform.replies.map(({ state, text }) => `${state}: ${text}`);

  describe("an edited question", () => {
    it("that was answered last is answered anew, in the same reply; the earlier words are gone", async () => {
      await world.ask("first");
      const event = await world.ask("my secret");
      expect(await edit(event, "harmless")).toBe("changed");
      await world.settled();
      expect(replies()).toEqual(["finished: you said: first", "finished: you said: harmless"]);
      expect(await world.log()).toEqual([
        "user: first",
        "assistant: you said: first",
        "user: harmless",
        "assistant: you said: harmless",
      ]);
      expect(said(world.gateway.requests.at(-1)).join()).not.toContain("secret");
      expect(JSON.stringify(await world.store.inbox.read([event.key]))).not.toContain("secret");
      expect(await world.store.inbox.open()).toEqual([]);
    });

    it("that was never stored costs one look at the conversations that it might be in", async () => {
      const found = vi.spyOn(world.store.conversations, "find");
      const looked = vi.spyOn(world.store.conversations, "existing");
      const conversationIds = ["fake:1", "fake:2", "fake:3"];
      expect(await edit(message("never asked"), "edited", { conversationIds })).toBe("unknown");
      expect(looked.mock.calls).toEqual([[conversationIds]]);
      expect(found).not.toHaveBeenCalled();
    });

    it("that is to somebody else now is not answered anew, and what it says is stored", async () => {
      const event = await world.ask("who waters it?");
      const aside = () => Promise.resolve({ text: "@Rasha who waters it?", isAside: true } as const);
      expect(await edit(event, "", { read: aside })).toBe("changed");
      await world.settled();
      expect(replies()).toEqual(["finished: you said: who waters it?"]);
      expect((await world.log())[0]).toBe("user: @Rasha who waters it?");
      expect(await edit(event, "who cuts it?")).toBe("changed");
      await world.settled();
      expect(replies()).toEqual(["finished: you said: who cuts it?"]);
    });

    it("that is to somebody else before it is answered is taken back", async () => {
      const { aborted } = hangOnce();
      const event = message("who waters it?");
      await world.assistant.receive(event);
      await vi.waitFor(() => expect(world.platform.replies[0]?.text).toBe("half"));
      const aside = () => Promise.resolve({ text: "@Rasha who waters it?", isAside: true } as const);
      expect(await edit(event, "", { read: aside })).toBe("changed");
      await world.settled();
      expect(aborted()).toBe(1);
      // As where it is deleted, nothing is stored of the answer.
      expect(await world.log()).toEqual([]);
      expect(world.platform.replies).toMatchObject([{ state: "finished" }]);
      expect(await world.store.inbox.open()).toEqual([]);
    });

    it("that is being answered stops the request, and is answered in the same reply", async () => {
      const { aborted } = hangOnce();
      const event = message("my secret");
      await world.assistant.receive(event);
      await vi.waitFor(() => expect(world.platform.replies[0]?.text).toBe("half"));
      expect(await edit(event, "harmless")).toBe("changed");
      await vi.waitFor(() => expect(aborted()).toBe(1));
      await world.settled();
      expect(replies()).toEqual(["finished: re: harmless"]);
      expect(await world.log()).toEqual(["user: harmless", "assistant: re: harmless"]);
      expect(await world.store.inbox.open()).toEqual([]);
    });

    it("that waits is replaced, in the order of the questions", async () => {
      hangOnce();
      const [first, second, third] = [message("one"), message("two"), message("three")];
      await world.assistant.receive(first);
      await vi.waitFor(() => expect(world.platform.replies[0]?.text).toBe("half"));
      for (const event of [second, third]) await world.assistant.receive(event);
      await edit(second, "2");
      await edit(first, "1");
      await world.settled();
      expect(await world.log()).toEqual([
        "user: 1",
        "assistant: re: 1",
        "user: 2",
        "user: three",
        "assistant: re: three",
      ]);
      expect(world.gateway.requests).toHaveLength(3);
    });

    it("of a burst changes only its own part, and the burst is answered in its reply", async () => {
      hangOnce();
      const [zero, ...burst] = ["zero", "one", "two", "three"].map((text) => message(text));
      await world.assistant.receive(zero!);
      await vi.waitFor(() => expect(world.platform.replies[0]?.text).toBe("half"));
      for (const event of burst) await world.assistant.receive(event);
      await edit(zero!, "0");
      await world.settled();
      expect(world.platform.replies).toHaveLength(2);
      await edit(burst[1]!, "2");
      await world.settled();
      expect(replies()).toEqual(["finished: re: 0", "finished: re: three"]);
      expect(await world.log()).toEqual([
        "user: 0",
        "assistant: re: 0",
        "user: one",
        "user: 2",
        "user: three",
        "assistant: re: three",
      ]);
      expect(said(world.gateway.requests.at(-1)).slice(-3)).toEqual(["user: one", "user: 2", "user: three"]);
      expect(await world.store.inbox.open()).toEqual([]);
    });

    it("of a burst that is being answered is answered anew with the others", async () => {
      hangOnce();
      const [zero, one, two] = ["zero", "one", "two"].map((text) => message(text));
      await world.leaveBegun([zero!, one!, two!]);
      await world.assistant.recover("fake");
      await vi.waitFor(() => expect(world.platform.replies[0]?.text).toBe("half"));
      await edit(two!, "2");
      await world.settled();
      expect(await world.log()).toEqual(["user: zero", "user: one", "user: 2", "assistant: re: 2"]);
      expect(world.platform.replies).toHaveLength(1);
    });

    it("with a question that waits behind it is an older one", async () => {
      const first = await world.ask("one");
      hangOnce();
      const second = message("two");
      await world.assistant.receive(second);
      await vi.waitFor(() => expect(world.platform.replies[1]?.text).toBe("half"));
      await edit(first, "1");
      await edit(second, "2");
      await world.settled();
      expect(await world.log()).toEqual([
        "user: 1",
        "assistant: you said: one",
        "user: 2",
        "assistant: re: 2",
      ]);
    });

    it("that says the same costs nothing; one that takes the words back is answered as any edit", async () => {
      const event = await world.ask("hello");
      expect(await edit(event, "hello")).toBe("unchanged");
      await world.settled();
      expect(world.gateway.requests).toHaveLength(1);
      // The earlier words are gone at once, so that nothing can tell that these are the same.
      await edit(event, "hallo");
      await edit(event, "hello");
      await world.settled();
      expect(world.gateway.requests).toHaveLength(2);
      expect(await world.log()).toEqual(["user: hello", "assistant: you said: hello"]);
      expect(await world.store.inbox.open()).toEqual([]);
    });

    it("many times in a row is one request", async () => {
      const event = await world.ask("0");
      for (let n = 1; n <= 20; n++) await edit(event, `${n}`);
      await world.settled();
      expect(replies()).toEqual(["finished: you said: 20"]);
      expect(world.gateway.requests).toHaveLength(2);
    });

    it("counts the latest edit, in whatever order edits arrive, and each once", async () => {
      const event = await world.ask("0");
      const [one, two] = [editOf(event, "1"), editOf(event, "2")];
      expect(await world.assistant.changed(two)).toBe("changed");
      expect(await world.assistant.changed(one)).toBe("unchanged");
      await world.settled();
      expect(await world.assistant.changed(two)).toBe("unchanged");
      await world.settled();
      expect(await world.log()).toEqual(["user: 2", "assistant: you said: 2"]);
      expect(world.gateway.requests).toHaveLength(2);
    });

    it("to nothing is like a deletion", async () => {
      const event = await world.ask("my secret");
      expect(await edit(event, "")).toBe("changed");
      await world.settled();
      expect(await world.log()).toEqual(["assistant: you said: my secret"]);
      expect(await world.store.inbox.read([event.key])).toMatchObject([{ state: "erased" }]);
    });

    it("of which nothing is known, or that was refused, forgotten or hidden, is none", async () => {
      expect(await edit(message("never seen"), "new")).toBe("unknown");
      const refused = message("refused");
      await world.store.inbox.refuse(refused.key);
      expect(await edit(refused, "new")).toBe("unknown");
      const forgotten = await world.ask("forgotten");
      await world.store.erasure.forgetAuthor("fake:c1", "fake:ada");
      expect(await edit(forgotten, "new")).toBe("unknown");
      const hidden = await world.ask("hidden");
      expect(await edit(hidden, "", { read: () => Promise.resolve(undefined) })).toBe("unchanged");
      await world.settled();
      expect(await world.log()).toEqual(["user: hidden", "assistant: you said: hidden"]);
    });

    // The process that stored it may have died before it could take the message as a new one.
    it("that makes a question of what was said to others is a new message for each process that learns of it", async () => {
      const { key, conversationId, author } = message("@Rasha what is a fir?");
      await world.store.conversations.append(conversationId, {
        id: messageIds.room(key),
        role: "user",
        turnKey: key,
        author,
        parts: [{ kind: "text", text: "@Rasha what is a fir?" }],
        createdAt: 1,
        estimatedTokens: 1,
        room: { isApp: false },
      });
      const edited = editOf({ key, conversationId }, "what is a fir?");
      expect(await world.assistant.changed(edited)).toBe("unknown");
      expect(await world.assistant.changed(edited)).toBe("unknown");
      const aside = () => Promise.resolve({ text: "@Rasha is it wet?", isAside: true } as const);
      const again = editOf({ key, conversationId }, "", { read: aside });
      expect(await world.assistant.changed(again)).toBe("changed");
      expect(await world.assistant.changed(again)).toBe("unchanged");
      expect(await world.assistant.changed(edited)).toBe("unchanged");
    });

    const pass = (days: number) => world.store.sweep(Date.now() + days * 24 * 60 * 60_000);

    it.each<[string, (event: IncomingMessage) => Promise<unknown>]>([
      ["that is an older one", () => world.ask("second")],
      ["weeks later", () => pass(50)],
      [
        "before a reset",
        async () => {
          const { id } = (await world.history.history("fake:c1", { maxMessages: 9 })).at(-1)!;
          await world.store.conversations.saveSettings("fake:c1", { resetAfter: id });
        },
      ],
    ])("%s changes the history only", async (_, then) => {
      const event = await world.ask("my secret");
      await then(event);
      const asked = world.gateway.requests.length;
      const before = await world.log();
      expect(await edit(event, "harmless")).toBe("changed");
      await world.settled();
      expect(await world.log()).toEqual(before.with(0, "user: harmless"));
      expect(world.gateway.requests).toHaveLength(asked);
      expect(JSON.stringify(await world.store.inbox.read([event.key]))).not.toContain("secret");
      expect(await world.store.inbox.open()).toEqual([]);
      expect(await edit(event, "harmless", { editedAt })).toBe("unchanged");
    });

    it("loses a file that was taken away, and keeps the others", async () => {
      const files = ["kept", "gone"].map((name) => ({ id: "png", name: `${name}.png`, source: {} }));
      const event = await world.ask("look", { attachments: files });
      await edit(event, "look", {
        read: () => Promise.resolve({ text: "look", attachments: files.slice(0, 1) }),
      });
      // Their ids are the same here, so only words count.
      await edit(event, "look there", {
        read: () => Promise.resolve({ text: "look there", attachments: files.slice(0, 1) }),
      });
      await world.settled();
      const [question] = await world.history.history("fake:c1", { maxMessages: 5 });
      expect(question?.parts).toMatchObject([{ text: "look there" }, { kind: "image", name: "kept.png" }]);
      expect(question?.parts).toHaveLength(2);
    });

    it("takes its words out of the address of the reply", async () => {
      const event = await world.ask("my secret", { address: { at: "c1", title: "my secret" } });
      await world.ask("later");
      await edit(event, "harmless", {
        toAddress: (address, { text }) => ({ ...address, title: text }),
      });
      await world.settled();
      const [entry] = await world.store.inbox.read([event.key]);
      expect(JSON.stringify(entry)).not.toContain("secret");
      expect(entry?.turn?.address).toMatchObject({ title: "harmless" });
    });
  });

  describe("an edited question and limits", () => {
    it("counts each new answer for its author, and says in the reply that there were too many", async () => {
      await world.renew({ spending: { turnsPersonMinute: 2 } });
      const event = await world.ask("0");
      await edit(event, "1");
      await edit(event, "2");
      await world.settled();
      expect(replies()).toEqual(["finished: you said: 2"]);
      await edit(event, "3");
      await world.settled();
      expect(world.platform.replies).toHaveLength(1);
      expect(world.platform.replies[0]?.state).toBe("failed");
      expect(world.platform.replies[0]?.failure?.text).toMatch(/minute|too many|often/i);
      expect((await world.log())[0]).toBe("user: 3");
      expect(JSON.stringify(await world.log())).not.toContain("you said: 2");
      expect(world.gateway.requests).toHaveLength(2);
    });

    it("counts once where an outage ends its first attempts, and not where a message of a burst goes", async () => {
      await world.renew({ spending: { turnsPersonMinute: 3 } });
      const event = await world.ask("0");
      world.platform.failToShow(new ParleyError("platform-unreachable", "away"));
      await edit(event, "1");
      await world.clock.advance(30_000);
      world.platform.failToShow(undefined);
      await world.settled();
      expect(replies()).toEqual(["finished: you said: 1"]);
      const burst = [message("one"), message("two")];
      await world.leaveBegun(burst);
      const keys = [burst[0]!.key];
      await world.assistant.changed({ kind: "delete-messages", conversationId: event.conversationId, keys });
      await world.settled();
      expect(replies().at(-1)).toBe("finished: you said: two");
      // One more request of this minute is left.
      expect(await world.assistant.receive(message("three"))).toBe("accepted");
      await expect(world.assistant.receive(message("four"))).rejects.toMatchObject({ code: "rate-limited" });
      await world.settled();
    });

    it("of somebody who may not use it any more changes the history only", async () => {
      const event = await world.ask("0", {
        origin: { user: "fake:user:ada", isMember: true, isManager: false },
      });
      const later = world.restart({ rules: { deny: ["fake:user:ada"] } });
      await later.changed(editOf(event, "1"));
      await world.settled();
      expect(await world.log()).toEqual(["user: 1", "assistant: you said: 0"]);
    });
  });

  describe("an edited question survives", () => {
    it("the end of the process right after it was taken in", async () => {
      const event = await world.ask("my secret");
      await editElsewhere(world.store.inbox, event, "harmless");
      expect(await world.recover(world.restart())).toBe(1);
      expect(await world.store.inbox.open()).toEqual([]);
      expect(replies()).toEqual(["finished: you said: harmless"]);
      expect(await world.log()).toEqual(["user: harmless", "assistant: you said: harmless"]);
    });

    it("the end of the process while the earlier form is answered", async () => {
      const event = message("my secret");
      await world.leaveBegun([event]);
      await editElsewhere(world.store.inbox, event, "harmless");
      expect(await world.recover(world.restart())).toBe(1);
      expect(await world.store.inbox.open()).toEqual([]);
      expect(replies()).toEqual(["finished: you said: harmless"]);
    });

    it("an answer of another process to the earlier form: it runs again", async () => {
      const { inbox } = world.store;
      const write = inbox.write.bind(inbox);
      const event = message("my secret");
      let isEdited = false;
      vi.spyOn(inbox, "write").mockImplementation(async (attempt, what) => {
        if (what.kind === "close" && !isEdited) {
          isEdited = true;
          await editElsewhere(inbox, event, "harmless");
        }
        return await write(attempt, what);
      });
      await world.answered(event);
      await vi.waitFor(async () => expect(await world.store.inbox.open()).toEqual([]));
      expect(await world.log()).toEqual(["user: harmless", "assistant: you said: harmless"]);
      expect(world.platform.replies).toHaveLength(1);
    });

    it("a store that is unavailable: it is not taken in, and may be delivered again", async () => {
      const event = await world.ask("0");
      const change = editOf(event, "1");
      vi.spyOn(world.store.inbox, "change").mockRejectedValueOnce(
        new ParleyError("store-unavailable", "away"),
      );
      await expect(world.assistant.changed(change)).rejects.toMatchObject({
        code: "store-unavailable",
      });
      expect(await world.assistant.changed(change)).toBe("changed");
      await world.settled();
      expect(await world.log()).toEqual(["user: 1", "assistant: you said: 1"]);
    });
  });
});

describe("edits and dead processes", () => {
  const world = worldOfEachTest();

  const texts = () => world.platform.replies.map(({ state, text }) => `${state}: ${text}`);

  it("an edit that was being answered when the process died is answered, although people have written since", async () => {
    const event = message("my secret");
    await world.assistant.receive(event);
    await vi.waitFor(async () => expect(await world.store.inbox.open()).toEqual([]));
    await world.settled();
    await editElsewhere(world.store.inbox, event, "harmless");
    // The reply may show half of the new answer by now.
    await beginAgain(world.store.inbox, event);
    await world.store.inbox.accept(message("later"));
    expect(await world.restart().recover("fake")).toBe(2);
    await vi.waitFor(async () => expect(await world.store.inbox.open()).toEqual([]), { timeout: 5000 });
    await world.settled();
    expect(texts()).toEqual(["finished: you said: harmless", "finished: you said: later"]);
  });

  it("an edit whose answer failed too often is sealed, and can be retried", async () => {
    const event = message("my secret");
    await world.assistant.receive(event);
    await vi.waitFor(async () => expect(await world.store.inbox.open()).toEqual([]));
    await world.settled();
    await editElsewhere(world.store.inbox, event, "harmless");
    for (let n = 0; n < 4; n++) await beginAgain(world.store.inbox, event);
    const restarted = world.restart();
    await restarted.recover("fake");
    await vi.waitFor(async () => expect(await world.store.inbox.open()).toEqual([]));
    await world.settled();
    const reply = world.platform.replies.at(-1)!;
    expect(reply).toMatchObject({ state: "failed", failure: { retryKey: event.key } });
    const log = () => world.store.conversations.recent("fake:c1", { maxMessages: 9 });
    expect((await log()).map(({ outcome }) => outcome)).toEqual([undefined, "failed"]);

    expect(await restarted.press({ kind: "retry", key: event.key }, event)).toEqual({ kind: "done" });
    await vi.waitFor(async () => expect(await world.store.inbox.open()).toEqual([]));
    await world.settled();
    expect(texts().at(-1)).toBe("finished: you said: harmless");
    expect((await log()).map(({ outcome }) => outcome)).toEqual([undefined, "complete"]);
  });
});
