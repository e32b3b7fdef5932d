import { spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { afterAll, describe, expect, it, onTestFinished, vi } from "vitest";
import { openStore, type Store, type StoreOptions } from "../../src/conversations/open-store.ts";
import { silentLog } from "../support/silent-log.ts";
import { eventOf, freshId, messageOf } from "../support/store-samples.ts";

/** A server that can be stopped while a store is open on it. */
export interface StoreServer {
  readonly url: string;
  pause(): Promise<void>;
  resume(): Promise<void>;
  kill(): Promise<void>;
  start(): Promise<void>;
}

const leaseMs = 1500;

/** What every store on a server promises to several instances, and while the server fails. Within a `describe`. */
export function storeServerContract(current: () => StoreServer): void {
  const opened: Store[] = [];
  const open = async (options: Partial<StoreOptions> = {}) => {
    const store = await openStore(current().url, { log: silentLog, leaseMs, deadlineMs: 1000, ...options });
    opened.push(store);
    return store;
  };
  afterAll(async () => {
    for (const store of opened) await store.close();
  });

  it("that hangs is an error within the deadline, and works again when it continues", async () => {
    const store = await open();
    const id = freshId();
    await store.conversations.append(id, messageOf("before"));
    await current().pause();
    const began = performance.now();
    await expect(store.conversations.recent(id, { maxMessages: 1 })).rejects.toMatchObject({
      code: "store-unavailable",
    });
    await expect(store.inbox.accept(eventOf(freshId()))).rejects.toMatchObject({ code: "store-unavailable" });
    expect(performance.now() - began).toBeLessThan(5000);
    await current().resume();
    await vi.waitFor(() => store.ping(), { timeout: 10_000, interval: 50 });
    expect(await store.conversations.append(id, messageOf("after"))).toBe("appended");
    expect(await store.conversations.recent(id, { maxMessages: 9 })).toHaveLength(2);
  });

  it("that is killed repeatedly loses no acknowledged message", { timeout: 60_000 }, async () => {
    const store = await open();
    const id = freshId();
    const acknowledged: string[] = [];
    const end = new AbortController();
    const writer = (async () => {
      for (let n = 0; !end.signal.aborted; n++) {
        const message = messageOf(`m${n}`);
        // Retried under the same id, as a turn is.
        await vi.waitFor(() => store.conversations.append(id, message), { timeout: 20_000, interval: 20 });
        acknowledged.push(message.id);
      }
    })();
    for (let round = 0; round < 4; round++) {
      const reached = acknowledged.length + 30;
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
    it("accepts an event once", async () => {
      const stores = await Promise.all([open(), open(), open()]);
      const key = freshId();
      const answers = await Promise.all(
        stores.flatMap((store) => [store, store]).map((s) => s.inbox.accept(eventOf(key))),
      );
      expect(answers.filter((answer) => answer === "accepted")).toHaveLength(1);
    });

    it("never runs two turns of a conversation at once", async () => {
      const stores = await Promise.all([open(), open(), open()]);
      const id = freshId();
      let running = 0;
      let most = 0;
      let done = 0;
      const turn = async () => {
        running++;
        most = Math.max(most, running);
        // Time for the other instances to try.
        for (let n = 0; n < 20; n++) await Promise.all(stores.map((store) => store.ping()));
        running--;
        done++;
      };
      await Promise.all(stores.flatMap((store) => [1, 2, 3].map(() => store.queue.run(id, turn))));
      expect({ most, done }).toEqual({ most: 1, done: 9 });
    });

    it("renews a lease while its holder lives", async () => {
      const shortMs = 800;
      const [one, two] = await Promise.all([open({ leaseMs: shortMs }), open({ leaseMs: shortMs })]);
      const id = freshId();
      const began = performance.now();
      const steps: string[] = [];
      const first = one.queue.run(id, async (signal) => {
        steps.push("begins");
        await vi.waitUntil(() => performance.now() - began > 2.5 * shortMs, { timeout: 5000 });
        steps.push(signal.aborted ? "lost" : "ends");
      });
      await vi.waitUntil(() => steps.length === 1);
      await two.queue.run(id, async () => steps.push("next"));
      await first;
      expect(steps).toEqual(["begins", "ends", "next"]);
    });

    it("frees the lease of a holder that died", async () => {
      const id = freshId();
      const holder = await holdFromChild(current().url, id);
      holder.child.kill("SIGKILL");
      const store = await open();
      const began = performance.now();
      await store.queue.run(id, async () => {});
      expect(performance.now() - began).toBeLessThan(leaseMs + 1000);
    });

    it("aborts the work of a holder that was paused past its lease", async () => {
      const id = freshId();
      const holder = await holdFromChild(current().url, id);
      holder.child.kill("SIGSTOP");
      const store = await open();
      let line = "";
      await store.queue.run(id, async () => {
        holder.child.kill("SIGCONT");
        line = await holder.nextLine();
      });
      expect(line).toBe("lost");
    });

    it("aborts the work of a holder whose lease expired during an outage", { timeout: 30_000 }, async () => {
      const store = await open();
      const run = store.queue.run(freshId(), async (signal) => {
        await current().kill();
        await new Promise((resolve) => signal.addEventListener("abort", resolve, { once: true }));
        await current().start();
        return signal.reason as unknown;
      });
      expect(await run).toMatchObject({ code: "store-unavailable" });
      await vi.waitFor(() => store.ping(), { timeout: 10_000, interval: 50 });
      expect(await store.queue.run(freshId(), async () => "goes on")).toBe("goes on");
    });
  });
}

/** A process that holds the lease of a conversation and prints `lost` when its signal aborts. */
async function holdFromChild(url: string, conversationId: string) {
  const script = fileURLToPath(new URL("store-child.ts", import.meta.url));
  const child = spawn(process.execPath, [script, "lease", url, conversationId, String(leaseMs)], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  onTestFinished(() => void child.kill("SIGKILL"));
  const lines = createInterface({ input: child.stdout });
  const nextLine = async () => String(((await once(lines, "line")) as unknown[])[0]);
  expect(await nextLine()).toBe("leased");
  return { child, nextLine };
}
