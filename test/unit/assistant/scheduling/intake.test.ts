import { describe, expect, it, vi } from "vitest";
import { ParleyError } from "../../../../src/core/errors.ts";
import type { World } from "../../../support/assistant-world.ts";
import { message } from "../../../support/fakes.ts";
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
    expect(await world.assistant.receive(message("hello"))).toBe("accepted");
    await whenAnswered();
    expect(attempts).toBe(2);
    expect(world.gateway.requests).toHaveLength(1);
  });

  it("is answered once, by the next recovery, where its outcome was unknown and it is delivered again", async () => {
    acceptWith((accept) => async (...args) => {
      await accept(...args);
      throw isGone();
    });
    const event = message("hello");
    await expect(world.assistant.receive(event)).rejects.toMatchObject({ code: "store-unavailable" });
    vi.restoreAllMocks();
    expect(await world.assistant.receive(event)).toBe("duplicate");
    await world.recover();
    await whenAnswered();
    expect(world.gateway.requests).toHaveLength(1);
    expect(world.assistant.pending()).toBe(0);
  });
});

describe("refusals", () => {
  const world = worldOfEachTest();

  const away = () => Promise.reject(new ParleyError("store-unavailable", "away"));

  describe("a refusal", () => {
    it("is for good: the same event is a duplicate from then on, also for another process", async () => {
      const event = message("hello");
      expect(await world.assistant.refuse(event.key)).toBe("refused");
      expect(await world.assistant.receive(event)).toBe("duplicate");
      expect(await world.store.inbox.accept(event)).toBe("duplicate");
      expect(await world.store.inbox.listOpen()).toEqual([]);
      expect(await world.assistant.refuse(event.key)).toBe("refused");
    });

    it("is not made again: what is found once more, of somebody who is over a limit, is a duplicate", async () => {
      await world.renew({ spending: { turnsPersonMinute: 1 } });
      await world.assistant.receive(message("one"));
      const second = message("two");
      await expect(world.assistant.receive(second)).rejects.toMatchObject({ code: "rate-limited" });
      expect(await world.assistant.refuse(second.key)).toBe("refused");
      expect(await world.assistant.receive(second)).toBe("duplicate");
    });

    it("counts from the moment it is said, although the store is unavailable until later", async () => {
      const event = message("hello");
      const refuse = vi.spyOn(world.store.inbox, "refuse").mockImplementation(away);
      const refusal = world.assistant.refuse(event.key);
      expect(await world.assistant.receive(event)).toBe("duplicate");
      refuse.mockRestore();
      expect(await refusal).toBe("refused");
      expect(await world.assistant.receive(event)).toBe("duplicate");
      expect(world.platform.replies).toEqual([]);
    });

    it("of an event that was written all the same is `accepted`, and the event is answered at once", async () => {
      const event = message("hello");
      await world.store.inbox.accept(event);
      expect(await world.assistant.refuse(event.key)).toBe("accepted");
      await vi.waitFor(() => expect(world.platform.replies).toMatchObject([{ state: "finished" }]));
    });

    it("of an event that was answered is `accepted`, and it is not answered again", async () => {
      const event = message("hello");
      await world.assistant.receive(event);
      await vi.waitFor(async () => expect(await world.store.inbox.listOpen()).toEqual([]));
      expect(await world.assistant.refuse(event.key)).toBe("accepted");
      await world.settled();
      expect(world.platform.replies).toHaveLength(1);
    });

    it("no longer waits for the store after the process has stopped", async () => {
      vi.spyOn(world.store.inbox, "refuse").mockImplementation(away);
      const refusal = world.assistant.refuse("fake:1");
      const failed = expect(refusal).rejects.toMatchObject({ code: "stopping" });
      await world.passingTime(world.assistant.stop({ deadlineMs: 100 }));
      await failed;
      await expect(world.assistant.refuse("fake:2")).rejects.toMatchObject({ code: "store-unavailable" });
    });
  });

  describe("keeping an event while the process stops", () => {
    it("leaves it open for another instance or the next start", async () => {
      const stopped = world.assistant.stop({ deadlineMs: 100 });
      const event = message("hello");
      await expect(world.assistant.receive(event)).rejects.toMatchObject({ code: "stopping" });
      expect(await world.assistant.keep(event)).toBe("accepted");
      await stopped;
      expect(await world.store.inbox.listOpen()).toMatchObject([{ event: { key: event.key } }]);
      expect(world.platform.replies).toEqual([]);
      expect(world.assistant.pending()).toBe(0);
    });
  });
});
