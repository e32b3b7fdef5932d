import { describe, expect, it, test, vi } from "vitest";
import { createBranch } from "../../../../src/assistant/actions/branch.ts";
import type { BranchRequest } from "../../../../src/core/receiver.ts";
import { ParleyError } from "../../../../src/core/errors.ts";
import type { IncomingMessage } from "../../../../src/core/events.ts";
import type { ConversationLabels } from "../../../../src/core/storage.ts";
import { fixture } from "../../../fixtures/fixtures.ts";
import { ada, said } from "../../../support/fakes.ts";
import { worldOfEachTest } from "../../../support/world-of-each-test.ts";

const from = "fake:c1";
const to = "fake:c2";
const eve = {
  platform: "fake",
  author: { id: "fake:eve", name: "Eve" },
  origin: { user: "fake:user:eve", isMember: true, isManager: false },
};
const png = { id: "png", name: "cat.png", source: null };

const world = worldOfEachTest(async () => ({
  files: { png: await fixture("picture.png") },
  rules: { deny: ["fake:user:eve"] },
}));

async function say(text: string, more: Partial<IncomingMessage> = {}) {
  const asked = await world.ask(text, more);
  return asked;
}

const branch = (until: BranchRequest["until"], more: Partial<BranchRequest> = {}, by = ada) =>
  world.history.branch(
    { from, to, until, toKey: (key) => `${to}:${key}`, toAddress: (key) => ({ at: key }), ...more },
    by,
  );

const stored = (id: string) => world.history.history(id, { maxMessages: 100 });

async function linesOf(id: string): Promise<string[]> {
  return (await stored(id)).map(
    ({ role, parts }) =>
      `${role}: ${parts.map((part) => ("text" in part ? part.text : part.kind)).join("+")}`,
  );
}

