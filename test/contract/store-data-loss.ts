import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { openStore, type Store, type StoreOptions } from "../../src/conversations/open-store.ts";
import { createMemoryLog } from "../support/memory-log.ts";
import { eventOf, freshId, messageOf } from "../support/store-samples.ts";

/** A server whose data can get lost while a store is open on it. */
export interface LosingServer<Way extends string> {
  readonly url: string;
  lose(way: Way | "emptied"): Promise<void>;
  /** The version that the store says it has. */
  readVersion(): Promise<string | undefined>;
  readonly version: string;
}

const encryptionKeys = [Buffer.alloc(32, 7).toString("base64")];

/** What a store does when its server loses its data. Within a `describe`, with a new server for each test. */
export function storeDataLossContract<Way extends string>(
  ways: readonly Way[],
  current: () => LosingServer<Way>,
): void {
  const opened: Store[] = [];
  const lines: string[] = [];
  beforeEach(() => {
    lines.length = 0;
  });
  afterEach(async () => {
    for (const store of opened.splice(0)) await store.close();
  });
  const open = async (options: Partial<StoreOptions> = {}) => {
    const store = await openStore(current().url, { log: createMemoryLog(lines), leaseMs: 1500, ...options });
    opened.push(store);
    return store;
  };
  const losses = () => lines.filter((line) => /^error \w+ lost its data/.test(line));
  const whenUp = (store: Store) => vi.waitFor(() => store.ping(), { timeout: 10_000, interval: 20 });

  it.each(ways)("that is %s is noticed once by each instance, which then says so", async (how) => {
    const stores = await Promise.all([open(), open()]);
    expect(stores[0].notes().dataLosses).toBe(0);
    await current().lose(how);
    for (const store of stores) {
      await whenUp(store);
      await store.ping();
      expect(await store.findProblems()).toEqual([]);
      expect(store.notes()).toEqual({
        problems: [],
        warnings: [expect.stringMatching(/ lost its data, noticed at 20/)],
        dataLosses: 1,
      });
    }
    expect(losses()).toHaveLength(2);
  });

  it.each(ways)(
    "and is %s keeps what was accepted and not answered, where its reply stands included",
    async (how) => {
      const [one, two] = await Promise.all([open(), open()]);
      const [waiting, running, answered] = [eventOf(freshId()), eventOf(freshId()), eventOf(freshId())];
      for (const event of [waiting, running, answered]) await one.inbox.accept(event);
      const turn = { keys: [running.key], address: { placeholder: "p1" }, attempts: 1 };
      await one.inbox.claimTurn(turn);
      await one.inbox.close([answered.key]);
      await current().lose(how);
      await Promise.all([whenUp(one), whenUp(two)]);
      expect(await two.inbox.listOpen()).toEqual([
        { event: waiting, acceptedAt: expect.any(Number) },
        { event: running, acceptedAt: expect.any(Number), turn },
      ]);
      expect(lines).toContainEqual(expect.stringMatching(/^warn accepted messages .* anew {"events":2}/));
    },
  );

  it("does not drop a message that waits for its turn, although the loss was not noticed yet", async () => {
    const store = await open();
    const event = eventOf(freshId());
    await store.inbox.accept(event);
    await current().lose("emptied");
    expect(await store.inbox.isOpen(event.key)).toBe(true);
    expect(await store.inbox.isOpen(freshId())).toBe(false);
    await store.inbox.close([event.key]);
    expect(await store.inbox.accept(event)).toBe("duplicate");
  });

  it("accepts the next message at once, and keeps those before it", async () => {
    const store = await open();
    const [before, after] = [eventOf(freshId()), eventOf(freshId())];
    await store.inbox.accept(before);
    await current().lose("emptied");
    expect(await store.inbox.accept(after)).toBe("accepted");
    await whenUp(store);
    const listed = (await store.inbox.listOpen()).map(({ event }) => event.key);
    expect(listed.toSorted()).toEqual([before.key, after.key].toSorted());
  });

  it("knows an event whose turn ends after the loss as answered", async () => {
    const store = await open();
    const event = eventOf(freshId());
    await store.inbox.accept(event);
    await current().lose("emptied");
    await store.inbox.close([event.key]);
    expect(await store.inbox.accept(event)).toBe("duplicate");
    await whenUp(store);
    expect(await store.inbox.listOpen()).toEqual([]);
  });

  it("does not bring back what another instance has answered", async () => {
    const [one, two] = await Promise.all([open(), open()]);
    const event = eventOf(freshId());
    await one.inbox.accept(event);
    await two.inbox.close([event.key]);
    await one.inbox.listOpen();
    await current().lose("emptied");
    await whenUp(one);
    expect(await one.inbox.listOpen()).toEqual([]);
  });

  it("restores a turn that an earlier process had accepted and this one resumed", async () => {
    const before = await open();
    const event = eventOf(freshId());
    await before.inbox.accept(event);
    await before.close();
    opened.splice(0);
    const store = await open();
    const [entry] = await store.inbox.listOpen();
    await store.inbox.claimTurn({ keys: [event.key], address: { placeholder: "p" }, attempts: 2 });
    await current().lose("emptied");
    await whenUp(store);
    expect(await store.inbox.listOpen()).toEqual([
      { ...entry, turn: expect.objectContaining({ attempts: 2 }) },
    ]);
  });

  it("has its version and its mark of encryption again, so that the next start accepts it", async () => {
    const store = await open({ encryptionKeys });
    await current().lose("emptied");
    // Before the loss is noticed.
    await store.conversations.append("test:1", messageOf("m"));
    await whenUp(store);
    const next = await open({ encryptionKeys });
    expect(await next.conversations.recent("test:1", { maxMessages: 5 })).toHaveLength(1);
    expect(await current().readVersion()).toBe(current().version);
    expect(lines.filter((line) => line.includes("not encrypted"))).toEqual([]);
  });

  it("is noticed when a turn loses its lease, before the turn is given up", async () => {
    const store = await open();
    const event = eventOf(freshId());
    await store.inbox.accept(event);
    const listed = await store.queue.run("test:inbox", async (signal) => {
      await current().lose("emptied");
      await new Promise((resolve) => signal.addEventListener("abort", resolve, { once: true }));
      return store.inbox.listOpen();
    });
    expect(listed.map((entry) => entry.event.key)).toEqual([event.key]);
    expect(losses()).toHaveLength(1);
  });
}
