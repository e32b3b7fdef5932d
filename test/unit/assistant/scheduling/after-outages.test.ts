import { describe, expect, it, vi } from "vitest";
import { ParleyError } from "../../../../src/core/errors.ts";
import { call, message, worldOfEachTest } from "../../../support/fakes.ts";

const world = worldOfEachTest();

describe("after an outage", () => {
  it("a turn that it left open runs before a later message of its conversation", async () => {
    vi.spyOn(world.store.queue, "run").mockImplementationOnce(() =>
      Promise.reject(new ParleyError("store-unavailable", "no lease")),
    );
    await world.ask("one");
    await world.ask("two");
    expect(world.platform.replies.map(({ text }) => text)).toEqual(["you said: one", "you said: two"]);
    expect(await world.store.inbox.listOpen()).toEqual([]);
  });

  it("an answer is stored after its question, which the store could not take at first", async () => {
    vi.spyOn(world.store.conversations, "append").mockRejectedValueOnce(
      new ParleyError("store-unavailable", "the disk is full"),
    );
    await world.ask("one");
    await world.recover();
    const log = await world.store.conversations.recent("fake:c1", { maxMessages: 9 });
    expect(log.map(({ role, outcome }) => [role, outcome])).toEqual([
      ["user", undefined],
      ["assistant", "complete"],
    ]);
  });

  it("what failed too often is not sealed where its answer is stored: the answer is shown", async () => {
    const event = await world.ask("asked");
    const asked = world.gateway.requests.length;
    await world.store.inbox.reopen(event.key);
    await world.store.inbox.saveTurn({ keys: [event.key], address: { at: "c1", message: 77 }, attempts: 4 });
    await world.recover(world.restart());
    expect(world.gateway.requests).toHaveLength(asked);
    expect(world.platform.replies.at(-1)).toMatchObject({ text: "you said: asked", state: "finished" });
    expect(await world.store.inbox.listOpen()).toEqual([]);
  });

  it("what was sealed while its answer was being stored shows the answer in the end", async () => {
    const event = await world.ask("asked");
    const [kept] = (await world.store.conversations.recent("fake:c1", { maxMessages: 1 })).slice(-1);
    await world.store.inbox.reopen(event.key);
    await world.store.inbox.saveTurn({ keys: [event.key], address: { at: "c1", message: 7 }, attempts: 4 });
    // Not there yet when it is looked for first.
    vi.spyOn(world.store.conversations, "find").mockResolvedValueOnce(undefined);
    for (let round = 0; round < 2; round++) {
      await world.recover();
    }
    expect(kept?.outcome).toBe("complete");
    expect(world.platform.replies.at(-1)).toMatchObject({ text: "you said: asked", state: "finished" });
    expect(await world.store.inbox.listOpen()).toEqual([]);
  });

  it("an answer whose showing fails again and again is sealed at last", async () => {
    const event = await world.ask("asked");
    await world.store.inbox.reopen(event.key);
    await world.store.inbox.saveTurn({ keys: [event.key], address: { at: "c1", message: 77 }, attempts: 20 });
    await world.recover(world.restart());
    expect(world.platform.replies.at(-1)).toMatchObject({ state: "failed" });
  });

  describe("/chat outside a conversation", () => {
    const goOn = "The conversation is open. Go on there.";
    const chat = () =>
      call("chat", { message: "let us talk" }, { conversationId: "fake:call", address: { at: "x" } });

    /** A platform that has forgotten, after a restart, which thread it opened for an address. */
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

    it.each([2, 4])(
      "that ended with its process in attempt %d says that its thread is open",
      async (attempts) => {
        const openThread = forgetThreads();
        const event = chat();
        await world.answered(event);
        await world.store.inbox.reopen(event.key);
        await world.store.inbox.saveTurn({ keys: [event.key], address: { at: "x", message: 77 }, attempts });
        await world.recover(world.restart());
        expect(world.platform.replies.at(-1)).toMatchObject({ text: goOn, state: "finished" });
        expect(openThread).toHaveBeenCalledTimes(1);
        expect(world.gateway.requests).toHaveLength(1);
      },
    );

    it("that ended before its result was stored finds the thread by the message that it began with", async () => {
      const openThread = forgetThreads();
      const event = chat();
      const { conversations } = world.store;
      const append = conversations.append.bind(conversations);
      let isOut = true;
      vi.spyOn(conversations, "append").mockImplementation((id, stored) =>
        isOut && stored.turnKey === event.key
          ? Promise.reject(new ParleyError("store-unavailable", "out"))
          : append(id, stored),
      );
      await world.answered(event);
      isOut = false;
      expect(await world.recover(world.restart())).toBe(1);
      expect(world.platform.replies.map(({ text }) => text)).toContain("you said: let us talk");
      expect(world.platform.replies.find(({ text }) => text === goOn)).toMatchObject({ state: "finished" });
      expect(openThread).toHaveBeenCalledTimes(1);
      expect(world.gateway.requests).toHaveLength(1);
    });

    it("is forgotten with what its caller said", async () => {
      await world.answered(chat());
      await world.store.erasure.forgetAuthor(undefined, "fake:ada");
      expect(await world.store.conversations.list("fake:", { max: 10 })).toEqual([]);
    });
  });
});
