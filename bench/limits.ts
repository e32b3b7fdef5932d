/**
 * Measures what access rules, rate, budgets and the ledger cost per turn: `node bench/limits.ts [--turns 400]
 * [--rounds 6]`. The same assistant on the same SQLite store answers alternately with all of them and with
 * none. Platform and gateway are fakes, so a turn is cheaper than in a bot and the ratio is an upper bound.
 */
import { parseArgs } from "node:util";
import type { Reservation } from "../src/core/spending.ts";
import { createWorld, type World } from "../test/support/assistant-world.ts";
import { message } from "../test/support/fakes.ts";

const { values } = parseArgs({
  options: { turns: { type: "string", default: "400" }, rounds: { type: "string", default: "6" } },
});
const turns = Number(values.turns);
/** The number of people who ask at once and share the CPU of the waiting. */
const people = 20;
/** The CPU of a turn of the whole bot on Discord, ten at a time (README), in microseconds. */
const wholeTurnUs = 6900;

const origin = {
  user: "discord:user:100",
  server: "discord:guild:1",
  channel: "discord:channel:2",
  roles: Array.from({ length: 10 }, (_, n) => `discord:role:${n}`),
  isMember: true,
  isManager: false,
};
const models = [{ id: "m", capabilities: { chats: true } }];
const prices = { m: { inputPerMillionUsd: 0.1, outputPerMillionUsd: 0.4 } };
const reservation: Reservation = { id: "-", scopes: [], reservedUsd: 0, day: "2026-01-01", reservedAt: 0 };

const worlds = {
  without: await createWorld({
    models,
    prices,
    spending: {
      ledger: {
        countTurn: () => Promise.resolve(undefined),
        uncountTurn: () => Promise.resolve(),
        reserve: () => Promise.resolve(reservation),
        settle: () => Promise.resolve(),
        rate: () => Promise.resolve(),
        spentUsd: () => Promise.resolve(0),
        tell: () => Promise.resolve(true),
        toldSince: () => Promise.resolve([]),
        usage: () => Promise.resolve([]),
        forgetPerson: () => Promise.resolve(),
        countedPeople: () => Promise.resolve([]),
        forgetPeople: () => Promise.resolve(),
      },
    },
  }),
  "by default": await createWorld({ models, prices, spending: { turnsPersonMinute: 100_000 } }),
  "with all": await createWorld({
    models,
    prices,
    rules: {
      allow: Array.from({ length: 100 }, (_, n) => `discord:guild:${n}`),
      deny: Array.from({ length: 100 }, (_, n) => `discord:user:${n}`),
    },
    spending: { turnsPersonMinute: 100_000, personDayUsd: 1000, dayUsd: 100_000 },
  }),
};

const medians = new Map<string, number>();
const samples = new Map(Object.keys(worlds).map((name) => [name, [] as number[]]));
for (let round = 0; round <= Number(values.rounds); round++) {
  for (const [name, world] of Object.entries(worlds)) {
    const us = await cpuPerTurn(world, round);
    // The first round warms up.
    if (round > 0) samples.get(name)?.push(us);
  }
}
for (const [name, all] of samples) medians.set(name, all.toSorted((a, b) => a - b)[all.length >> 1] ?? 0);
const without = medians.get("without") ?? 0;
for (const [name, us] of medians) {
  const more = us - without;
  const shares = `${percent(more / without)} of this turn, ${percent(more / wholeTurnUs)} of a bot's`;
  console.log(
    `${name.padEnd(12)} ${us.toFixed(0).padStart(6)} µs CPU a turn${more > 0 ? `  + ${shares}` : ""}`,
  );
}
for (const world of Object.values(worlds)) await world.close();

async function cpuPerTurn(world: World, round: number): Promise<number> {
  const before = process.cpuUsage();
  for (let turn = 0; turn < turns; turn += people) {
    const events = Array.from({ length: people }, (_, n) =>
      message("hello", {
        author: { id: `discord:${n}`, name: "Ada" },
        conversationId: `fake:r${round}t${turn}p${n}`,
        origin,
      }),
    );
    await Promise.all(events.map((event) => world.assistant.receive(event)));
    while (world.assistant.pending() > 0) await new Promise((resolve) => setImmediate(resolve));
  }
  const { user, system } = process.cpuUsage(before);
  return (user + system) / turns;
}

function percent(share: number): string {
  return `${(share * 100).toFixed(1)} %`;
}
