import { describe, expect, it, vi } from "vitest";
import { ParleyError } from "../../../../src/core/errors.ts";
import type { RunWrite } from "../../../../src/core/inbox.ts";
import { ada, call, message, said } from "../../../support/fakes.ts";
import { beginAgain, leaveEnded } from "../../../support/left-turns.ts";
import { worldOfEachTest } from "../../../support/world-of-each-test.ts";

describe("open turns", () => {
  const world = worldOfEachTest();

  /** Leaves questions as an earlier process left them: accepted and not answered. */
  async function leaveOpen(count: number): Promise<void> {
    for (let n = 0; n < count; n++) {
      const author = { id: `fake:person-${n}`, name: `Person ${n}` };
      await world.store.inbox.accept(message(`question ${n}`, { conversationId: `fake:old-${n}`, author }));
    }
  }

  describe("recovery", () => {
    it("resumes a few conversations at a time, and a new one does not wait for the rest", async () => {
      await leaveOpen(40);
      const held = world.hold();
      expect(await world.assistant.recover("fake")).toBe(40);
      await vi.waitFor(() => expect(held.count()).toBe(16));
      expect(world.assistant.pending()).toBe(16);
      await world.assistant.receive(message("what about me?", { conversationId: "fake:new" }));
      await vi.waitFor(() => expect(held.count()).toBe(17));
      held.release();
      await world.settled();
      expect(held.count()).toBe(41);
      expect(await world.store.inbox.open()).toEqual([]);
    });

    it("found twice, a turn is resumed once", async () => {
      await leaveOpen(40);
      const held = world.hold();
      await world.assistant.recover("fake");
      await vi.waitFor(() => expect(held.count()).toBe(16));
      await world.assistant.recover("fake");
      held.release();
      await world.settled();
      await vi.waitFor(async () => expect(await world.store.inbox.open()).toEqual([]));
      expect(world.gateway.requests).toHaveLength(40);
    });

    it("a conversation's old turn runs before its new one, though it waited for its turn to be resumed", async () => {
      await leaveOpen(30);
      const held = world.hold();
      await world.assistant.recover("fake");
      await vi.waitFor(() => expect(held.count()).toBe(16));
      await world.assistant.receive(message("the new question", { conversationId: "fake:old-29" }));
      held.release();
      await world.settled();
      const log = await world.history.history("fake:old-29", { maxMessages: 10 });
      expect(log.filter(({ role }) => role === "user").map(({ parts }) => parts[0])).toEqual([
        { kind: "text", text: "question 29" },
        { kind: "text", text: "the new question" },
      ]);
    });
  });

  it("a thread whose first question is sealed is the bot's: what people say there is answered", async () => {
    const conversationId = "fake:sealed-thread";
    const place = { server: "fake:s", channel: "fake:c", channelPlace: "fake:channel:1" };
    const event = message("question", { conversationId, within: ["fake:channel:1"] });
    await world.leaveBegun([event], { attempts: 4 });
    await world.assistant.recover("fake");
    await vi.waitFor(async () => expect(await world.store.inbox.open()).toEqual([]));
    expect(world.platform.replies.map(({ state }) => state)).toEqual(["failed"]);
    const said = {
      author: "person",
      pieces: ["and?"],
      authorId: event.author.id,
      sentAt: event.sentAt + 1,
    } as const;
    const stands = { in: "thread", conversationId, place, isOwn: () => false } as const;
    expect(await world.assistant.placeMessage({ ...said, stands })).toMatchObject({
      kind: "question",
      inRoom: false,
    });
  });
});

const world = worldOfEachTest();

/** Fails the next write of this kind, as while the store is away for a moment. */
function failOnce(kind: RunWrite["kind"], key?: string): void {
  const { inbox } = world.store;
  const write = inbox.write.bind(inbox);
  let isAway = true;
  vi.spyOn(inbox, "write").mockImplementation(async (attempt, what) => {
    if (!isAway || what.kind !== kind || (key ?? attempt.key) !== attempt.key)
      return await write(attempt, what);
    isAway = false;
    throw new ParleyError("store-unavailable", "away for a moment");
  });
}

it("a stored answer that is shown again names its messages of now before earlier ones are removed", async () => {
  const event = message("hello");
  await world.leaveBegun([event], { message: 71 });
  // Its run ended before it had saved the address with this message.
  await leaveEnded(world.store.inbox, event, { shownAs: ["fake:reply:70"] });
  const { platform } = world.platform;
  let shownAs: readonly string[] | undefined;
  world.assistant.addPlatform({
    ...platform,
    openReply(address, hooks) {
      const reply = platform.openReply(address, hooks);
      return {
        ...reply,
        async show() {
          // The platform saves it again until that succeeds.
          const save = () => hooks.saveAddress({ ...address, message: 72 });
          failOnce("address");
          await save().catch(save);
          // The platform removes the others now, and another process learns of it.
          const answer = await world.store.conversations.find(event.conversationId, `${event.key}/answer`);
          shownAs = answer?.shownAs;
        },
      };
    },
  });
  await world.recover();
  expect(shownAs).toEqual(["fake:reply:72"]);
  expect(world.platform.replies).toMatchObject([{ text: "stored before the crash", state: "finished" }]);
});

