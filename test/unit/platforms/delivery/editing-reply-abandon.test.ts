import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { ParleyError } from "../../../../src/core/errors.ts";
import { createEditingReply } from "../../../../src/platforms/delivery/editing-reply.ts";
import { silentLog } from "../../../support/fakes.ts";
import { createFakeTarget } from "./fake-target.ts";

beforeEach(() => void vi.useFakeTimers());
afterEach(() => {
  vi.restoreAllMocks();
  vi.useRealTimers();
});

const unreachable = () => new ParleyError("platform-unreachable", "no answer");

function setUp() {
  const target = createFakeTarget();
  return {
    target,
    reply: createEditingReply({ target, log: silentLog, saveRefs: () => Promise.resolve() }),
  };
}

describe("a reply that another process may resume", () => {
  for (const how of ["write", "finish"] as const) {
    // Leases last three seconds and more.
    for (const pauseMs of [1100, 2600, 20_000]) {
      for (const isAbandoned of [false, true]) {
        it(`${how}: edits nothing for a second after a suspension of ${pauseMs} ms, ${isAbandoned ? "and nothing more if it is abandoned then" : "then goes on"}`, async () => {
          const { reply, target } = setUp();
          await reply.show();
          reply.write({ text: "Hello" });
          await vi.advanceTimersByTimeAsync(3000);
          const callsBefore = target.calls.length;
          const unpaused = performance.now.bind(performance);
          vi.spyOn(performance, "now").mockImplementation(() => unpaused() + pauseMs);
          reply.write({ text: "Hello there" });
          if (how === "finish") void Promise.allSettled([reply.finish()]);
          await vi.advanceTimersByTimeAsync(900);
          expect(target.calls.length).toBe(callsBefore);
          if (isAbandoned) reply.abandon();
          await vi.advanceTimersByTimeAsync(5000);
          expect(target.messages.map((message) => message.text)).toEqual([
            isAbandoned ? "Hello" : "Hello there",
          ]);
        });
      }
    }
  }

  it("uploads nothing for a second after a suspension, and nothing more if it is abandoned then", async () => {
    const { reply, target } = setUp();
    await reply.show();
    const unpaused = performance.now.bind(performance);
    vi.spyOn(performance, "now").mockImplementation(() => unpaused() + 3000);
    const file = { name: "a.png", mediaType: "image/png", bytes: new Uint8Array(1), altText: "a" };
    void Promise.allSettled([reply.attach(file)]);
    await vi.advanceTimersByTimeAsync(900);
    reply.abandon();
    await vi.advanceTimersByTimeAsync(5000);
    expect(target.files).toEqual([]);
  });

  it("stops retrying the end when it is abandoned", async () => {
    const { reply, target } = setUp();
    await reply.show();
    reply.write({ text: "Hello" });
    await vi.advanceTimersByTimeAsync(0);
    target.failures.push(...Array.from({ length: 50 }, unreachable));
    const ending = reply.finish();
    void Promise.allSettled([ending]);
    await vi.advanceTimersByTimeAsync(5000);
    reply.abandon();
    await expect(ending).rejects.toMatchObject({ code: "stopping" });
    const calls = target.calls.length;
    await vi.advanceTimersByTimeAsync(200_000);
    expect(target.calls.length).toBe(calls);
  });
});
