import { randomUUID } from "node:crypto";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { StoredMessage } from "../../src/core/storage.ts";
import { openStore, type Store } from "../../src/conversations/open-store.ts";
import { silentLog } from "../support/silent-log.ts";
import { holds } from "../support/store-bytes.ts";
import { eventOf, messageOf } from "../support/store-samples.ts";
import { describeStores } from "../support/stores.ts";

describeStores("edits", (current) => {
  let store: Store;
  beforeEach(async () => {
    store = await openStore(current().url, { log: silentLog });
  });
  afterEach(async () => {
    await store.close();
  });
  const openKeys = async () => (await store.inbox.listOpen()).map(({ event }) => event.key);
  const turnOf = (keys: readonly string[], attempts = 1) => ({ keys, address: { message: "7" }, attempts });
  const edited = (key: string, text: string) => ({ ...eventOf(key, "test:1"), text });
  const entryOf = async (key: string) => (await store.inbox.lookUp([key]))[0];

  describe("of accepted messages", () => {
    it("replace what waits, and nothing of it stays", async () => {
      const secret = `secret ${randomUUID()}`;
      await store.inbox.accept(edited("a", secret));
      await store.inbox.accept(edited("b", "later"));
      expect(await store.inbox.edit(edited("a", "harmless"), { at: 5000, attemptsBefore: 0 })).toBe("edited");
      const open = await store.inbox.listOpenIn("test:1");
      expect(open.map(({ event }) => event)).toMatchObject([
        { key: "a", text: "harmless", edit: { at: 5000, count: 1, attemptsBefore: 0 } },
        { key: "b", text: "later" },
      ]);
      expect(open[0]).not.toHaveProperty("wasAnswered");
      expect(holds(await current().bytes(), secret)).toBe(false);
    });

    it("in another order than they were made keep the latest; the same one twice is one", async () => {
      await store.inbox.accept(edited("a", "one"));
      expect(await store.inbox.edit(edited("a", "three"), { at: 3000, attemptsBefore: 0 })).toBe("edited");
      expect(await store.inbox.edit(edited("a", "two"), { at: 2000, attemptsBefore: 0 })).toBe("unchanged");
      expect(await store.inbox.edit(edited("a", "three"), { at: 3000, attemptsBefore: 0 })).toBe("unchanged");
      expect(await store.inbox.edit(edited("a", "four"), { at: 4000, attemptsBefore: 0 })).toBe("edited");
      expect(await entryOf("a")).toMatchObject({ event: { text: "four", edit: { at: 4000, count: 2 } } });
    });

    it("at the same time in any number end with the latest", async () => {
      await store.inbox.accept(edited("a", "0"));
      const times = Array.from({ length: 12 }, (_, n) => ((n * 5) % 12) + 1);
      await Promise.all(times.map((at) => store.inbox.edit(edited("a", `${at}`), { at, attemptsBefore: 0 })));
      expect(await entryOf("a")).toMatchObject({ event: { text: "12", edit: { at: 12 } } });
    });

    it("of a command leave it as it was until it is closed; then nothing of it stays", async () => {
      const secret = `secret ${randomUUID()}`;
      const { text: _text, attachments: _files, ...base } = eventOf("a", "test:1");
      const call = {
        ...base,
        kind: "call" as const,
        name: "ask",
        options: { prompt: secret },
        inConversation: true,
        isPrivate: false,
      };
      await store.inbox.accept(call);
      await store.inbox.claimTurn(turnOf(["a"]));
      await store.inbox.stop(["a"], "Ada");
      const changed = { ...call, editedTo: { text: "harmless" } };
      expect(await store.inbox.edit(changed, { at: 5000, attemptsBefore: 1 })).toBe("edited");
      expect(await entryOf("a")).toMatchObject({
        event: { options: { prompt: secret }, editedTo: { text: "harmless" }, edit: { count: 1 } },
        stoppedBy: "Ada",
      });
      // A run that has not seen the edit.
      expect(await store.inbox.close(["a"], { attempts: 1, edits: new Map([["a", 0]]) })).toBe(false);
      expect(await store.inbox.close(["a"], { attempts: 1, edits: new Map([["a", 1]]) })).toBe(true);
      expect(await entryOf("a")).toBeUndefined();
      expect(await store.inbox.accept(call)).toBe("duplicate");
      expect(await openKeys()).toEqual([]);
      await expect.poll(async () => holds(await current().bytes(), secret), { timeout: 20_000 }).toBe(false);
    });

    it("open an answered one again, with its turn, until it is closed", async () => {
      const secret = `secret ${randomUUID()}`;
      await store.inbox.accept(edited("a", secret));
      await store.inbox.claimTurn(turnOf(["a"]));
      await store.inbox.close(["a"], { attempts: 1 });
      expect(await store.inbox.edit(edited("a", "harmless"), { at: 5000, attemptsBefore: 0 })).toBe("edited");
      expect(await entryOf("a")).toMatchObject({
        wasAnswered: true,
        turn: turnOf(["a"]),
        event: { text: "harmless", edit: { attemptsBefore: 1 } },
      });
      expect(await openKeys()).toEqual(["a"]);
      expect(holds(await current().bytes(), secret)).toBe(false);
      expect(await store.inbox.edit(edited("a", "again"), { at: 6000, attemptsBefore: 0 })).toBe("edited");
      expect(await entryOf("a")).toMatchObject({ wasAnswered: true, event: { edit: { count: 2 } } });
      expect(await store.inbox.close(["a"], { edits: new Map([["a", 2]]) })).toBe(true);
      expect(await openKeys()).toEqual([]);
      expect(await store.inbox.reopen("a")).not.toHaveProperty("wasAnswered");
      expect(await store.inbox.accept(edited("a", secret))).toBe("duplicate");
    });

    it("survive the process, and are not closed by a run that answered the earlier form", async () => {
      await store.inbox.accept(edited("a", "one"));
      await store.inbox.accept(edited("b", "other"));
      await store.inbox.claimTurn(turnOf(["a", "b"]));
      await store.inbox.edit(edited("b", "two"), { at: 2000, attemptsBefore: 0 });
      expect(await store.inbox.close(["a", "b"], { attempts: 1, edits: new Map() })).toBe(false);
      expect(await openKeys()).toEqual(["a", "b"]);
      await store.close();
      store = await openStore(current().url, { log: silentLog });
      expect(await entryOf("b")).toMatchObject({ event: { text: "two" } });
      expect(await store.inbox.close(["a", "b"], { attempts: 1, edits: new Map([["b", 1]]) })).toBe(true);
      expect(await openKeys()).toEqual([]);
    });

    it("bring nothing back that was erased, refused or never accepted", async () => {
      await store.inbox.accept(edited("a", "one"));
      await store.inbox.withdraw(["a"]);
      await store.inbox.refuse("b");
      for (const key of ["a", "b", "c"])
        expect(await store.inbox.edit(edited(key, "secret words"), { at: 5000, attemptsBefore: 0 })).toBe(
          "unknown",
        );
      expect(await openKeys()).toEqual([]);
      expect(holds(await current().bytes(), "secret words")).toBe(false);
    });
  });

  describe("of stored messages", () => {
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
});