describe("a branch", () => {
  test("has what was said up to the answer, and goes on by itself", async () => {
    const one = await say("one");
    await say("two");
    expect(await branch({ turnKey: one.key })).toBe("branched");
    expect(await linesOf(to)).toEqual(["user: one", "assistant: you said: one"]);
    await say("three", { conversationId: to });
    expect(said(world.gateway.requests.at(-1))).toEqual([
      "system: Be brief.",
      "user: one",
      "assistant: you said: one",
      "user: three",
    ]);
    expect(await linesOf(from)).toHaveLength(4);
    expect(await world.store.conversations.settings(to)).toMatchObject({ title: "one (branch)" });
  });

  test("before a question has neither it nor its answer", async () => {
    await say("one");
    const two = await say("two");
    expect(await branch({ beforeKey: two.key })).toBe("branched");
    expect(await linesOf(to)).toEqual(["user: one", "assistant: you said: one"]);
  });

  test("keeps files when the original is deleted", async () => {
    const asked = await say("look", { attachments: [png] });
    expect(await branch({ turnKey: asked.key })).toBe("branched");
    await world.assistant.changed({ kind: "delete-conversation", conversationId: from });
    const [question] = await stored(to);
    const picture = question?.parts.find((part) => part.kind === "image");
    expect(await world.history.readBlob(to, picture?.blob.hash ?? "")).toBeDefined();
  });

  test("has an answer that can be asked for anew, without touching the original", async () => {
    const asked = await say("look", { attachments: [png] });
    await branch({ turnKey: asked.key });
    const [, copy] = await stored(to);
    const key = `${to} ${copy!.id} 1`;
    world.answerWith("another");
    expect(await world.assistant.press({ kind: "regenerate", key }, ada)).toEqual({ kind: "done" });
    await world.settled();
    expect(await linesOf(to)).toEqual(["user: look+image", "assistant: another"]);
    expect(await linesOf(from)).toEqual(["user: look+image", 'assistant: you said: ["text","image"]']);
    const sent = world.gateway.requests.at(-1)?.messages.at(-1);
    expect(JSON.stringify(sent)).toContain("image");
  });

  test.each([false, true])("asks no model after a process has died in the middle of it", async (isDone) => {
    const asked = await say("one");
    const { inbox } = world.store;
    const adopt = inbox.adopt.bind(inbox);
    vi.spyOn(inbox, "adopt").mockImplementationOnce(async (records) => {
      await adopt(isDone ? records : records.slice(0, -1));
      throw new ParleyError("store-unavailable", "the store is down");
    });
    await expect(branch({ turnKey: asked.key })).rejects.toMatchObject({ code: "store-unavailable" });
    await world.recover(world.restart());
    expect(world.gateway.requests).toHaveLength(1);
    expect(await branch({ turnKey: asked.key })).toBe("branched");
    await world.settled();
    expect(world.gateway.requests).toHaveLength(1);
    expect(await linesOf(to)).toEqual(["user: one", "assistant: you said: one"]);
    expect(await world.store.inbox.open()).toEqual([]);
    const [, copy] = await stored(to);
    const press = { kind: "regenerate", key: `${to} ${copy!.id} 1` } as const;
    expect(await world.assistant.press(press, ada)).toEqual({ kind: "done" });
    await world.settled();
  });

  test("asked for again is the same one, and never goes into another conversation", async () => {
    const asked = await say("one");
    await say("other", { conversationId: "fake:c3" });
    expect(await branch({ turnKey: asked.key })).toBe("branched");
    expect(await branch({ turnKey: asked.key })).toBe("branched");
    expect(await linesOf(to)).toHaveLength(2);
    expect(await branch({ turnKey: asked.key }, { to: "fake:c3" })).toBe("gone");
    expect(await branch({ turnKey: asked.key }, { to: "slack:c3" })).toBe("gone");
    expect(await branch({ turnKey: "fake:unknown" })).toBe("gone");
    expect(await linesOf("fake:c3")).toHaveLength(2);
  });

  // Attack: Branches copy a chat's files again and again: 30 requests write 1.15 GB. What holds:
  // 250 MB of copies of one person an hour.
  test("copies no more bytes of one person an hour than are allowed, whatever the copies are called", async () => {
    const asked = await say("look", { attachments: [png] });
    const [question] = await stored(from);
    const picture = question?.parts.find((part) => part.kind === "image");
    let now = 0;
    const { conversations, inbox, queue } = world.store;
    const run = createBranch({
      conversations,
      inbox,
      queue,
      expectAllowed: async () => {},
      now: () => now,
      maxBytesAnHour: (picture?.blob.sizeBytes ?? 0) * 2 + 1000,
    });
    const copy = (name: string, by = ada) =>
      run(
        {
          from,
          to: name,
          until: { turnKey: asked.key },
          toKey: (key) => `${name}:${key}`,
          toAddress: (key) => ({ at: key }),
        },
        by,
      );
    expect([await copy("fake:n1"), await copy("fake:n2")]).toEqual(["branched", "branched"]);
    await expect(copy("fake:n3")).rejects.toMatchObject({ code: "busy" });
    expect(await stored("fake:n3")).toEqual([]);
    // What was copied already costs nothing again, and others have their own limit.
    expect(await copy("fake:n2")).toBe("branched");
    expect(await copy("fake:n4", { ...ada, author: { id: "fake:bo", name: "Bo" } })).toBe("branched");
    now += 3_600_000;
    expect(await copy("fake:n3")).toBe("branched");
  });

  test("is refused to people who may not use the bot", async () => {
    const asked = await say("one");
    await expect(branch({ turnKey: asked.key }, {}, eve)).rejects.toMatchObject({ code: "access-denied" });
  });
});

describe("labels of a conversation", () => {
  const label = (labels: ConversationLabels, id = from, by = ada) => world.history.label(id, labels, by);
  const saved = () => world.store.conversations.settings(from);

  it("are one line of at most 100 characters, and what is not given stays", async () => {
    await say("one");
    expect(await label({ name: "  The\nplan  for\tOslo " })).toBe(true);
    expect(await saved()).toMatchObject({ name: "The plan for Oslo" });
    await label({ name: "😀".repeat(200) });
    await label({ isPinned: true });
    expect(await saved()).toMatchObject({ name: "😀".repeat(100), isPinned: true });
  });

  it("are removed by an empty name and by unpinning", async () => {
    await say("one");
    await label({ name: "The plan", isPinned: true });
    await label({ name: " ", isPinned: false });
    const { name, isPinned } = await saved();
    expect({ name, isPinned }).toEqual({ name: undefined, isPinned: undefined });
  });

  it("create no conversation, and need access", async () => {
    expect(await label({ name: "x" })).toBe(false);
    expect(await world.history.knows(from)).toBe(false);
    await say("one");
    await expect(label({ name: "x" }, from, eve)).rejects.toMatchObject({ code: "access-denied" });
    expect(await saved()).not.toHaveProperty("name");
  });
});
