import { randomBytes } from "node:crypto";
import { afterAll, beforeAll, describe, expect, it, onTestFinished, vi } from "vitest";
import { isParleyError } from "../../src/core/errors.ts";
import { backendOf } from "../../src/conversations/backends.ts";
import { openStore, type Store, type StoreOptions } from "../../src/conversations/open-store.ts";
import { createManualClock } from "../support/manual-clock.ts";
import { silentLog } from "../support/silent-log.ts";
import { eventOf, freshId, messageOf } from "../support/store-samples.ts";
import { deletionOf, openKeys } from "../support/turn-steps.ts";
import { loopTime } from "../support/loop-time.ts";

/** A server that can be stopped while a store is open on it. */
export interface StoreServer {
  readonly url: string;
  pause(): Promise<void>;
  resume(): Promise<void>;
  kill(): Promise<void>;
  start(): Promise<void>;
}

const leaseMs = 400;

/** Describes what a store on a server promises to several instances, and while the server fails. */
export function storeServerContract(current: () => StoreServer): void {
  const open = async (options: Partial<StoreOptions> = {}) => {
    const store = await openStore(current().url, { log: silentLog, leaseMs, ...options });
    onTestFinished(() => store.close());
    return store;
  };
  const whenUp = (store: Store) => vi.waitFor(() => store.ping(), { timeout: 10_000, interval: 20 });

  it("that hangs is an error within the deadline, and works again when it continues", async () => {
    const store = await open({ deadlineMs: 300 });
    const id = freshId();
    await store.conversations.append(id, messageOf("before"));
    await current().pause();
    const began = loopTime();
    const unavailable = { code: "store-unavailable" };
    await expect(store.conversations.recent(id, { maxMessages: 1 })).rejects.toMatchObject(unavailable);
    await expect(store.inbox.accept(eventOf(freshId()))).rejects.toMatchObject(unavailable);
    expect(loopTime() - began).toBeLessThan(3000);
    await current().resume();
    await whenUp(store);
    expect(await store.conversations.append(id, messageOf("after"))).toBe("appended");
    expect(await store.conversations.recent(id, { maxMessages: 9 })).toHaveLength(2);
  });

  it("that is down is an error of writes and reads, never an empty result, and ends the turns that it held", async () => {
    const store = await open();
    const [id, key] = [freshId(), freshId()];
    await store.conversations.append(id, messageOf("before"));
    await store.inbox.accept(eventOf(key));
    const { hash } = await store.conversations.putBlob(id, randomBytes(100), "image/png");
    const lost = store.queue.run(freshId(), async (signal) => {
      await current().kill();
      await expectOutage(store, { id, key, hash });
      await new Promise((resolve) => signal.addEventListener("abort", resolve, { once: true }));
      await current().start();
      return signal.reason as unknown;
    });
    expect(await lost).toMatchObject({ code: "store-unavailable" });
    await whenUp(store);
    expect(await store.conversations.append(id, messageOf("after"))).toBe("appended");
    const kept = await store.conversations.recent(id, { maxMessages: 9 });
    expect(kept.map((message) => message.id)).toEqual(["before", "after"]);
    expect(await openKeys(store.inbox)).toContain(key);
    expect(await store.queue.run(freshId(), async () => "goes on")).toBe("goes on");
  });

  it("that is killed while it is written to loses no acknowledged message", async () => {
    const store = await open({ deadlineMs: 1000 });
    const id = freshId();
    const acknowledged: string[] = [];
    const end = new AbortController();
    const writer = (async () => {
      for (let n = 0; !end.signal.aborted; n++) {
        const message = messageOf(`m${n}`);
        // It is retried under the same id, as a turn is.
        await vi.waitFor(() => store.conversations.append(id, message), { timeout: 20_000, interval: 20 });
        acknowledged.push(message.id);
      }
    })();
    for (const reached of [30, 60]) {
      await vi.waitUntil(() => acknowledged.length >= reached, { timeout: 20_000, interval: 5 });
      await current().kill();
      await current().start();
    }
    end.abort();
    await writer;
    const kept = await store.conversations.recent(id, { maxMessages: 100_000 });
    expect(kept.map((message) => message.id)).toEqual(acknowledged);
  });

  describe("between instances", () => {
    let stores: readonly Store[];
    beforeAll(async () => {
      const options = { log: silentLog, leaseMs: 15_000 };
      stores = await Promise.all([1, 2, 3].map(() => openStore(current().url, options)));
    });
    afterAll(async () => {
      for (const store of stores) await store.close();
    });

    it("accepts an event once", async () => {
      const key = freshId();
      const answers = await Promise.all(
        stores.flatMap((store) => [store, store]).map((s) => s.inbox.accept(eventOf(key))),
      );
      expect(answers.filter((answer) => answer === "accepted")).toHaveLength(1);
    });

    it("never runs two turns of a conversation at once", async () => {
      const id = freshId();
      let running = 0;
      let most = 0;
      let done = 0;
      const turn = async () => {
        running++;
        most = Math.max(most, running);
        // This gives the other instances the time to try.
        for (let n = 0; n < 5; n++) await Promise.all(stores.map((store) => store.ping()));
        running--;
        done++;
      };
      await Promise.all(stores.flatMap((store) => [1, 2].map(() => store.queue.run(id, turn))));
      expect({ most, done }).toEqual({ most: 1, done: 6 });
    });

    it("frees the lease of a holder that died or was paused, which ends its work when it goes on", async () => {
      // Its time stands still, so that it renews nothing.
      const clock = createManualClock();
      const [holder, store] = await Promise.all([open({ clock }), open()]);
      const id = freshId();
      const begun = Promise.withResolvers<void>();
      const lost = holder.queue.run(id, async (signal) => {
        const aborted = new Promise((resolve) => signal.addEventListener("abort", resolve, { once: true }));
        begun.resolve();
        await aborted;
        return "lost";
      });
      await begun.promise;
      await store.queue.run(id, async () => {
        await clock.advance(leaseMs);
        expect(await lost).toBe("lost");
      });
    });

    it("extends a lease for its holder alone", async () => {
      const { backend } = await backendOf(current().url).open(current().url, { log: silentLog });
      onTestFinished(() => backend.close());
      const name = freshId();
      expect(await backend.lease(name, "one", leaseMs)).toBe(true);
      expect(await backend.lease(name, "two", 60_000)).toBe(false);
      expect(await backend.lease(name, "one", 60_000)).toBe(true);
      await new Promise((resolve) => setTimeout(resolve, leaseMs));
      expect(await backend.lease(name, "two", leaseMs)).toBe(false);
      await backend.lease(name, "two", "release");
      expect(await backend.lease(name, "two", leaseMs)).toBe(false);
      await backend.lease(name, "one", "release");
      expect(await backend.lease(name, "two", leaseMs)).toBe(true);
    });
  });
}

