import { afterEach, beforeEach, expect, it } from "vitest";
import { openStore, type Store } from "../../src/conversations/open-store.ts";
import { silentLog } from "../support/silent-log.ts";
import { eventOf, messageOf } from "../support/store-samples.ts";
import { describeStores } from "../support/stores.ts";

describeStores("turns that people steer", (current) => {
  let store: Store;
  beforeEach(async () => {
    store = await openStore(current().url, { log: silentLog });
  });
  afterEach(async () => {
    await store.close();
  });
  const openKeys = async () => (await store.inbox.listOpen()).map(({ event }) => event.key);
  const turnOf = (keys: readonly string[], attempts = 1) => ({ keys, address: { message: "7" }, attempts });

  async function answered(...keys: string[]): Promise<void> {
    for (const key of keys) await store.inbox.accept(eventOf(key, "test:1"));
    expect(await store.inbox.claimTurn(turnOf(keys))).toBe(true);
    await store.inbox.close(keys);
  }

  it("are reopened whole, once, and stay so until they are closed", async () => {
    await answered("a", "b");
    const [one, two] = await Promise.all([
      store.inbox.redo("a", { kind: "regenerate", model: "m" }),
      store.inbox.redo("a", { kind: "regenerate", model: "m" }),
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
    await store.close();
    store = await openStore(current().url, { log: silentLog });
    const [entry, other] = await store.inbox.listOpenIn("test:1");
    expect(entry).toMatchObject({ redo, turn: turnOf(["a", "b"]) });
    expect(other?.redo).toBeUndefined();
    expect(await store.inbox.claimTurn(turnOf(["a", "b"], 2))).toBe(true);
    await store.inbox.close(["a", "b"], { attempts: 2 });
    expect(await openKeys()).toEqual([]);
    expect((await store.inbox.lookUp(["a"]))[0]?.redo).toBeUndefined();
    expect(await store.inbox.redo("a", { kind: "continue" })).toMatchObject({ redo: { since: 2 } });
  });

  it("are not resumed by a process that learnt of them before another one answered them", async () => {
    const other = await openStore(current().url, { log: silentLog }).catch(() => undefined);
    // SQLite is one process's.
    if (other === undefined) return;
    await store.inbox.accept(eventOf("a", "test:1"));
    expect(await store.inbox.claimTurn(turnOf(["a"]))).toBe(true);
    const [entry] = await other.inbox.listOpen();
    expect(entry?.turn?.attempts).toBe(1);
    expect(await store.inbox.close(["a"], { attempts: 1 })).toBe(true);
    expect(await other.inbox.claimTurn({ ...turnOf(["a"], 2), address: { message: "old" } })).toBe(false);
    expect((await store.inbox.lookUp(["a"]))[0]?.turn).toEqual(turnOf(["a"]));
    await store.inbox.reopen("a");
    expect(await other.inbox.claimTurn(turnOf(["a"], 2))).toBe(true);
    await other.close();
  });

  it("are not reopened while they are open, when they are erased, and when nobody knows them", async () => {
    await store.inbox.accept(eventOf("a", "test:1"));
    expect(await store.inbox.redo("a", { kind: "regenerate" })).toBe("open");
    await store.inbox.withdraw(["a"]);
    expect(await store.inbox.redo("a", { kind: "regenerate" })).toBe("gone");
    expect(await store.inbox.redo("nobody", { kind: "regenerate" })).toBe("gone");
  });

  it("are reopened with an edited question, of which the earlier words are gone", async () => {
    await answered("a");
    const edited = { ...eventOf("a", "test:1"), text: "the new words" };
    await store.inbox.redo("a", { kind: "edit" }, { edited: [edited] });
    expect((await store.inbox.listOpen())[0]?.event).toMatchObject({ text: "the new words" });
  });

  it("are stopped while they are open, by name, also for other processes", async () => {
    await answered("done");
    await store.inbox.accept(eventOf("a", "test:1"));
    expect(await store.inbox.stop(["a", "done", "nobody"], "Ada")).toEqual(["a"]);
    const [entry] = await store.inbox.lookUp(["a"]);
    expect(entry).toMatchObject({ stoppedBy: "Ada" });
    await store.close();
    store = await openStore(current().url, { log: silentLog });
    expect(await store.inbox.listOpenIn("test:1")).toMatchObject([{ event: { key: "a" }, stoppedBy: "Ada" }]);
    await store.inbox.close(["a"]);
    const [closed] = await store.inbox.lookUp(["a"]);
    expect(closed).toMatchObject({ isClosed: true });
    expect(closed?.stoppedBy).toBeUndefined();
  });

  it("are stopped with the words that people saw, until they are closed, edited or withdrawn", async () => {
    const answer = { lead: "> asked", message: { ...messageOf("a/answer", "the first words"), attempt: 1 } };
    await store.inbox.accept(eventOf("a", "test:1"));
    await store.inbox.accept(eventOf("b", "test:1"));
    expect(await store.inbox.stop(["a", "b"], "Ada", answer)).toEqual(["a", "b"]);
    await store.close();
    store = await openStore(current().url, { log: silentLog });
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
    // An attempt of a process that was paused.
    expect(await store.conversations.replace("test:1", answerOf("late", 1))).toBe("refused");
    expect(await store.conversations.find("test:1", "a/answer")).toMatchObject({ attempt: 2 });
    await expect
      .poll(async () => (await current().bytes()).includes("the forgettable first words"), {
        timeout: 20_000,
      })
      .toBe(false);
  });

  it("have an answer appended where there is none, and none where it was erased", async () => {
    expect(await store.conversations.replace("test:1", answerOf("new", 2))).toBe("appended");
    await store.erasure.removeMessages("test:1", { ids: ["a/answer"] });
    expect(await store.conversations.replace("test:1", answerOf("again", 3))).toBe("refused");
    expect(await store.conversations.recent("test:1", { maxMessages: 10 })).toEqual([]);
  });
});
