import { beforeEach, describe, expect, it } from "vitest";
import type { Store } from "../../src/conversations/open-store.ts";
import { freshId } from "../support/store-samples.ts";
import { describeStores } from "../support/stores.ts";

describeStores("the order of work", (current) => {
  let store: Store;
  beforeEach(async () => {
    store = await current().open();
  });

  describe("claims", () => {
    it("are one process's at a time until they end; where none is beside it, always", async () => {
      const { claims } = store;
      for (const name of ["a", "b"]) expect(await claims.claim(name, 60_000)).toBe(true);
      expect(await claims.claim("a", 60_000)).toBe(!claims.isShared);
      await claims.claim("c", 1);
      await expect.poll(() => claims.claim("c", 60_000)).toBe(true);
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
});
