import { beforeEach, describe, expect, it } from "vitest";
import type { Store } from "../../src/conversations/open-store.ts";
import { eventOf, freshId } from "../support/store-samples.ts";
import { describeStores } from "../support/stores.ts";

const turnOf = (keys: readonly string[], attempts = 1) => ({ keys, address: { message: "7" }, attempts });

describeStores("the inbox", (current) => {
  let store: Store;
  beforeEach(async () => {
    store = await current().open();
  });
  const openKeys = async () => (await store.inbox.listOpen()).map(({ event }) => event.key);
  const keysIn = async (conversationId: string) =>
    (await store.inbox.listOpenIn(conversationId)).map(({ event }) => event.key);

  describe("claims", () => {
    it("are one process's at a time until they end; where none is beside it, always", async () => {
      const { claims } = store;
      for (const name of ["a", "b"]) expect(await claims.claim(name, 60_000)).toBe(true);
      expect(await claims.claim("a", 60_000)).toBe(!claims.isShared);
      await claims.claim("c", 1);
      await expect.poll(() => claims.claim("c", 60_000)).toBe(true);
    });
  });

  describe("inbox", () => {
    it("accepts an event once, also when its deliveries race", async () => {
      const key = freshId();
      const answers = await Promise.all(Array.from({ length: 50 }, () => store.inbox.accept(eventOf(key))));
      expect(answers.filter((answer) => answer === "accepted")).toHaveLength(1);
      expect(answers.filter((answer) => answer === "duplicate")).toHaveLength(49);
    });

    it("lists open events, oldest first, with their turns", async () => {
      const keys = Array.from({ length: 20 }, freshId);
      for (const key of keys) await store.inbox.accept(eventOf(key));
      expect(await openKeys()).toEqual(keys);
      const turn = { keys: keys.slice(0, 2), address: { channel: "c", messages: ["1"] }, attempts: 1 };
      await store.inbox.saveTurn(turn);
      const entry = (await store.inbox.listOpen()).find(({ event }) => event.key === keys[0]);
      expect(entry?.turn).toEqual(turn);
      expect((await store.inbox.listOpenIn("test:inbox"))[0]?.turn).toEqual(turn);
      expect(await keysIn("test:inbox")).toEqual(keys);
      expect(entry?.event).toEqual({ ...eventOf(keys[0] as string), sentAt: entry?.event.sentAt });
      expect(entry?.acceptedAt).toBeGreaterThan(Date.now() - 60_000);
    });

    it("knows what was accepted, closed, refused or withdrawn, and nothing else", async () => {
      for (const key of ["open", "closed", "withdrawn"]) await store.inbox.accept(eventOf(key, "test:1"));
      await store.inbox.close(["closed"]);
      await store.inbox.withdraw(["withdrawn"]);
      await store.inbox.refuse("refused");
      const known = ["open", "closed", "withdrawn", "refused", "new"].map((key) => store.inbox.knows(key));
      expect(await Promise.all(known)).toEqual([true, true, true, true, false]);
    });

    it("returns duplicate for closed events, and lists them no more", async () => {
      const keys = [freshId(), freshId(), freshId()];
      for (const key of keys) await store.inbox.accept(eventOf(key));
      await store.inbox.close(keys.slice(0, 2));
      expect(await openKeys()).toEqual([keys[2]]);
      expect(await store.inbox.isOpen(keys[0] as string)).toBe(false);
      expect(await store.inbox.isOpen(keys[2] as string)).toBe(true);
      expect(await store.inbox.isOpen(freshId())).toBe(false);
      expect(await store.inbox.accept(eventOf(keys[0] as string))).toBe("duplicate");
      expect(await openKeys()).toEqual([keys[2]]);
    });

    it("grants no attempt to a process that has read where the reply was, and not where it is", async () => {
      await store.inbox.accept(eventOf("a", "test:1"));
      expect(await store.inbox.claimTurn(turnOf(["a"]))).toBe(true);
      const [read] = await store.inbox.listOpen();
      const grown = { ...turnOf(["a"]), address: { posted: 1 } };
      expect(await store.inbox.saveTurn(grown, { isDurable: true })).toBe(true);
      expect(await store.inbox.claimTurn({ ...read!.turn!, attempts: 2 })).toBe(false);
      expect((await store.inbox.lookUp(["a"]))[0]?.turn).toEqual(grown);
      expect(await store.inbox.claimTurn({ ...grown, attempts: 2 })).toBe(true);
    });

    it("grants an attempt at an event once", async () => {
      const [one, two] = [freshId(), freshId()];
      for (const key of [one, two]) await store.inbox.accept(eventOf(key));
      const turn = (keys: string[], attempts: number) => ({ keys, address: { at: 1 }, attempts });
      expect(await store.inbox.claimTurn(turn([one, two], 1))).toBe(true);
      expect(await store.inbox.claimTurn(turn([one, two], 1))).toBe(false);
      expect(await store.inbox.claimTurn(turn([two], 1))).toBe(false);
      expect(await store.inbox.saveTurn(turn([one, two], 1))).toBe(true);
      expect(await store.inbox.claimTurn(turn([one, two], 2))).toBe(true);
      // The process of the first attempt was paused.
      expect(await store.inbox.saveTurn(turn([one, two], 1))).toBe(false);
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
      expect(await store.inbox.reopen(key, "retry")).toMatchObject({ event: { key }, others: [], turn });
      expect(await openKeys()).toEqual([key]);
      expect(await store.inbox.reopen(freshId(), "retry")).toBe("gone");
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

  describe("of the inbox by conversation", () => {
    it("follows closed, reopened and withdrawn events", async () => {
      for (const key of ["k1", "k2", "k3"]) await store.inbox.accept(eventOf(key, "test:1"));
      await store.inbox.close(["k1", "k2"]);
      expect(await keysIn("test:1")).toEqual(["k3"]);
      expect(await keysIn("test:11")).toEqual([]);
      await store.inbox.reopen("k1", "retry");
      expect(await keysIn("test:1")).toEqual(["k1", "k3"]);
      await store.inbox.withdraw(["k3", "k1"]);
      expect(await keysIn("test:1")).toEqual([]);
      expect(await store.inbox.accept(eventOf("k3", "test:1"))).toBe("duplicate");
      expect(await keysIn("test:1")).toEqual([]);
    });

    it("takes keys and conversations of any characters", async () => {
      const [key, id] = ["ab😀/%*[x]", "test:😀/%*[x]"];
      await store.inbox.accept(eventOf(key, id));
      expect(await keysIn(id)).toEqual([key]);
      await store.inbox.close([key]);
      expect(await keysIn(id)).toEqual([]);
    });
  });

  describe("withdrawn events", () => {
    it("leave their turn to the other events that it answers", async () => {
      for (const key of ["a", "b", "c"]) await store.inbox.accept(eventOf(key, "test:1"));
      expect(await store.inbox.claimTurn(turnOf(["a", "b", "c"]))).toBe(true);
      await store.inbox.withdraw(["a"], { keepsReplies: true });
      const [entry] = await store.inbox.lookUp(["b"]);
      expect(entry?.turn).toEqual(turnOf(["b", "c"]));
      expect(await openKeys()).toEqual(["b", "c"]);
      expect(await store.inbox.claimTurn(turnOf(["b", "c"], 2))).toBe(true);
      await store.inbox.withdraw(["b"]);
      expect((await store.inbox.lookUp(["c"]))[0]?.turn).toEqual(turnOf(["c"], 2));
      await store.inbox.withdraw(["c"]);
      expect(await openKeys()).toEqual([]);
    });

    it("keep where the reply of a turn that has begun is, until they are closed, and nothing else", async () => {
      const event = { ...eventOf("a", "test:1"), text: "a secret" };
      await store.inbox.accept(event);
      expect(await store.inbox.claimTurn(turnOf(["a"]))).toBe(true);
      await store.inbox.withdraw(["a"], { keepsReplies: true });
      const [entry] = await store.inbox.listOpenIn("test:1");
      expect(entry).toMatchObject({ turn: turnOf(["a"]), state: "withdrawn", event: { text: "" } });
      expect(entry?.event).toMatchObject({ platform: event.platform, conversationId: "test:1" });
      expect(await store.inbox.lookUp(["a"])).toEqual([]);
      expect(await store.inbox.accept(event)).toBe("duplicate");
      expect(await store.inbox.refuse("a")).toBe("duplicate");
      expect(await store.inbox.reopen("a", "retry")).toBe("gone");
      await store.inbox.close(["a"]);
      expect(await openKeys()).toEqual([]);
      expect(await store.inbox.accept(event)).toBe("duplicate");
    });

    it("that are claimed with others after that do not keep the others from being answered", async () => {
      for (const key of ["a", "b"]) await store.inbox.accept(eventOf(key, "test:1"));
      await store.inbox.withdraw(["a"], { keepsReplies: true });
      // This is a process that had read them before.
      expect(await store.inbox.claimTurn(turnOf(["a", "b"]))).toBe(false);
      expect(await store.inbox.claimTurn(turnOf(["b"]))).toBe(true);
    });

    it("and all others are not closed by an attempt that is not the last", async () => {
      await store.inbox.accept(eventOf("a", "test:1"));
      for (const attempts of [1, 2]) await store.inbox.claimTurn(turnOf(["a"], attempts));
      expect(await store.inbox.close(["a"], { attempts: 1 })).toBe(false);
      expect(await openKeys()).toEqual(["a"]);
      expect(await store.inbox.close(["a"], { attempts: 2 })).toBe(true);
      expect(await openKeys()).toEqual([]);
    });

    it("of a turn that has not begun are closed", async () => {
      await store.inbox.accept(eventOf("a", "test:1"));
      await store.inbox.withdraw(["a"], { keepsReplies: true });
      expect(await openKeys()).toEqual([]);
      expect(await store.inbox.listOpenIn("test:1")).toEqual([]);
    });
  });
});
