import { randomUUID } from "node:crypto";
import { beforeEach, describe, expect, it } from "vitest";
import type { Store } from "../../src/conversations/open-store.ts";
import { openRawStore } from "../support/raw-store.ts";
import { holds } from "../support/store-bytes.ts";
import { eventOf, messageOf } from "../support/store-samples.ts";
import { describeStores } from "../support/stores.ts";

const dayMs = 24 * 60 * 60 * 1000;
const turnOf = (keys: readonly string[], attempts = 1) => ({ keys, address: { message: "7" }, attempts });

describeStores("the inbox", (current, kind) => {
  let store: Store;
  beforeEach(async () => {
    store = await current().open();
  });
  const openKeys = async () => (await store.inbox.listOpen()).map(({ event }) => event.key);

  describe("turns that people steer", () => {
    async function answered(...keys: string[]): Promise<void> {
      for (const key of keys) await store.inbox.accept(eventOf(key, "test:1"));
      expect(await store.inbox.claimTurn(turnOf(keys))).toBe(true);
      await store.inbox.close(keys);
    }

    it("are reopened whole, once, and stay so until they are closed", async () => {
      await answered("a", "b");
      const [one, two] = await Promise.all([
        store.inbox.reopen("a", "regenerate", { attempts: 1, model: "m" }),
        store.inbox.reopen("a", "regenerate", { attempts: 1, model: "m" }),
      ]);
      expect([one, two].filter((result) => result === "open")).toHaveLength(1);
      const reopened = one === "open" ? two : one;
      const redo = { kind: "regenerate", model: "m", since: 1, requestedAt: expect.any(Number) as number };
      expect(reopened).toMatchObject({
        event: { key: "a" },
        others: [{ key: "b" }],
        turn: turnOf(["a", "b"]),
        redo,
      });
      expect(await openKeys()).toEqual(["a", "b"]);
      store = await current().reopen();
      const [entry, other] = await store.inbox.listOpenIn("test:1");
      expect(entry).toMatchObject({ redo, turn: turnOf(["a", "b"]) });
      expect(other?.redo).toBeUndefined();
      expect(await store.inbox.claimTurn(turnOf(["a", "b"], 2))).toBe(true);
      await store.inbox.close(["a", "b"], { attempts: 2 });
      expect(await openKeys()).toEqual([]);
      expect((await store.inbox.lookUp(["a"]))[0]?.redo).toBeUndefined();
      expect(await store.inbox.reopen("a", "continue", { attempts: 2 })).toMatchObject({
        redo: { since: 2 },
      });
    });

    it("are retried whole, as they are by then, whether they are open or answered", async () => {
      await answered("a", "b", "c");
      await store.inbox.withdraw(["b"]);
      await store.inbox.edit({ ...eventOf("c", "test:1"), text: "new words" }, { at: 5, attemptsBefore: 1 });
      const reopened = await store.inbox.reopen("a", "retry");
      const turn = { ...turnOf(["a", "c"]), attempts: 1 };
      expect(reopened).toEqual({
        event: expect.objectContaining({ key: "a" }) as unknown,
        others: [expect.objectContaining({ key: "c", text: "new words" }) as unknown],
        turn,
      });
      const open = [
        { event: { key: "a" }, state: "open", turn },
        { event: { key: "c" }, state: "open" },
      ];
      expect(await store.inbox.listOpenIn("test:1")).toMatchObject(open);
      expect(await store.inbox.stop(["a"], "Ada")).toEqual(["a"]);
      expect(await store.inbox.reopen("a", "confirm")).toMatchObject({ others: [{ key: "c" }], turn });
      expect(await store.inbox.listOpenIn("test:1")).toMatchObject(open);
    });

    it("are not reopened for a press on an earlier attempt, nor while one of their events is open", async () => {
      await answered("a", "b");
      expect(await store.inbox.reopen("a", "regenerate", { attempts: 2 })).toBe("open");
      await store.inbox.edit({ ...eventOf("b", "test:1"), text: "new words" }, { at: 5, attemptsBefore: 1 });
      expect(await store.inbox.reopen("a", "regenerate", { attempts: 1 })).toBe("open");
      expect(await openKeys()).toEqual(["b"]);
    });

    it("are not resumed by a process that learnt of them before another one answered them", async () => {
      const other = await current()
        .open()
        .catch(() => undefined);
      // SQLite belongs to one process.
      if (other === undefined) return;
      await store.inbox.accept(eventOf("a", "test:1"));
      expect(await store.inbox.claimTurn(turnOf(["a"]))).toBe(true);
      const [entry] = await other.inbox.listOpen();
      expect(entry?.turn?.attempts).toBe(1);
      expect(await store.inbox.close(["a"], { attempts: 1 })).toBe(true);
      expect(await other.inbox.claimTurn({ ...turnOf(["a"], 2), address: { message: "old" } })).toBe(false);
      expect((await store.inbox.lookUp(["a"]))[0]?.turn).toEqual(turnOf(["a"]));
      await store.inbox.reopen("a", "retry");
      expect(await other.inbox.claimTurn(turnOf(["a"], 2))).toBe(true);
    });

    it("are not reopened while they are open, when they are erased, and when nobody knows them", async () => {
      await store.inbox.accept(eventOf("a", "test:1"));
      expect(await store.inbox.reopen("a", "regenerate", { attempts: 1 })).toBe("open");
      await store.inbox.withdraw(["a"]);
      expect(await store.inbox.reopen("a", "regenerate", { attempts: 1 })).toBe("gone");
      expect(await store.inbox.reopen("nobody", "regenerate", { attempts: 1 })).toBe("gone");
    });

    it("are reopened with an edited question, of which the earlier words are gone", async () => {
      await answered("a");
      const edited = { ...eventOf("a", "test:1"), text: "the new words" };
      await store.inbox.reopen("a", "edit", { attempts: 1, edited: [edited] });
      expect((await store.inbox.listOpen())[0]?.event).toMatchObject({ text: "the new words" });
    });

    it("are stopped while they are open, by name, also for other processes", async () => {
      await answered("done");
      await store.inbox.accept(eventOf("a", "test:1"));
      expect(await store.inbox.stop(["a", "done", "nobody"], "Ada")).toEqual(["a"]);
      const [entry] = await store.inbox.lookUp(["a"]);
      expect(entry).toMatchObject({ state: "stopping", stoppedBy: "Ada" });
      store = await current().reopen();
      expect(await store.inbox.listOpenIn("test:1")).toMatchObject([
        { event: { key: "a" }, stoppedBy: "Ada" },
      ]);
      await store.inbox.close(["a"]);
      const [closed] = await store.inbox.lookUp(["a"]);
      expect(closed).toMatchObject({ state: "answered" });
      expect(closed?.stoppedBy).toBeUndefined();
    });

    it("are stopped with the words that people saw, until they are closed, edited or withdrawn", async () => {
      const answer = {
        lead: "> asked",
        message: { ...messageOf("a/answer", "the first words"), attempt: 1 },
      };
      await store.inbox.accept(eventOf("a", "test:1"));
      await store.inbox.accept(eventOf("b", "test:1"));
      expect(await store.inbox.stop(["a", "b"], "Ada", answer)).toEqual(["a", "b"]);
      store = await current().reopen();
      const [first, second] = await store.inbox.listOpenIn("test:1");
      expect(first?.stoppedAnswer).toEqual(answer);
      expect(second).toMatchObject({ stoppedBy: "Ada" });
      expect(second?.stoppedAnswer).toBeUndefined();
      await store.inbox.close(["a"]);
      expect((await store.inbox.lookUp(["a"]))[0]?.stoppedAnswer).toBeUndefined();
      await store.inbox.stop(["b"], "Ada", answer);
      const edited = { ...eventOf("b", "test:1"), text: "new" };
      await store.inbox.edit(edited, { at: 5, attemptsBefore: 1 });
      expect((await store.inbox.lookUp(["b"]))[0]?.stoppedAnswer).toBeUndefined();
      await store.inbox.stop(["b"], "Ada", answer);
      await store.inbox.withdraw(["b"], { keepsReplies: true });
      expect(JSON.stringify(await store.inbox.listOpen())).not.toContain("the first words");
    });

    it("keep what was heard in their recordings until they are closed, edited or withdrawn", async () => {
      const usage = { isEstimated: false } as const;
      const answer = { text: "the spoken words", asked: "m", model: "m", usage, notices: [] };
      const heardIn = async (key: string) => (await store.inbox.lookUp([key]))[0]?.heard ?? [];
      for (const key of ["a", "b", "c"]) await store.inbox.accept(eventOf(key, "test:1"));
      for (const key of ["a", "b", "c", "nobody"]) await store.inbox.keepHeard(key, { hash: "1", answer });
      await store.inbox.keepHeard("a", { hash: "2" });
      expect(await store.inbox.claimTurn(turnOf(["a"]))).toBe(true);
      store = await current().reopen();
      expect(await heardIn("a")).toEqual([{ hash: "1", answer }, { hash: "2" }]);
      await store.inbox.close(["a"]);
      await store.inbox.keepHeard("a", { hash: "3", answer });
      expect(await heardIn("a")).toEqual([]);
      const edited = { ...eventOf("b", "test:1"), text: "new" };
      await store.inbox.edit(edited, { at: 5, attemptsBefore: 1 });
      expect(await heardIn("b")).toEqual([]);
      expect(await store.inbox.claimTurn(turnOf(["c"]))).toBe(true);
      await store.inbox.withdraw(["c"], { keepsReplies: true });
      await store.inbox.keepHeard("c", { hash: "4", answer });
      expect(JSON.stringify(await store.inbox.listOpen())).not.toContain("the spoken words");
    });

    const answerOf = (text: string, attempt: number) => ({
      ...messageOf("a/answer", text),
      role: "assistant" as const,
      attempt,
    });

    it("have their answer replaced in its place; the earlier words are gone from the store", async () => {
      await store.conversations.append("test:1", messageOf("q"));
      await store.conversations.append("test:1", answerOf("the forgettable first words", 1));
      await store.conversations.append("test:1", messageOf("later"));
      expect(await store.conversations.replace("test:1", answerOf("second", 2))).toBe("replaced");
      const kept = await store.conversations.recent("test:1", { maxMessages: 10 });
      expect(kept.map(({ parts }) => parts)).toMatchObject([
        [{ text: "words of q" }],
        [{ text: "second" }],
        [{ text: "words of later" }],
      ]);
      // This is an attempt of a process that was paused.
      expect(await store.conversations.replace("test:1", answerOf("late", 1))).toBe("refused");
      expect(await store.conversations.find("test:1", "a/answer")).toMatchObject({ attempt: 2 });
      await expect
        .poll(async () => (await current().bytes()).includes("the forgettable first words"), {
          timeout: 20_000,
        })
        .toBe(false);
    });

    it("have the earlier answer as a version of the new one, of which ten are kept", async () => {
      await store.conversations.append("test:1", answerOf("the first words", 1));
      expect(await store.conversations.replace("test:1", answerOf("second", 2), "version")).toBe("replaced");
      const versions = async () => {
        const found = await store.conversations.find("test:1", "a/answer");
        return found?.versions?.flatMap(({ parts }) => parts.map((part) => "text" in part && part.text));
      };
      expect(await versions()).toEqual(["the first words"]);
      // The process was stopped after it had stored its answer, and stores it once more.
      await store.conversations.replace("test:1", answerOf("second", 2), "version");
      expect(await versions()).toEqual(["the first words"]);
      await store.conversations.replace("test:1", answerOf("second, and on", 3), "continued");
      expect(await versions()).toEqual(["the first words"]);
      for (let attempt = 4; attempt <= 14; attempt++)
        await store.conversations.replace("test:1", answerOf(`words ${attempt}`, attempt), "version");
      expect(await versions()).toEqual(Array.from({ length: 10 }, (_, n) => `words ${n + 4}`));
      await expect
        .poll(async () => holds(await current().bytes(), "the first words"), { timeout: 20_000 })
        .toBe(false);
      await store.conversations.replace("test:1", answerOf("x".repeat(150_000), 15), "version");
      await store.conversations.replace("test:1", answerOf("y".repeat(150_000), 16), "version");
      await store.conversations.replace("test:1", answerOf("last", 17), "version");
      expect((await versions())?.map((text) => String(text).slice(0, 2))).toEqual(["yy"]);
      await store.conversations.replace("test:1", answerOf("to other words", 18));
      expect(await versions()).toBeUndefined();
      await expect.poll(async () => holds(await current().bytes(), "yyyy"), { timeout: 20_000 }).toBe(false);
    });

    it("have an answer appended where there is none, and none where it was erased", async () => {
      expect(await store.conversations.replace("test:1", answerOf("new", 2))).toBe("appended");
      await store.erasure.removeMessages("test:1", { ids: ["a/answer"] });
      expect(await store.conversations.replace("test:1", answerOf("again", 3))).toBe("refused");
      expect(await store.conversations.recent("test:1", { maxMessages: 10 })).toEqual([]);
    });
  });

  describe("edits", () => {
    const edited = (key: string, text: string) => ({ ...eventOf(key, "test:1"), text });
    const entryOf = async (key: string) => (await store.inbox.lookUp([key]))[0];
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
      expect(open[0]?.state).toBe("open");
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
      // This run has not seen the edit.
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
        state: "edited",
        turn: turnOf(["a"]),
        event: { text: "harmless", edit: { attemptsBefore: 1 } },
      });
      expect(await openKeys()).toEqual(["a"]);
      expect(holds(await current().bytes(), secret)).toBe(false);
      expect(await store.inbox.edit(edited("a", "again"), { at: 6000, attemptsBefore: 0 })).toBe("edited");
      expect(await entryOf("a")).toMatchObject({ state: "edited", event: { edit: { count: 2 } } });
      expect(await store.inbox.close(["a"], { edits: new Map([["a", 2]]) })).toBe(true);
      expect(await openKeys()).toEqual([]);
      expect(await store.inbox.reopen("a", "retry")).toMatchObject({ event: { text: "again" } });
      expect(await entryOf("a")).toMatchObject({ state: "open" });
      expect(await store.inbox.accept(edited("a", secret))).toBe("duplicate");
    });

    it("survive the process, and are not closed by a run that answered the earlier form", async () => {
      await store.inbox.accept(edited("a", "one"));
      await store.inbox.accept(edited("b", "other"));
      await store.inbox.claimTurn(turnOf(["a", "b"]));
      await store.inbox.edit(edited("b", "two"), { at: 2000, attemptsBefore: 0 });
      expect(await store.inbox.close(["a", "b"], { attempts: 1, edits: new Map() })).toBe(false);
      expect(await openKeys()).toEqual(["a", "b"]);
      store = await current().reopen();
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

  describe("answered turns that people may steer later", () => {
    // Servers go by their own clocks.
    const only = kind === "sqlite" ? it : () => {};
    /** Removes what expires within so many days. */
    async function pass(days: number): Promise<void> {
      await store.sweep(Date.now() + days * dayMs);
    }

    async function answered(keys: readonly string[], conversationId = "test:1"): Promise<void> {
      for (const key of keys) await store.inbox.accept(eventOf(key, conversationId));
      await store.inbox.claimTurn(turnOf(keys));
      expect(await store.inbox.close(keys, { attempts: 1 })).toBe(true);
    }

    const known = async (...keys: string[]) => (await store.inbox.lookUp(keys)).map(({ event }) => event.key);

    it("stay known for a week, with all its events", async () => {
      await answered(["a", "b"]);
      await answered(["lone"], "lone");
      await pass(6);
      expect(await known("a", "b", "lone")).toEqual(["a", "b", "lone"]);
      expect(await store.inbox.reopen("a", "regenerate", { attempts: 1 })).toMatchObject({
        others: [{ key: "b" }],
        turn: turnOf(["a", "b"]),
      });
      expect((await store.inbox.listOpen()).map(({ event }) => event.key)).toEqual(["a", "b"]);
    });

    only("are gone after a week, and with them their places in lists", async () => {
      for (let turn = 0; turn < 4; turn++) await answered([`k${turn}`]);
      await pass(6);
      expect(await known("k0", "k2", "k3")).toEqual(["k0", "k2", "k3"]);
      await pass(8);
      expect(await known("k0", "k1", "k2", "k3")).toEqual([]);
      const raw = await openRawStore(current().url);
      const entries = await raw.all();
      for (const index of ["answered-events-in:test:1", "answered-events-by:test:ann"])
        expect(await raw.countMembers(index)).toBe(0);
      await raw.close();
      expect(entries.filter(([space]) => space === "inbox" || space === "turn")).toHaveLength(0);
    });

    only("are kept no longer than their question", async () => {
      store = await current().reopen({ retentionDays: 3 });
      await answered(["a"]);
      await pass(2);
      expect(await known("a")).toEqual(["a"]);
      await pass(4);
      expect(await known("a")).toEqual([]);
    });

    it("are erased with their conversation, and with what their author wrote", async () => {
      await answered(["a"]);
      await answered(["b"], "test:2");
      await pass(6);
      await store.erasure.deleteConversation("test:1");
      expect(await known("a", "b")).toEqual(["b"]);
      await store.erasure.forgetAuthor(undefined, "test:ann");
      expect(await known("b")).toEqual([]);
      expect(await store.inbox.reopen("a", "regenerate", { attempts: 1 })).toBe("gone");
      await store.erasure.deleteConversation("test:2");
      const raw = await openRawStore(current().url);
      expect(JSON.stringify(await raw.all())).not.toContain("text of");
      expect(await raw.countMembers("expiring-indexes")).toBe(0);
      await raw.close();
    });
  });
});
