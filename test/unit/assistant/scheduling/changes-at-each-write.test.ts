import { describe, expect, it, vi } from "vitest";
import type { ChatRequest } from "../../../../src/core/gateway.ts";
import type { RunWrite } from "../../../../src/core/inbox.ts";
import { fixture } from "../../../fixtures/fixtures.ts";
import { ada, message } from "../../../support/fakes.ts";
import { editElsewhere } from "../../../support/left-turns.ts";
import { worldOfEachTest } from "../../../support/world-of-each-test.ts";

// What people change while a turn runs counts whenever it comes, received here or by another process.

const world = worldOfEachTest(async () => ({ files: { png: await fixture("picture.png") } }));

/** A moment in a turn with a file. The end of the turn is stored from `after end` on. */
const moments = [
  "before begin",
  "after begin",
  "while files are read",
  "before asked",
  "after asked",
  "before address",
  "after address",
  "while the answer grows",
  "before end",
  "after end",
  "before close",
  "after close",
] as const;
type Moment = (typeof moments)[number];

const isStored = (moment: Moment): boolean => moments.indexOf(moment) >= moments.indexOf("after end");
const isBegun = (moment: Moment): boolean => moment !== "before begin";

const changes = ["stop", "deletion", "edit"] as const;
type ChangeKind = (typeof changes)[number];

const secret = message("my secret", {
  key: "fake:asked",
  attachments: [{ id: "png", name: "a.png", source: null }],
});
const { key, conversationId } = secret;

/** What this process does with a change, and what another one does. */
const received: Readonly<Record<"here" | "elsewhere", (kind: ChangeKind) => Promise<unknown>>> = {
  here(kind) {
    switch (kind) {
      case "stop":
        return world.assistant.press({ kind: "stop", key }, ada);
      case "deletion":
        return world.assistant.changed({ kind: "delete-messages", conversationId, keys: [key] });
      case "edit":
        return world.assistant.changed({
          kind: "edit",
          key,
          editedAt: 2_000_000_000_000,
          conversationIds: [conversationId],
          read: () => Promise.resolve({ text: "harmless" }),
        });
    }
  },
  elsewhere(kind) {
    const { inbox } = world.store;
    switch (kind) {
      case "stop":
        return inbox.change({ kind: "stop", of: key, by: "", at: 1 });
      case "deletion":
        return inbox.change({ kind: "delete", of: key });
      case "edit":
        return editElsewhere(inbox, { key }, "harmless", 2_000_000_000_000);
    }
  },
};

/** The first line of the last message of a request. Its picture comes after that. */
function asked({ messages }: ChatRequest): string {
  const content = messages.at(-1)?.content ?? "";
  const [words] =
    typeof content === "string" ? [content] : content.flatMap((part) => ("text" in part ? [part.text] : []));
  return (words ?? "").split("\n")[0] ?? "";
}

/** Runs the turn, and lets something happen at a moment of it. */
async function runWith(moment: Moment, happens: () => Promise<unknown>): Promise<void> {
  let isDone = false;
  const at = async (now: Moment): Promise<void> => {
    if (isDone || now !== moment) return;
    isDone = true;
    await happens();
  };
  const { inbox } = world.store;
  const begin = inbox.begin.bind(inbox);
  vi.spyOn(inbox, "begin").mockImplementation(async (...given) => {
    await at("before begin");
    const begun = await begin(...given);
    await at("after begin");
    return begun;
  });
  const write = inbox.write.bind(inbox);
  const named = (kind: RunWrite["kind"], when: "before" | "after"): Moment | undefined =>
    moments.find((one) => one === `${when} ${kind}`);
  vi.spyOn(inbox, "write").mockImplementation(async (attempt, what) => {
    const [before, after] = [named(what.kind, "before"), named(what.kind, "after")];
    if (before !== undefined) await at(before);
    const written = await write(attempt, what);
    if (after !== undefined) await at(after);
    return written;
  });
  const { platform } = world.platform;
  world.assistant.addPlatform({
    ...platform,
    async download(...given) {
      await at("while files are read");
      return await platform.download(...given);
    },
  });
  world.gateway.answerWith(async function* answer(request) {
    const text = `re: ${asked(request)}`;
    yield { kind: "text", text: text.slice(0, 4) };
    await at("while the answer grows");
    yield { kind: "text", text: text.slice(4) };
    yield { kind: "finish", reason: "stop", model: request.model, usage: { isEstimated: true } };
  });
  await world.assistant.receive(secret);
  await world.settled();
  expect(isDone).toBe(true);
  // Whoever received it elsewhere looks after the conversation, too.
  await world.recover();
}

const kept = async () => JSON.stringify(await world.history.history(conversationId, { maxMessages: 9 }));

describe.each(["here", "elsewhere"] as const)("a change that is received %s", (where) => {
  describe.each(changes)("a %s", (kind) => {
    it.each(moments)("%s", async (moment) => {
      await runWith(moment, () => received[where](kind));
      const { replies } = world.platform;
      // Nothing is left open, and nobody waits for an end.
      expect(await world.store.inbox.open()).toEqual([]);
      expect(replies.map(({ state }) => state).filter((state) => state !== "finished")).toEqual([]);
      expect(replies.length).toBeLessThanOrEqual(1);
      const [reply] = replies;
      switch (kind) {
        case "stop":
          expect(world.gateway.requests.length).toBeLessThanOrEqual(1);
          if (!isBegun(moment)) expect([replies, await world.log()]).toEqual([[], []]);
          else if (isStored(moment)) expect(reply).toMatchObject({ text: "re: my secret", notices: [] });
          else {
            expect(reply?.notices).toEqual(["Stopped."]);
            expect(await kept()).toContain("interrupted");
            expect((await world.log())[0]).toContain("my secret");
          }
          break;
        case "deletion":
          expect(world.gateway.requests.length).toBeLessThanOrEqual(1);
          expect((await world.log()).filter((line) => line.startsWith("user"))).toEqual([]);
          expect(JSON.stringify(await world.store.inbox.read([key]))).not.toContain("secret");
          if (!isBegun(moment)) expect(replies).toEqual([]);
          else if (isStored(moment)) expect(reply?.text).toBe("re: my secret");
          else {
            expect(reply?.notices.join()).toMatch(/deleted/);
            expect(await world.log()).toEqual([]);
          }
          break;
        case "edit":
          expect(world.gateway.requests.length).toBeLessThanOrEqual(2);
          expect(reply).toMatchObject({ text: "re: harmless" });
          expect(await world.log()).toEqual(["user: harmless image", "assistant: re: harmless"]);
          expect(await kept()).not.toContain("secret");
          expect(JSON.stringify(await world.store.inbox.read([key]))).not.toContain("secret");
          break;
      }
    });
  });
});

it("a question that is stopped while its files are read, and deleted then, is not stored with the stop", async () => {
  await runWith("while files are read", async () => {
    await received.here("stop");
    await received.elsewhere("deletion");
  });
  expect(await kept()).not.toContain("secret");
  expect(JSON.stringify(await world.store.inbox.read([key]))).not.toContain("secret");
  expect(world.platform.replies).toMatchObject([{ state: "finished" }]);
  expect(await world.store.inbox.open()).toEqual([]);
  expect(world.gateway.requests).toEqual([]);
});
