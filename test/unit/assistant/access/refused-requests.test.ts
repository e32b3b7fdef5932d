import { afterEach, describe, expect, test, vi } from "vitest";
import type { Actor } from "../../../../src/core/access.ts";
import { toNotice } from "../../../../src/core/error-messages.ts";
import { ParleyError } from "../../../../src/core/errors.ts";
import { createWorld, type World, type WorldOptions } from "../../../support/assistant-world.ts";
import { ada, bo, call, message } from "../../../support/fakes.ts";

describe("access rules", () => {
  const guild = "discord:guild:1";
  const guest = { user: "discord:user:7", server: guild, isMember: true, isManager: false } as const;

  let world: World;
  afterEach(async () => {
    await world.close();
  });

  test("somebody whom the rules refuse leaves no trace in the store, the channel and the gateway", async () => {
    world = await createWorld({ rules: { deny: ["discord:user:7"] } });
    const event = message("hello", { origin: guest });
    await expect(world.assistant.receive(event)).rejects.toMatchObject({
      code: "access-denied",
      detail: { because: "denied" },
    });
    expect(world.assistant.pending()).toBe(0);
    expect(await world.store.inbox.read([event.key])).toEqual([]);
    expect(world.platform.replies).toEqual([]);
    expect(world.gateway.requests).toEqual([]);
  });

  test("somebody whom the rules allow is answered", async () => {
    world = await createWorld({ rules: { allow: [guild] } });
    await world.assistant.receive(message("hello", { origin: guest }));
    await vi.waitFor(() =>
      expect(world.platform.replies).toMatchObject([{ text: "you said: hello", state: "finished" }]),
    );
  });

  test("a stored turn of somebody who is refused since then is told to the author alone, and not run", async () => {
    world = await createWorld();
    const event = message("hello", { origin: guest });
    await world.store.inbox.accept(event);
    const restarted = world.restart({ rules: { deny: [guild] } });
    expect(await restarted.recover("fake")).toBe(1);
    await vi.waitFor(async () => {
      expect(await world.store.inbox.open()).toEqual([]);
    });
    await world.settled();
    expect(world.gateway.requests).toEqual([]);
    expect(world.platform.replies).toMatchObject([
      { state: "failed", failure: { text: expect.stringContaining("not on the list") as string } },
    ]);
  });

  test("events of earlier versions, which say nothing of their origin, are run", async () => {
    world = await createWorld();
    await world.store.inbox.accept(message("hello"));
    await world.restart({ rules: { allow: [guild] } }).recover("fake");
    await vi.waitFor(() => expect(world.platform.replies).toMatchObject([{ state: "finished" }]));
  });

  describe("somebody whom the rules refuse", () => {
    const denied: Actor = { ...bo, origin: guest };
    const refusal = { code: "access-denied", detail: { because: "denied" } };

    test("cannot retry what somebody else asked; others can", async () => {
      world = await createWorld({ rules: { deny: ["discord:user:7"] } });
      world.gateway.answerWith(async function* broken() {
        yield { kind: "text", text: "half" };
        throw new ParleyError("gateway-interrupted", "cut");
      });
      const event = await world.ask("hello");
      await expect(world.assistant.press({ kind: "retry", key: event.key }, denied)).rejects.toMatchObject(
        refusal,
      );
      expect(world.gateway.requests).toHaveLength(1);
      expect(await world.assistant.press({ kind: "retry", key: event.key }, bo)).toEqual({ kind: "done" });
      await vi.waitFor(() => expect(world.gateway.requests).toHaveLength(2));
    });

    test("cannot confirm, also what they asked for themselves", async () => {
      world = await createWorld({ rules: { deny: ["discord:user:7"] } });
      await world.assistant.receive(message("a secret"));
      const event = call("forget", {}, { inConversation: true });
      await world.assistant.receive(event);
      await vi.waitFor(() => expect(world.platform.replies.at(-1)?.confirm).toBeDefined());
      const by: Actor = { ...ada, origin: guest };
      await expect(world.assistant.press({ kind: "confirm", key: event.key }, by)).rejects.toMatchObject(
        refusal,
      );
      expect(JSON.stringify(await world.history.history("fake:c1", { maxMessages: 5 }))).toContain(
        "a secret",
      );
    });

    test("cannot stop an answer; who asked can", async () => {
      world = await createWorld({ rules: { deny: ["discord:user:7"] } });
      world.hang("and so on");
      const talk = message("talk");
      await world.assistant.receive(talk);
      await vi.waitFor(() => expect(world.platform.replies[0]?.text).toBe("and so on"));
      await expect(world.assistant.press({ kind: "stop", key: "fake:c1" }, denied)).rejects.toMatchObject(
        refusal,
      );
      // A bystander cannot either: only those who asked, and moderators.
      await expect(world.assistant.press({ kind: "stop", key: "fake:c1" }, bo)).rejects.toMatchObject({
        code: "not-permitted",
      });
      expect(world.platform.replies[0]?.state).not.toBe("finished");
      expect(
        await world.assistant.press({ kind: "stop", key: "fake:c1" }, { ...bo, author: talk.author }),
      ).toEqual({ kind: "done" });
      await vi.waitFor(() => expect(world.platform.replies[0]?.notices).toEqual(["Stopped."]));
    });
  });
});

