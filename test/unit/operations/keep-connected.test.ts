import { describe, expect, it } from "vitest";
import { ParleyError, type ErrorCode } from "../../../src/core/errors.ts";
import type { Platform } from "../../../src/core/platform.ts";
import type { ConversationHistory, Receiver } from "../../../src/core/receiver.ts";
import { keepConnected, type Link } from "../../../src/operations/keep-connected.ts";
import { createFakePlatform } from "../../support/fakes.ts";
import { createManualClock } from "../../support/manual-clock.ts";
import { silentLog } from "../../support/silent-log.ts";

/** Starts a platform whose first attempts fail with these errors. */
function connect(failures: ParleyError[]) {
  const clock = createManualClock(0);
  const startedAt: number[] = [];
  let recoveries = 0;
  let stops = 0;
  const health: { state: "connecting" | "ready" } = { state: "connecting" };
  const platform: Platform = {
    ...createFakePlatform().platform,
    async start() {
      startedAt.push(clock.now());
      const failure = failures.shift();
      if (failure !== undefined) throw failure;
    },
    async stop() {
      stops += 1;
    },
    health: () => health,
  };
  const events: string[] = [];
  const link: Link = keepConnected(platform, {
    // The fake platform calls neither.
    assistant: {} as Receiver,
    history: {} as ConversationHistory,
    log: silentLog,
    clock,
    meter: (event) => void events.push(event.kind),
    async onConnected() {
      recoveries += 1;
    },
  });
  return { clock, link, startedAt, events, health, counts: () => ({ recoveries, stops }) };
}

/** This is longer than all attempts of a test. */
const afterAllAttemptsMs = 600_000;

const error = (code: ErrorCode, retryAfterMs?: number): ParleyError =>
  new ParleyError(code, "from the test", retryAfterMs === undefined ? {} : { retryAfterMs });

describe("keepConnected", () => {
  it("retries an unreachable platform with exponential backoff, at least the delay it asks for", async () => {
    const { clock, link, startedAt, counts } = connect([
      error("platform-unreachable"),
      error("platform-unreachable"),
      error("platform-unreachable", 30_000),
    ]);
    await clock.advance(afterAllAttemptsMs);
    await link.connected;
    expect(startedAt).toEqual([0, 1000, 3000, 33_000]);
    expect(counts().recoveries).toBe(1);
  });

  it("waits at most a minute between attempts", async () => {
    const { clock, link, startedAt } = connect(
      Array.from({ length: 9 }, () => error("platform-unreachable")),
    );
    await clock.advance(afterAllAttemptsMs);
    await link.connected;
    expect(startedAt.at(-1)! - startedAt.at(-2)!).toBe(60_000);
  });

  it("rejects at once when the token is refused", async () => {
    const { link, startedAt } = connect([error("platform-unauthorized")]);
    await expect(link.connected).rejects.toMatchObject({ code: "platform-unauthorized" });
    expect(startedAt).toHaveLength(1);
  });

  it("counts each time that it is connected again, and not the first", async () => {
    const { clock, link, events, health } = connect([]);
    for (const state of ["connecting", "ready", "connecting", "ready"] as const) {
      health.state = state;
      await clock.advance(2000);
    }
    expect(events).toEqual(["reconnected"]);
    await link.stop();
    expect(clock.waiting()).toBe(0);
  });

  it("stops retrying when stopped", async () => {
    const { clock, link, startedAt, counts } = connect([error("platform-unreachable")]);
    await clock.advance(500);
    await link.stop();
    await clock.advance(afterAllAttemptsMs);
    await expect(link.connected).rejects.toThrow();
    expect(startedAt).toHaveLength(1);
    expect(counts()).toEqual({ recoveries: 0, stops: 1 });
  });
});
