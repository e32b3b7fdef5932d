import { expect, test } from "vitest";
import type { Reply } from "../../../../src/core/platform.ts";
import { createLateReply } from "../../../../src/platforms/slack/late-reply.ts";

function record(calls: unknown[]): Reply {
  const note =
    (name: string) =>
    (...args: unknown[]): Promise<void> => {
      calls.push([name, ...args]);
      return Promise.resolve();
    };
  return {
    show: note("show"),
    status: (text) => void note("status")(text),
    write: (content) => void note("write")(content),
    attach: note("attach"),
    finish: note("finish"),
    fail: note("fail"),
    abandon: () => void note("abandon")(),
  };
}

test("what was written before the workspace was loaded is shown then, the last of it alone", async () => {
  const calls: unknown[] = [];
  const reply = createLateReply(() => Promise.resolve(record(calls)));
  reply.status("Transcribing");
  reply.write({ text: "one" });
  reply.write({ text: "one two" });
  expect(calls).toEqual([]);
  await Promise.all([reply.show(), reply.finish()]);
  reply.write({ text: "late" });
  expect(calls).toEqual([
    ["status", "Transcribing"],
    ["write", { text: "one two" }],
    ["show"],
    ["finish", undefined],
    ["write", { text: "late" }],
  ]);
});

test("where the workspace cannot be loaded the call fails, and the next one tries again", async () => {
  const calls: unknown[] = [];
  let tries = 0;
  const reply = createLateReply(() => {
    tries += 1;
    return tries === 1 ? Promise.reject(new Error("no store")) : Promise.resolve(record(calls));
  });
  await expect(reply.show()).rejects.toThrow("no store");
  await reply.fail({ text: "sorry" });
  expect(calls).toEqual([["fail", { text: "sorry" }]]);
});

test("one that was abandoned before shows nothing", async () => {
  const calls: unknown[] = [];
  const reply = createLateReply(() => Promise.resolve(record(calls)));
  reply.abandon();
  await reply.show();
  expect(calls[0]).toEqual(["abandon"]);
});
