import { describe, expect, it, vi } from "vitest";
import { ParleyError } from "../../../../src/core/errors.ts";
import { currentTurn } from "../../../../src/core/turn-scope.ts";
import { sleep } from "../../../../src/support/sleep.ts";
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

  describe("the turn of an event that is written and not yet on disk", () => {
    it("begins: the model is asked before the event is accepted", async () => {
      const disk = Promise.withResolvers<void>();
      acceptWith((accept) => async (...args) => {
        const result = await accept(...args);
        await disk.promise;
        return result;
      });
      let isAccepted = false;
      const accepting = world.assistant.receive(message("hello")).then((result) => {
        isAccepted = true;
        return result;
      });
      await vi.waitFor(() => expect(world.gateway.requests).toHaveLength(1));
      expect(isAccepted).toBe(false);
      disk.resolve();
      expect(await accepting).toBe("accepted");
      await whenAnswered();
      expect(world.gateway.requests).toHaveLength(1);
      expect(await world.store.inbox.listOpen()).toEqual([]);
    });

    it.each([
      { count: 8, begun: 8 },
      { count: 9, begun: 0 },
    ])("begins with $count commands in flight: $begun of them", async ({ count, begun }) => {
      const disk = Promise.withResolvers<void>();
      let written = 0;
      acceptWith((accept) => async (...args) => {
        const result = await accept(...args);
        written++;
        await disk.promise;
        return result;
      });
      const accepting = Array.from({ length: count }, (_, n) =>
        world.assistant.receive(
          call(
            "ask",
            { prompt: "hello" },
            { conversationId: `fake:c${n}`, author: { id: `fake:p${n}`, name: "Bo" } },
          ),
        ),
      );
      await vi.waitFor(() => expect(written).toBe(count));
      // One that has begun would ask within this time.
      await sleep(100);
      await vi.waitFor(() => expect(world.gateway.requests).toHaveLength(begun));
      disk.resolve();
      await Promise.all(accepting);
      await world.settled();
      expect(world.gateway.requests).toHaveLength(count);
    });

    it("begins in its own scope, although the store has written others with it", async () => {
      const scopes: unknown[] = [];
      const { inbox } = world.store;
      const listOpenIn = inbox.listOpenIn.bind(inbox);
      vi.spyOn(inbox, "listOpenIn").mockImplementation((id) => {
        scopes.push([id, currentTurn()?.turn]);
        return listOpenIn(id);
      });
      const events = ["c1", "c2"].map((name) => message("hello", { conversationId: `fake:${name}` }));
      await Promise.all(events.map((event) => world.assistant.receive(event)));
      await world.settled();
      expect(scopes.slice(0, 2)).toEqual(events.map((event) => [event.conversationId, event.key]));
    });

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

    it("answers once where the disk refuses it for good and the platform delivers it again", async () => {
      acceptWith((accept) => async (...args) => {
        await accept(...args);
        throw isGone();
      });
      const event = message("hello");
      await expect(world.assistant.receive(event)).rejects.toMatchObject({ code: "store-unavailable" });
      vi.restoreAllMocks();
      expect(await world.assistant.receive(event)).toBe("duplicate");
      await whenAnswered();
      expect(world.gateway.requests).toHaveLength(1);
      expect(world.assistant.pending()).toBe(0);
    });

    it("counts as running, and as asked, where the disk refuses it for good", async () => {
      await world.renew({ spending: { turnsPersonMinute: 1 } });
      const busy = Promise.withResolvers<void>();
      world.gateway.answerWith(async function* slow(request) {
        await busy.promise;
        yield { kind: "text", text: "you said: hello" };
        yield { kind: "finish", reason: "stop", model: request.model, usage: { isEstimated: true } };
      });
      acceptWith((accept) => async (...args) => {
        await accept(...args);
        throw isGone();
      });
      await expect(world.assistant.receive(message("hello"))).rejects.toMatchObject({
        code: "store-unavailable",
      });
      vi.restoreAllMocks();
      expect(world.assistant.pending()).toBe(1);
      await expect(world.assistant.receive(message("more"))).rejects.toMatchObject({ code: "rate-limited" });
      busy.resolve();
      await whenAnswered();
      await world.settled();
    });
  });

  it("a command's acknowledgement is sent before its turn begins, on a store that says nothing before the disk has it", async () => {
    acceptWith((accept) => (event) => accept(event));
    await world.assistant.receive(call("ask", { prompt: "hello" }));
    // As undici sends on an idle connection.
    const sent = await new Promise<string>((resolve) => {
      setImmediate(() => resolve(`sent before ${1 - world.platform.replies.length} of 1`));
    });
    expect(sent).toBe("sent before 1 of 1");
    await whenAnswered();
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
