import { afterEach, describe, expect, test } from "vitest";
import { createWorld, type World, type WorldOptions } from "../../../support/assistant-world.ts";
import { call } from "../../../support/fakes.ts";

const noon = Date.UTC(2028, 1, 27, 12);
const dayMs = 24 * 60 * 60_000;
const origin = {
  user: "fake:user:ada",
  server: "fake:guild:1",
  channel: "fake:channel:1",
  roles: ["fake:role:staff"],
  isMember: true,
  isManager: false,
};
const prices = { chatty: { inputPerMillionUsd: 0, outputPerMillionUsd: 1 } };

let world: World;
afterEach(async () => {
  await world.close();
});

async function open(options: Partial<WorldOptions>): Promise<void> {
  world = await createWorld({ startAt: noon, prices, ...options });
}

async function spend(usd: number, more: Parameters<World["ask"]>[1] = {}): Promise<void> {
  world.answerWith("an answer", { costUsd: usd });
  await world.ask("question", { origin, ...more });
}

const told = () => world.platform.told.splice(0).map(({ authorId, text }) => `${authorId}: ${text}`);

describe("a person", () => {
  test("is told at 50, 80 and 100 % of the own budgets, once in each period, the highest alone", async () => {
    await open({ spending: { personDayUsd: 1, personMonthUsd: 2.5 } });
    await spend(0.4);
    expect(told()).toEqual([]);
    await spend(0.1);
    expect(told()).toEqual([
      "fake:ada: 50 % of your daily budget ($1.00) is used: ~$0.50 is left. There is a new one at midnight UTC, in 12 hours.",
    ]);
    await spend(0.2);
    expect(told()).toEqual([]);
    await spend(0.5);
    expect(told()).toEqual([
      "fake:ada: Nothing is left of your daily budget ($1.00). There is a new one at midnight UTC, in 12 hours.",
    ]);
    await world.clock.advance(dayMs);
    await spend(0.85);
    expect(told()).toEqual([
      [
        "fake:ada: 80 % of your daily budget ($1.00) is used: ~$0.15 is left. There is a new one at midnight UTC, in 12 hours.",
        "80 % of your monthly budget ($2.50) is used: ~$0.45 is left. There is a new one on March 1 at midnight UTC, in 36 hours.",
      ].join("\n"),
    ]);
    await world.clock.advance(2 * dayMs);
    await spend(0.6);
    expect(told()).toEqual([expect.stringContaining("50 % of your daily budget")]);
  });

  test("is told of budgets of a place and not of what others spent, by commands too, and once after a restart", async () => {
    await open({ spending: { dayUsd: 1 } });
    await world.store.settings.change(origin.server, { "person-budget": 1, "place-budget": 1 });
    world.answerWith("an answer", { costUsd: 0.5 });
    await world.answered(call("ask", { prompt: "why?" }, { origin }));
    expect(told()).toEqual([
      expect.stringMatching(/^fake:ada: 50 % of your daily budget \(\$1\.00\)[^\n]*$/),
    ]);
    const other = world.restart();
    await other.receive(call("ask", { prompt: "and?" }, { origin, conversationId: "fake:c8" }));
    await world.settled();
    expect(told()).toEqual([expect.stringContaining("Nothing is left of your daily budget")]);
    await world.recover(other);
    expect(told()).toEqual([]);
  });

  test("is told nothing of a budget of which nothing was spent", async () => {
    await open({
      spending: { personDayUsd: 0 },
      prices: { chatty: { inputPerMillionUsd: 0, outputPerMillionUsd: 0 } },
    });
    await spend(0);
    expect(told()).toEqual([]);
  });
});
