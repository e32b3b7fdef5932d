import { afterEach, beforeEach, expect, it } from "vitest";
import { openStore, type Store } from "../../src/conversations/open-store.ts";
import { openRawStore } from "../support/raw-store.ts";
import { silentLog } from "../support/silent-log.ts";
import { eventOf } from "../support/store-samples.ts";
import { describeStores } from "../support/stores.ts";

const dayMs = 24 * 60 * 60 * 1000;

describeStores("answered turns that people may steer later", (current, kind) => {
  // Servers go by their own clocks.
  const only = kind === "sqlite" ? it : () => {};
  let store: Store;
  beforeEach(() => open());
  afterEach(() => store.close());

  async function open(retentionDays = 0): Promise<void> {
    store = await openStore(current().url, { log: silentLog, retentionDays });
  }

  /** Removes what expires within so many days. */
  async function pass(days: number): Promise<void> {
    await store.sweep(Date.now() + days * dayMs);
  }

  const turnOf = (keys: readonly string[]) => ({ keys, address: { message: "7" }, attempts: 1 });

  async function answered(keys: readonly string[], conversationId = "test:1"): Promise<void> {
    for (const key of keys) await store.inbox.accept(eventOf(key, conversationId));
    await store.inbox.claimTurn(turnOf(keys));
    expect(await store.inbox.close(keys, { attempts: 1 })).toBe(true);
  }

  const known = async (...keys: string[]) => (await store.inbox.lookUp(keys)).map(({ event }) => event.key);

  it("stay known as long as messages are kept: the last of each conversation, with all its events", async () => {
    await answered(["a", "b"]);
    await answered(["lone"], "lone");
    await pass(400);
    expect(await known("a", "b", "lone")).toEqual(["a", "b", "lone"]);
    expect(await store.inbox.redo("a", { kind: "regenerate" })).toMatchObject({
      others: [{ key: "b" }],
      turn: turnOf(["a", "b"]),
    });
    expect((await store.inbox.listOpen()).map(({ event }) => event.key)).toEqual(["a", "b"]);
  });

  only("are known for a day once a later message is answered", async () => {
    for (let turn = 0; turn < 60; turn++) await answered([`k${turn}`]);
    expect(await known("k0", "k58", "k59")).toEqual(["k0", "k58", "k59"]);
    await pass(2);
    expect(await known(...Array.from({ length: 60 }, (_, turn) => `k${turn}`))).toEqual(["k59"]);
    const raw = await openRawStore(current().url);
    const entries = await raw.all();
    for (const index of ["answered-events-in:test:1", "answered-events-by:test:ann"])
      expect(await raw.countMembers(index)).toBe(1);
    await raw.close();
    expect(entries.filter(([space]) => space === "inbox" || space === "turn")).toHaveLength(2);
    await answered(["last"]);
    await pass(2);
    expect(await known("k59", "last")).toEqual(["last"]);
  });

  it("outlive commands after them, and edits of earlier messages", async () => {
    await answered(["earlier"]);
    await answered(["a"]);
    const call = {
      ...eventOf("c", "test:1"),
      kind: "call",
      name: "models",
      options: {},
      isPrivate: false,
      inConversation: true,
    };
    const { text: _, attachments: __, ...event } = call;
    await store.inbox.accept(event as never);
    await store.inbox.close(["c"]);
    const edited = { ...eventOf("earlier", "test:1"), text: "other words" };
    expect(await store.inbox.edit(edited, { at: 1, attemptsBefore: 1 })).toBe("edited");
    expect(await store.inbox.close(["earlier"], { edits: new Map([["earlier", 1]]) })).toBe(true);
    await pass(400);
    expect(await known("a")).toEqual(["a"]);
  });

  only("are kept as long as their question is, however often they are answered anew", async () => {
    await store.close();
    await open(30);
    await answered(["a"]);
    await pass(29);
    expect(await known("a")).toEqual(["a"]);
    await pass(31);
    expect(await known("a")).toEqual([]);
  });

  it("are erased with their conversation, and with what their author wrote", async () => {
    await answered(["a"]);
    await answered(["b"], "test:2");
    await pass(400);
    await store.erasure.deleteConversation("test:1");
    expect(await known("a", "b")).toEqual(["b"]);
    await store.erasure.forgetAuthor(undefined, "test:ann");
    expect(await known("b")).toEqual([]);
    expect(await store.inbox.redo("a", { kind: "regenerate" })).toBe("gone");
    await store.erasure.deleteConversation("test:2");
    const raw = await openRawStore(current().url);
    expect(JSON.stringify(await raw.all())).not.toContain("text of");
    expect(await raw.countMembers("expiring-indexes")).toBe(0);
    await raw.close();
  });
});
