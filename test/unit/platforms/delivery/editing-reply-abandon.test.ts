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
  it("edits nothing for a second after the process was suspended, and nothing more if it is abandoned then", async () => {
    for (const isAbandoned of [false, true]) {
      const { reply, target } = setUp();
      await reply.show();
      reply.write({ text: "Hello" });
      await vi.advanceTimersByTimeAsync(3000);
      const callsBefore = target.calls.length;
      const unpaused = performance.now.bind(performance);
      const clock = vi.spyOn(performance, "now").mockImplementation(() => unpaused() + 20_000);
      reply.write({ text: "Hello there" });
      await vi.advanceTimersByTimeAsync(900);
      expect(target.calls.length).toBe(callsBefore);
      if (isAbandoned) reply.abandon();
      await vi.advanceTimersByTimeAsync(5000);
      expect(target.messages.map((message) => message.text)).toEqual([isAbandoned ? "Hello" : "Hello there"]);
      clock.mockRestore();
    }
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