describe("after an outage", () => {
  it("a turn that it left open runs before a later message of its conversation", async () => {
    vi.spyOn(world.store.queue, "run").mockImplementationOnce(() =>
      Promise.reject(new ParleyError("store-unavailable", "no lease")),
    );
    await world.ask("one");
    await world.ask("two");
    expect(world.platform.replies.map(({ text }) => text)).toEqual(["you said: one", "you said: two"]);
    expect(await world.store.inbox.open()).toEqual([]);
  });

  it.each([0, 1, 2])("a stored answer is shown in try %d to show it, and nothing is asked", async (tries) => {
    const event = message("asked");
    await world.leaveBegun([event], { attempts: 4 });
    await leaveEnded(world.store.inbox, event);
    for (let n = 0; n < tries; n++) await beginAgain(world.store.inbox, event);
    await world.recover(world.restart());
    expect(world.gateway.requests).toEqual([]);
    expect(world.platform.replies).toMatchObject([
      { address: { message: 7 }, text: "stored before the crash", state: "finished" },
    ]);
    expect(await world.store.inbox.open()).toEqual([]);
  });

  it("an answer that ends the process whenever it is shown is given up at last, and kept", async () => {
    const event = message("asked");
    await world.leaveBegun([event]);
    await leaveEnded(world.store.inbox, event);
    for (let n = 0; n < 99; n++) await beginAgain(world.store.inbox, event);
    await world.recover(world.restart());
    expect(world.platform.replies).toMatchObject([{ state: "failed", failure: { retryKey: event.key } }]);
    expect(await world.log()).toEqual(["assistant: stored before the crash"]);
    expect(await world.store.inbox.open()).toEqual([]);
  });

  it("an answer that is given up while the platform is away is given up later", async () => {
    const event = message("asked");
    await world.leaveBegun([event]);
    await leaveEnded(world.store.inbox, event);
    for (let n = 0; n < 99; n++) await beginAgain(world.store.inbox, event);
    world.platform.failToShow(new ParleyError("platform-unreachable", "away"));
    await world.assistant.recover("fake");
    await world.clock.advance(1000);
    expect(await world.store.inbox.open()).toHaveLength(1);
    world.platform.failToShow(undefined);
    await world.settled();
    expect(world.platform.replies.at(-1)?.state).not.toBe("open");
    expect(await world.store.inbox.open()).toEqual([]);
  });

  it.each(["end", "close"] as const)(
    "of the store at its write %s, a turn is answered once, in the same reply",
    async (kind) => {
      failOnce(kind);
      await world.ask("hello");
      expect(world.platform.replies.at(-1)).toMatchObject({ text: "you said: hello", state: "finished" });
      expect(world.platform.replies).toHaveLength(1);
      expect(await world.log()).toEqual(["user: hello", "assistant: you said: hello"]);
      expect(await world.store.inbox.open()).toEqual([]);
    },
  );

  describe("/chat outside a conversation", () => {
    const goOn = "The conversation is open. Go on there.";
    const chat = () =>
      call("chat", { message: "let us talk" }, { conversationId: "fake:call", address: { at: "x" } });

    /** Makes a platform forget which thread it opened for an address, as after a restart. */
    function forgetThreads() {
      let threads = 0;
      const { platform } = world.platform;
      return vi.spyOn(platform, "openThread").mockImplementation(() => {
        threads += 1;
        return Promise.resolve({
          conversationId: `fake:thread:${threads}`,
          address: { at: `thread ${threads}` },
        });
      });
    }

    it("whose result is shown again says that its thread is open", async () => {
      const openThread = forgetThreads();
      const event = chat();
      failOnce("close", event.key);
      await world.answered(event);
      expect(world.platform.replies.find(({ text }) => text === goOn)).toMatchObject({ state: "finished" });
      expect(openThread).toHaveBeenCalledTimes(1);
      expect(world.gateway.requests).toHaveLength(1);
    });

    it("whose message is refused as busy is answered by Retry", async () => {
      let isFull = true;
      world.assistant.addPlatform({
        ...world.platform.platform,
        delivery: { isFull: ({ at }) => isFull && at !== "x", waiting: () => [] },
      });
      const event = chat();
      await world.answered(event);
      expect(world.platform.replies.at(-1)).toMatchObject({ state: "failed" });
      expect(world.gateway.requests).toEqual([]);
      isFull = false;
      await world.assistant.press({ kind: "retry", key: event.key }, ada);
      await world.settled();
      expect(said(world.gateway.requests.at(-1))).toContain("user: let us talk");
    });

    it("that ended before its result was stored finds the thread by the message that it began with", async () => {
      const openThread = forgetThreads();
      const event = chat();
      failOnce("end", event.key);
      await world.answered(event);
      expect(world.platform.replies.map(({ text }) => text)).toContain("you said: let us talk");
      expect(world.platform.replies.find(({ text }) => text === goOn)).toMatchObject({ state: "finished" });
      expect(openThread).toHaveBeenCalledTimes(1);
      expect(world.gateway.requests).toHaveLength(1);
    });

    it("is forgotten with what its caller said", async () => {
      await world.answered(chat());
      await world.store.erasure.forgetAuthor(undefined, "fake:ada");
      expect(await world.store.lists.list("fake:", { max: 10 })).toEqual([]);
    });
  });
});
