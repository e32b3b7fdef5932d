import { describe, expect, it, onTestFinished } from "vitest";
import { openStore } from "../../src/conversations/open-store.ts";
import { startRedis } from "../support/redis-server.ts";
import { has } from "../support/requirements.ts";
import { silentLog } from "../support/silent-log.ts";
import { eventOf } from "../support/store-samples.ts";

/** Stops this thread, as SIGSTOP or a sleeping machine stops the process. */
function suspend(ms: number): void {
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms);
}

describe.skipIf(!has("redis"))("a process that was suspended while Redis responded", () => {
  it("reads the response that waits in its socket before it calls Redis unavailable", async () => {
    const server = await startRedis();
    const store = await openStore(server.url, { log: silentLog, deadlineMs: 500 });
    onTestFinished(async () => {
      await store.close();
      await server.remove();
    });
    server.pause();
    const accepted = store.inbox.accept(eventOf("test:wake"));
    for (let turn = 0; turn < 20; turn++) await new Promise((resolve) => setImmediate(resolve));
    server.resume();
    suspend(1200);
    expect(await accepted).toBe("accepted");
    // A server that does hang is still an error within the deadline.
    server.pause();
    const began = performance.now();
    await expect(store.ping()).rejects.toMatchObject({ code: "store-unavailable" });
    expect(performance.now() - began).toBeLessThan(1000);
    server.resume();
  });
});
