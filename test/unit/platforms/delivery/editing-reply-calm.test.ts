import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import type { Json } from "../../../../src/core/events.ts";
import { createEditingReply } from "../../../../src/platforms/delivery/editing-reply.ts";
import { silentLog } from "../../../support/silent-log.ts";
import { createFakeTarget } from "./fake-target.ts";

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

describe("a calm reply", () => {
  it("shows its final text in one post, and nothing before", async () => {
    const target = createFakeTarget();
    const saved: (readonly Json[])[] = [];
    const reply = createEditingReply({
      target,
      isCalm: true,
      placeholder: "Thinking",
      saveRefs: async (refs) => void saved.push(refs),
      log: silentLog,
    });
    await reply.show();
    reply.status("Reading");
    reply.write({ text: "Hello" });
    await vi.advanceTimersByTimeAsync(5000);
    reply.write({ text: "Hello you" });
    await vi.advanceTimersByTimeAsync(5000);
    expect(target.calls).toEqual([]);
    expect(saved).toEqual([[]]);
    await reply.finish({ notices: ["A notice."] });
    expect(target.calls.map(({ kind }) => kind)).toEqual(["post"]);
    expect(target.messages).toEqual([{ text: "Hello you", state: "finished", notices: ["A notice."] }]);
    expect(saved.at(-1)).toEqual([{ id: 0 }]);
  });
});

describe("a reply that only ends what an earlier run has shown", () => {
  it("puts no placeholder back before its end", async () => {
    const target = createFakeTarget();
    const first = createEditingReply({
      target,
      placeholder: "Thinking",
      saveRefs: async () => {},
      log: silentLog,
    });
    await first.show();
    first.abandon();
    const reply = createEditingReply({
      target,
      isEndOnly: true,
      placeholder: "Thinking",
      savedRefs: [{ id: 0 }],
      saveRefs: async () => {},
      log: silentLog,
    });
    await reply.show();
    expect(target.calls.map(({ kind }) => kind)).toEqual(["post"]);
    await reply.fail({ text: "Too old." });
    expect(target.calls.map(({ kind }) => kind)).toEqual(["post", "edit"]);
    expect(target.messages).toMatchObject([{ failure: "Too old.", state: "failed" }]);
  });
});
