import { afterEach, describe, expect, test } from "vitest";
import type { ReplyAddress } from "../../../../src/core/events.ts";
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
const bob = { id: "fake:bob", name: "Bob" };
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
const isReport = ({ at }: ReplyAddress) => typeof at === "string" && at.startsWith("fake:channel:9");
const reports = () => world.platform.replies.filter(({ address }) => isReport(address));

describe("a person", () => {
  test("is told at 50, 80 and 100 % of the own budgets, once in each period, the highest alone", async () => {
    await open({ spending: { personDayUsd: 1, personMonthUsd: 2.5 } });
    await spend(0.4);
    expect(told()).toEqual([]);
    await spend(0.1);
    expect(told()).toEqual([
      "fake:ada: 50 % of your daily budget ($1.00) is used: $0.50 is left. There is a new one at midnight UTC, in 12 hours.",
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
        "fake:ada: 80 % of your daily budget ($1.00) is used: $0.15 is left. There is a new one at midnight UTC, in 12 hours.",
        "80 % of your monthly budget ($2.50) is used: $0.45 is left. There is a new one on March 1 at midnight UTC, in 36 hours.",
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

describe("the admins", () => {
  test("read in one message a day what was passed, which grows, and the rest in the next day's", async () => {
    await open({ adminChannel: "fake:channel:9", spending: { personDayUsd: 1, monthUsd: 2 } });
    await world.store.settings.change(origin.server, {
      "place-budget": 4,
      "role-budgets": ["fake:role:staff=1/month"],
    });
    await spend(0.5);
    const title = "**Budgets that passed a threshold, 2028-02-27 (UTC)**";
    expect(reports().map(({ text }) => text)).toEqual([
      `${title}\n\n- 50 % of $1.00 a day: Ada\n- 50 % of $1.00 a month: the role fake:role:staff`,
    ]);
    await world.clock.advance(60_000);
    await spend(0.7, { author: bob, conversationId: "fake:b", origin: { ...origin, roles: [] } });
    await world.recover();
    expect(reports().map(({ text, state }) => [state, text])).toEqual([
      [
        "finished",
        [
          title,
          "",
          "- 50 % of $1.00 a day: Ada",
          "- 50 % of $1.00 a month: the role fake:role:staff",
          "- 50 % of $2.00 a month: everybody together",
          "- 50 % of $1.00 a day: Bob",
        ].join("\n"),
      ],
    ]);
    const other = world.restart();
    await world.clock.advance(dayMs);
    await world.recover(other);
    expect(reports()).toHaveLength(1);
    world.answerWith("an answer", { costUsd: 0.9 });
    await other.receive(call("ask", { prompt: "more?" }, { origin, conversationId: "fake:c9" }));
    await world.settled();
    expect(
      reports()
        .slice(1)
        .map(({ text }) => text),
    ).toEqual([
      [
        "**Budgets that passed a threshold, 2028-02-28 (UTC)**",
        "",
        "- 100 % of $2.00 a month: everybody together",
        "- 100 % of $1.00 a month: the role fake:role:staff",
        "- 80 % of $1.00 a day: Ada",
      ].join("\n"),
    ]);
  });

  test("read it later where it could not be shown", async () => {
    await open({ adminChannel: "fake:channel:9", spending: { personDayUsd: 1 } });
    const { platform } = world.platform;
    const openReply = platform.openReply.bind(platform);
    platform.openReply = (address, hooks) => {
      const reply = openReply(address, hooks);
      if (isReport(address)) return { ...reply, show: () => Promise.reject(new Error("away")) };
      return reply;
    };
    await spend(0.5);
    expect(reports().map(({ state }) => state)).toEqual(["open"]);
    platform.openReply = openReply;
    await world.recover();
    expect(reports().at(-1)).toMatchObject({
      state: "finished",
      text: expect.stringContaining("Ada") as string,
    });
  });
});