/** Expects each operation to report an outage, or the truth. `key` is an open event's, `hash` a blob's. */
export async function expectOutage(
  store: Store,
  { id, key, hash }: { readonly id: string; readonly key: string; readonly hash: string },
): Promise<void> {
  const { conversations, inbox } = store;
  const writes = {
    append: () => conversations.append(id, messageOf("meanwhile")),
    saveSettings: () => conversations.saveSettings(id, { model: "m" }),
    putBlob: () => conversations.putBlob(id, randomBytes(100), "image/png"),
    accept: () => inbox.accept(eventOf(freshId())),
    change: () => inbox.change(deletionOf(key)),
    refuse: () => inbox.refuse(freshId()),
  };
  // They run at once, since each may wait for long.
  const outcomes = await Promise.all(Object.values(writes).map((write) => codeOf(write())));
  expect(outcomes).toEqual(Object.keys(writes).map(() => "store-unavailable"));
  const reads = {
    recent: async () => (await conversations.recent(id, { maxMessages: 5 })).length,
    find: async () => ((await conversations.find(id, "before")) === undefined ? 0 : 1),
    existing: async () => (await conversations.existing([id])).length,
    list: async () => (await store.lists.list(id, { max: 1 })).length,
    getBlob: async () => ((await conversations.getBlob(id, hash)) === undefined ? 0 : 1),
    listOpen: async () => (await inbox.open()).filter(({ event }) => event.key === key).length,
    read: async () => (await inbox.read([key])).length,
  };
  for (const [name, read] of Object.entries(reads))
    expect(["store-unavailable", 1], name).toContain(await codeOf(read()));
}

/** Returns the code of the error that `work` throws, or its result. */
async function codeOf(work: Promise<unknown>): Promise<unknown> {
  try {
    return await work;
  } catch (error) {
    return isParleyError(error) ? error.code : String(error);
  }
}
