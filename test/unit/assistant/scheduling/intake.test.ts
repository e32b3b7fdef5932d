import { describe, expect, it, vi } from "vitest";
import { ParleyError } from "../../../../src/core/errors.ts";
import type { IncomingEvent } from "../../../../src/core/events.ts";
import type { World } from "../../../support/assistant-world.ts";
import { call, message } from "../../../support/fakes.ts";
import { worldOfEachTest } from "../../../support/world-of-each-test.ts";

describe("acceptance", () => {
  const world = worldOfEachTest();

  type Accept = World["store"]["inbox"]["accept"];

  /** Wraps the store's `accept`. */
  function acceptWith(wrap: (accept: Accept) => Accept): void {
    const { inbox } = world.store;
    const accept = inbox.accept.bind(inbox);
    vi.spyOn(inbox, "accept").mockImplementation(wrap(accept));
  }
  const whenAnswered = () =>
    vi.waitFor(() =>
      expect(world.platform.replies).toMatchObject([
        { text: expect.stringContaining("you said: hello"), state: "finished" },
      ]),
    );
  const isGone = () => new ParleyError("store-unavailable", "the disk is gone");

  it("answers once where the disk refuses it at first", async () => {
    let attempts = 0;
    acceptWith((accept) => async (...args) => {
      const result = await accept(...args);
      if (attempts++ === 0) throw isGone();
      return result;
    });
    expect(await world.passingTime(world.assistant.receive(message("hello")))).toBe("accepted");
    await whenAnswered();
    expect(attempts).toBe(2);
    expect(world.gateway.requests).toHaveLength(1);
  });

  it("is answered once where its outcome was unknown and it is delivered again", async () => {
    acceptWith((accept) => async (...args) => {
      await accept(...args);
      throw isGone();
    });
    const event = message("hello");
    await expect(world.passingTime(world.assistant.receive(event))).rejects.toMatchObject({
      code: "store-unavailable",
    });
    vi.restoreAllMocks();
    expect(await world.assistant.receive(event)).toBe("duplicate");
    await world.recover();
    await whenAnswered();
    expect(world.gateway.requests).toHaveLength(1);
    expect(world.assistant.pending()).toBe(0);
  });

  it("lets no message overtake one before it whose acceptance takes longer", async () => {
    const held = Promise.withResolvers<void>();
    // Another process holds the entry of the first one, for example in a transaction.
    acceptWith((accept) => async (event) => {
      if (event.kind === "message" && event.text === "one") await held.promise;
      return await accept(event);
    });
    const received = ["one", "two"].map((text) => world.assistant.receive(message(text)));
    await vi.waitFor(async () => expect(await world.store.inbox.open()).toHaveLength(1));
    await world.passingTime(new Promise((resolve) => setTimeout(resolve, 50)));
    expect(world.gateway.requests).toEqual([]);
    held.resolve();
    expect(await world.passingTime(Promise.all(received))).toEqual(["accepted", "accepted"]);
    await vi.waitFor(async () => expect(await world.store.inbox.open()).toEqual([]));
    const log = await world.store.conversations.recent("fake:c1", { maxMessages: 9 });
    const asked = log.filter(({ role }) => role === "user").map(({ parts }) => parts[0]);
    expect(asked).toMatchObject([{ text: "one" }, { text: "two" }]);
  });

  it("runs messages in the order of their sending where requests of their own bring them in another one", async () => {
    await world.renew({ deliversInOrder: "never" });
    const [one, two] = [message("one"), message("two")];
    for (const event of [two, one]) await world.assistant.receive(event);
    await world.settled();
    const log = await world.store.conversations.recent("fake:c1", { maxMessages: 9 });
    const asked = log.filter(({ role }) => role === "user").map(({ parts }) => parts[0]);
    expect(asked).toMatchObject([{ text: "one" }, { text: "two" }]);
  });
});

describe("refusals", () => {
  const world = worldOfEachTest();

  describe("a refusal", () => {
    const refusalOf = async (event: IncomingEvent, code: string): Promise<void> =>
      await expect(world.assistant.receive(event)).rejects.toMatchObject({ code });

    async function beOverTheRate(): Promise<void> {
      await world.renew({ spending: { turnsPersonMinute: 1 } });
      await world.assistant.receive(message("one"));
    }

    it("is for good: the same event is a duplicate from then on, also for another process", async () => {
      await beOverTheRate();
      const event = message("two");
      await refusalOf(event, "rate-limited");
      expect(await world.assistant.receive(event)).toBe("duplicate");
      expect(await world.store.inbox.accept(event)).toBe("duplicate");
      expect((await world.store.inbox.open()).map((one) => one.event.key)).not.toContain(event.key);
    });

    it("is not kept where its person can send the same event again", async () => {
      await beOverTheRate();
      const event = message("two");
      for (let times = 0; times < 2; times++)
        await expect(world.assistant.receive(event, { canResend: true })).rejects.toMatchObject({
          code: "rate-limited",
        });
      expect(await world.store.inbox.accept(event)).toBe("accepted");
    });

    it("is none while the store cannot keep it: nobody knows yet whether it will be answered", async () => {
      await beOverTheRate();
      const event = message("two");
      const refuse = vi
        .spyOn(world.store.inbox, "refuse")
        .mockRejectedValue(new ParleyError("store-unavailable", "away"));
      await refusalOf(event, "store-unavailable");
      refuse.mockRestore();
      await refusalOf(event, "rate-limited");
    });

    it("is none of an event that another process has accepted: no words are said, and it is not answered twice", async () => {
      await beOverTheRate();
      const event = message("two");
      await world.store.inbox.accept(event);
      expect(await world.assistant.receive(event)).toBe("duplicate");
      await world.settled();
      // Whoever has the conversation answers what others have accepted.
      expect(world.platform.replies.map(({ state }) => state)).toEqual(["finished", "finished"]);
      expect(world.gateway.requests).toHaveLength(2);
    });

    it("of a command by a process that stops is for good; a message is left to its next delivery", async () => {
      const command = call("ask", { prompt: "why?" });
      const question = message("hello");
      const stopped = world.assistant.stop({ deadlineMs: 100 });
      await refusalOf(command, "stopping");
      await refusalOf(question, "stopping");
      await stopped;
      expect(await world.store.inbox.accept(command)).toBe("duplicate");
      expect(await world.store.inbox.accept(question)).toBe("accepted");
    });
  });
});
