import { afterEach, describe, expect, test, vi } from "vitest";
import { toNotice } from "../../../../src/core/error-messages.ts";
import { ParleyError } from "../../../../src/core/errors.ts";
import { call, createWorld, message, type World, type WorldOptions } from "../../../support/fakes.ts";

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

/** A world in which Ada's budget of a cent is spent. */
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
        "Nothing is left of your budget for a day ($0.01). It is free again at midnight UTC, in 12 hours.",
      );
    }
    expect(await world.store.inbox.lookUp(events.map(({ key }) => key))).toEqual([]);
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
      .spyOn(world.store.spending, "spentUsd")
      .mockRejectedValue(new ParleyError("store-unavailable", "gone"));
    expect(await world.assistant.receive(message("one"))).toBe("accepted");
    await world.settled();
    expect(read).toHaveBeenCalledTimes(1);
    await world.close();
    world = await createWorld({ startAt: noon, models, prices });
    const unread = vi.spyOn(world.store.spending, "spentUsd");
    await world.ask("one");
    expect(unread).not.toHaveBeenCalled();
  });
});
