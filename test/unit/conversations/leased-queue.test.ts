import { beforeEach, describe, expect, it, vi } from "vitest";
import { ParleyError } from "../../../src/core/errors.ts";
import type { Backend } from "../../../src/conversations/backend.ts";
import { createLeasedQueue } from "../../../src/conversations/leased-queue.ts";
import { createManualClock, type ManualClock } from "../../support/manual-clock.ts";
import { silentLog } from "../../support/silent-log.ts";

const ttlMs = 1000;
let clock: ManualClock;
beforeEach(() => {
  clock = createManualClock();
});

/** Makes a lease service in memory that can fail, and that counts renewals. */
function createFakeLeases() {
  const held = new Map<string, { holder: string; until: number }>();
  const state = { isDown: false, renewals: 0, answered: Promise.resolve() };
  const find = (name: string) => {
    const lease = held.get(name);
    return lease !== undefined && lease.until > clock.monotonic() ? lease : undefined;
  };
  const lease: Backend["lease"] = async (name, holder, ttl) => {
    const of = find(name)?.holder;
    if (of === holder && ttl !== "release") state.renewals++;
    if (state.isDown) throw new ParleyError("store-unavailable", "down");
    if (of !== undefined && of !== holder) return false;
    if (ttl === "release") return held.delete(name);
    held.set(name, { holder, until: clock.monotonic() + ttl });
    await state.answered;
    return true;
  };
  return { lease, held, state };
}

describe("the leased queue", () => {
  it("releases the lease, also after failed work", async () => {
    const { lease, held } = createFakeLeases();
    const queue = createLeasedQueue({ lease, log: silentLog, clock, ttlMs });
    await expect(queue.run("c", async () => Promise.reject(new Error("broken turn")))).rejects.toThrow(
      "broken turn",
    );
    expect(held.size).toBe(0);
  });

  it("renews the lease while the work runs, and no longer", async () => {
    const { lease, state } = createFakeLeases();
    const queue = createLeasedQueue({ lease, log: silentLog, clock, ttlMs });
    const gate = Promise.withResolvers<void>();
    const run = queue.run("c", async (signal) => {
      await gate.promise;
      return signal.aborted;
    });
    await clock.advance(10 * ttlMs);
    gate.resolve();
    expect(await run).toBe(false);
    const { renewals } = state;
    expect(renewals).toBeGreaterThan(10);
    await clock.advance(10 * ttlMs);
    expect(state.renewals).toBe(renewals);
  });

  it("survives a short outage, and aborts the work when the lease expires in a long one", async () => {
    const { lease, state } = createFakeLeases();
    const queue = createLeasedQueue({ lease, log: silentLog, clock, ttlMs });
    const gate = Promise.withResolvers<void>();
    let signal: AbortSignal | undefined;
    const run = queue.run("c", async (given) => {
      signal = given;
      await gate.promise;
    });
    await clock.advance(ttlMs);
    state.isDown = true;
    await clock.advance(ttlMs / 2);
    state.isDown = false;
    await clock.advance(2 * ttlMs);
    expect(signal?.aborted).toBe(false);
    state.isDown = true;
    await clock.advance(ttlMs + ttlMs / 4);
    expect(signal?.reason).toMatchObject({ code: "store-unavailable" });
    gate.resolve();
    await run;
  });

  it("aborts the work when another holder has the lease, and leaves that lease alone", async () => {
    const { lease, held } = createFakeLeases();
    const queue = createLeasedQueue({ lease, log: silentLog, clock, ttlMs });
    const gate = Promise.withResolvers<void>();
    let signal: AbortSignal | undefined;
    const run = queue.run("c", async (given) => {
      signal = given;
      await gate.promise;
    });
    await clock.advance(10);
    held.set("c", { holder: "another", until: clock.monotonic() + 60_000 });
    await clock.advance(ttlMs / 2);
    expect(signal?.aborted).toBe(true);
    gate.resolve();
    await run;
    expect(held.get("c")?.holder).toBe("another");
  });

  it("aborts the work when the response to a renewal comes after the lease would have ended", async () => {
    const { lease, state } = createFakeLeases();
    const queue = createLeasedQueue({ lease, log: silentLog, clock, ttlMs });
    const [gate, answered] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
    let signal: AbortSignal | undefined;
    state.answered = clock.sleep(50);
    const run = queue.run("c", async (given) => {
      signal = given;
      await gate.promise;
    });
    await clock.advance(60);
    // Another process may have had it between the end of the lease and the renewal.
    state.answered = answered.promise;
    await clock.advance(ttlMs - 40);
    expect(signal?.aborted).toBe(false);
    answered.resolve();
    await clock.advance(1);
    expect(signal?.aborted).toBe(true);
    gate.resolve();
    await run;
  });

  it("reports an outage before the work begins", async () => {
    const { lease, state } = createFakeLeases();
    state.isDown = true;
    const queue = createLeasedQueue({ lease, log: silentLog, clock, ttlMs });
    const work = vi.fn<() => Promise<void>>();
    await expect(queue.run("c", work)).rejects.toMatchObject({ code: "store-unavailable" });
    expect(work).not.toHaveBeenCalled();
  });

  it("returns at once when another process has the conversation, but waits for its own work", async () => {
    const { lease, held } = createFakeLeases();
    const queue = createLeasedQueue({ lease, log: silentLog, clock, ttlMs });
    const steps: string[] = [];
    const first = queue.run("c", async () => {
      await clock.sleep(100);
      steps.push("own work");
    });
    const second = queue.runUnlessTaken("c", async () => void steps.push("after it"));
    await clock.advance(200);
    await first;
    expect(await second).toBe(true);
    expect(steps).toEqual(["own work", "after it"]);
    held.set("c", { holder: "another", until: clock.monotonic() + 60_000 });
    expect(await queue.runUnlessTaken("c", async () => void steps.push("never"))).toBe(false);
    expect(steps).toHaveLength(2);
  });

  it("once closed, lets running work continue and rejects waiting work", async () => {
    const { lease, held } = createFakeLeases();
    const queue = createLeasedQueue({ lease, log: silentLog, clock, ttlMs });
    held.set("taken", { holder: "another", until: clock.monotonic() + 60_000 });
    const running = queue.run("c", async () => {
      await clock.sleep(500);
      return "ended well";
    });
    const waiting = queue.run("taken", () => Promise.resolve("never"));
    const refused = expect(waiting).rejects.toMatchObject({ code: "stopping" });
    await clock.advance(10);
    queue.close();
    await clock.advance(1000);
    await refused;
    expect(await running).toBe("ended well");
    await queue.idle();
  });
});
