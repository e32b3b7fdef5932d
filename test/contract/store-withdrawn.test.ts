import { afterEach, beforeEach, expect, it } from "vitest";
import { openStore, type Store } from "../../src/conversations/open-store.ts";
import { silentLog } from "../support/silent-log.ts";
import { eventOf } from "../support/store-samples.ts";
import { describeStores } from "../support/stores.ts";

describeStores("withdrawn events", (current) => {
  let store: Store;
  beforeEach(async () => {
    store = await openStore(current().url, { log: silentLog });
  });
  afterEach(async () => {
    await store.close();
  });
  const openKeys = async () => (await store.inbox.listOpen()).map(({ event }) => event.key);
  const turnOf = (keys: readonly string[], attempts = 1) => ({ keys, address: { message: "7" }, attempts });

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
    expect(entry).toMatchObject({ turn: turnOf(["a"]), isWithdrawn: true, event: { text: "" } });
    expect(entry?.event).toMatchObject({ platform: event.platform, conversationId: "test:1" });
    expect(await store.inbox.lookUp(["a"])).toEqual([]);
    expect(await store.inbox.accept(event)).toBe("duplicate");
    expect(await store.inbox.refuse("a")).toBe("refused");
    expect(await store.inbox.reopen("a")).toBeUndefined();
    await store.inbox.close(["a"]);
    expect(await openKeys()).toEqual([]);
    expect(await store.inbox.accept(event)).toBe("duplicate");
  });

  it("that are claimed with others after that do not keep the others from being answered", async () => {
    for (const key of ["a", "b"]) await store.inbox.accept(eventOf(key, "test:1"));
    await store.inbox.withdraw(["a"], { keepsReplies: true });
    // A process that had read them before, and dies.
    await store.inbox.claimTurn(turnOf(["a", "b"]));
    if (await store.inbox.claimTurn(turnOf(["b"]))) return expect(store.queue.isShared).toBe(false);
    const [entry] = await store.inbox.listOpenIn("test:1");
    expect(entry?.turn).toMatchObject({ keys: ["b"], attempts: 1 });
    expect(await store.inbox.claimTurn(turnOf(["b"], 2))).toBe(true);
  });

  it("and all others are not closed by an attempt that is not the last", async () => {
    await store.inbox.accept(eventOf("a", "test:1"));
    for (const attempts of [1, 2]) await store.inbox.claimTurn(turnOf(["a"], attempts));
    expect(await store.inbox.close(["a"], { attempts: 1 })).toBe(!store.queue.isShared);
    expect(await openKeys()).toEqual(store.queue.isShared ? ["a"] : []);
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
