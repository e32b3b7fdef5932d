import { expect, it } from "vitest";
import { openStore } from "../../src/conversations/open-store.ts";
import { eventOf, messageOf } from "../support/store-samples.ts";
import { silentLog } from "../support/silent-log.ts";
import { describeStores } from "../support/stores.ts";

describeStores("figures", (current) => {
  it("say how large the store is, and grow with it", async () => {
    const store = await openStore(current().url, { log: silentLog });
    const before = await store.sizeBytes();
    expect(before).toBeGreaterThan(0);
    const text = "x".repeat(100_000);
    for (let index = 0; index < 20; index++)
      await store.conversations.append("test:1", {
        ...messageOf(`m${index}`),
        parts: [{ kind: "text", text }],
      });
    expect(await store.sizeBytes()).toBeGreaterThan(before ?? 0);
    await store.close();
  });

  it("say how long reads and writes took, and whether they failed", async () => {
    const seen = new Set<string>();
    const store = await openStore(current().url, {
      log: silentLog,
      onOperation(operation, outcome, seconds) {
        expect(seconds).toBeGreaterThanOrEqual(0);
        seen.add(`${operation} ${outcome}`);
      },
    });
    await store.inbox.accept(eventOf("k1"));
    await store.conversations.recent("test:1", { maxMessages: 10 });
    expect([...seen].toSorted()).toEqual(["read ok", "write ok"]);
    await store.close();
    await expect(store.inbox.accept(eventOf("k2"))).rejects.toThrow();
    expect([...seen]).toContain("write error");
  });
});