describe("budgets before a request", () => {
  const noon = Date.UTC(2026, 6, 28, 12);
  const paid = { inputPerMillionUsd: 1, outputPerMillionUsd: 10, perImageUsd: 0.04 };
  const free = { inputPerMillionUsd: 0, outputPerMillionUsd: 0, perImageUsd: 0 };
  const prices = { chatty: paid, gratis: free };
  const models = [
    { id: "chatty", capabilities: { chats: true, generatesImages: true } },
    { id: "gratis", capabilities: { chats: true } },
  ];

  let world: World;
  afterEach(async () => {
    await world.close();
  });

  /** Makes a world in which Ada's budget of a cent is spent. */
  async function withSpentBudget(more: WorldOptions = {}): Promise<void> {
    world = await createWorld({ startAt: noon, models, prices, spending: { personDayUsd: 0.01 }, ...more });
    world.gateway.answerWith(async function* answer(request) {
      yield { kind: "text", text: "an answer" };
      yield {
        kind: "finish",
        reason: "stop",
        model: request.model,
        usage: { costUsd: 0.02, isEstimated: false },
      };
    });
    await world.ask("one");
  }

  describe("a request past a spent budget", () => {
    test("is refused before anything is stored or shown, with the time when it is free again", async () => {
      await withSpentBudget();
      const events = [message("two"), message("/ask why?"), call("imagine", { prompt: "a fox" })];
      for (const event of events) {
        const refusal: unknown = await world.assistant.receive(event).catch((error: unknown) => error);
        expect(refusal).toMatchObject({ code: "over-budget", retryAfterMs: 12 * 60 * 60_000 });
        expect(toNotice(refusal)).toBe(
          "Nothing is left of your daily budget ($0.01). There is a new one at midnight UTC, in 12 hours.",
        );
      }
      const records = await world.store.inbox.read(events.map(({ key }) => key));
      expect(records.map(({ state }) => state)).toEqual(["erased", "erased", "erased"]);
      for (const words of ["two", "why?", "a fox"]) expect(JSON.stringify(records)).not.toContain(words);
      expect(world.platform.replies).toHaveLength(1);
      await world.clock.advance(12 * 60 * 60_000);
      expect(await world.assistant.receive(message("tomorrow"))).toBe("accepted");
      await world.settled();
    });

    test("is taken where it costs nothing: commands without a model, and free models", async () => {
      await withSpentBudget();
      for (const event of [
        call("usage", {}),
        message("/help"),
        call("ask", { prompt: "why?", model: "gratis" }),
        message("two", { model: "gratis" }),
      ])
        expect(await world.assistant.receive(event)).toBe("accepted");
      await world.settled();
      expect(world.gateway.requests.map(({ model }) => model)).toEqual(["chatty", "gratis", "gratis"]);
      expect(world.platform.replies.map(({ state }) => state)).not.toContain("failed");
      await world.store.settings.change("fake:ada", { "chat-model": "gratis" });
      await world.clock.advance(3000);
      expect(await world.assistant.receive(message("three"))).toBe("accepted");
      await world.settled();
    });

    test("is not counted against the rate, and one that was accepted before is not refused in words", async () => {
      await withSpentBudget({ spending: { personDayUsd: 0.01, turnsPersonMinute: 2 } });
      for (let times = 0; times < 3; times++)
        await expect(world.assistant.receive(message("two"))).rejects.toMatchObject({ code: "over-budget" });
      const taken = call("usage", {});
      expect(await world.assistant.receive(taken)).toBe("accepted");
      await world.settled();
      const before = message("before");
      await world.store.inbox.accept(before);
      expect(await world.assistant.receive(before)).toBe("duplicate");
    });

    test("is decided in the turn while the ledger cannot be read, and nothing is read without a budget", async () => {
      world = await createWorld({ startAt: noon, models, prices, spending: { personDayUsd: 0.01 } });
      const read = vi
        .spyOn(world.store.spending, "spent")
        .mockRejectedValue(new ParleyError("store-unavailable", "gone"));
      expect(await world.assistant.receive(message("one"))).toBe("accepted");
      await world.settled();
      expect(read).toHaveBeenCalled();
      expect(world.platform.replies).toMatchObject([{ state: "finished" }]);
      await world.close();
      world = await createWorld({ startAt: noon, models, prices });
      const unread = vi.spyOn(world.store.spending, "spent");
      await world.ask("one");
      expect(unread).not.toHaveBeenCalled();
    });
  });
});

