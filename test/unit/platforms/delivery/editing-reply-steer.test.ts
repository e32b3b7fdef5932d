import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import {
  createEditingReply,
  type EditingReplyOptions,
} from "../../../../src/platforms/delivery/editing-reply.ts";
import { silentLog } from "../../../support/silent-log.ts";
import { createFakeTarget, type FakeTarget } from "./fake-target.ts";

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

const words = (count: number) => Array.from({ length: count }, (_, index) => `word${index}`).join(" ");

function setUp(options: Partial<EditingReplyOptions> & { target?: FakeTarget } = {}) {
  const target = options.target ?? createFakeTarget();
  const saveRefs = () => Promise.resolve();
  return { target, reply: createEditingReply({ saveRefs, log: silentLog, ...options, target }) };
}

describe("a reply that people steer", () => {
  it("empties a message of an earlier, longer answer that it cannot delete", async () => {
    const target = createFakeTarget({ remove: () => Promise.reject(new Error("no")) });
    target.messages.push({ text: "old", state: "finished" }, { text: "older", state: "finished" });
    const { reply } = setUp({ target, savedRefs: [{ id: 0 }, { id: 1 }] });
    await reply.show();
    reply.write({ text: "short" });
    await reply.finish();
    expect(target.messages[1]).toEqual({
      text: "The answer is shorter now: nothing of it is left here.",
      state: "finished",
    });
  });

  it("has a Stop button on its last message while it grows, which costs no edit of its own", async () => {
    const stop = { kind: "stop", key: "k" } as const;
    const { reply, target } = setUp({ stop });
    await reply.show();
    expect(target.messages).toEqual([{ text: "", state: "waiting", actions: [stop] }]);
    reply.write({ text: words(25) });
    await vi.advanceTimersByTimeAsync(5000);
    expect(target.messages.map(({ actions }) => actions)).toEqual([undefined, [stop]]);
    const details = { kind: "details", key: "d" } as const;
    await reply.finish({ actions: [details] });
    expect(target.messages.map(({ actions }) => actions)).toEqual([undefined, [details]]);
    expect(target.calls.map(({ kind }) => kind)).toEqual(["post", "edit", "post", "edit"]);
  });

  it("that is short and whole at once has no Stop button", async () => {
    const { reply, target } = setUp({ stop: { kind: "stop", key: "k" }, firstMessageIsShown: true });
    await reply.show();
    target.gate = new Promise((resolve) => setTimeout(resolve, 100));
    const done = reply.finish({ notices: [] });
    await vi.advanceTimersByTimeAsync(200);
    await done;
    expect(target.calls).toMatchObject([{ kind: "post", content: { state: "finished" } }]);
    expect(target.calls[0]?.content?.actions).toBeUndefined();
  });

  it("that is whole when it is written has no Stop button, which would cost an edit more", async () => {
    const { reply, target } = setUp({ stop: { kind: "stop", key: "k" } });
    await reply.show();
    reply.write({ text: "All of it.", isWhole: true });
    await reply.finish();
    expect(target.calls.slice(1).map(({ content }) => content?.actions)).toEqual([undefined, undefined]);
  });
});