describe("the rate of requests", () => {
  let world: World;
  afterEach(async () => {
    vi.restoreAllMocks();
    await world.close();
  });

  const outage = () => Promise.reject(new ParleyError("store-unavailable", "gone"));

  describe("TURNS_PERSON_MINUTE", () => {
    test("counts a Retry for who clicks; past it the click is refused, and one that finds nothing is not counted", async () => {
      world = await createWorld({ spending: { turnsPersonMinute: 3 } });
      const asked = await world.ask("one");
      for (let times = 0; times < 5; times++)
        expect(await world.assistant.press({ kind: "retry", key: "fake:nothing" }, ada)).toEqual({
          kind: "gone",
        });
      for (let times = 0; times < 2; times++) {
        expect(await world.assistant.press({ kind: "retry", key: asked.key }, ada)).toEqual({ kind: "done" });
        await world.settled();
      }
      await expect(world.assistant.press({ kind: "retry", key: asked.key }, ada)).rejects.toMatchObject({
        code: "rate-limited",
        detail: { max: 3 },
      });
      await expect(world.assistant.receive(message("two"))).rejects.toMatchObject({ code: "rate-limited" });
      expect(await world.assistant.press({ kind: "retry", key: asked.key }, bo)).toEqual({ kind: "done" });
      await world.settled();
    });

    test("does not count what the store did not take, however often a platform tries again", async () => {
      world = await createWorld({ spending: { turnsPersonMinute: 2 } });
      const accept = vi.spyOn(world.store.inbox, "accept").mockImplementation(outage);
      for (let times = 0; times < 2; times++)
        await expect(world.passingTime(world.assistant.receive(message("out")))).rejects.toMatchObject({
          code: "store-unavailable",
        });
      await expect(world.assistant.press({ kind: "retry", key: "fake:nothing" }, ada)).resolves.toEqual({
        kind: "gone",
      });
      accept.mockRestore();
      for (const text of ["one", "two"])
        expect(await world.assistant.receive(message(text))).toBe("accepted");
      await world.settled();
      await expect(world.assistant.receive(message("three"))).rejects.toMatchObject({ code: "rate-limited" });
    });
  });
});
