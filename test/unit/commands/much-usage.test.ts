import { rm } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it, test } from "vitest";
import type { UsageRow } from "../../../src/core/spending.ts";
import { openStore, type Store } from "../../../src/conversations/open-store.ts";
import { toUsageSums } from "../../../src/operations/dashboard/dashboard-data.ts";
import { call } from "../../support/fakes.ts";
import { makeFastFolder } from "../../support/fast-folder.ts";
import { holdUpOf } from "../../support/longest-turn.ts";
import { silentLog } from "../../support/silent-log.ts";
import { worldOfEachTest } from "../../support/world-of-each-test.ts";

const startAt = Date.UTC(2026, 10, 21, 12);
const day = "2026-11-21";

/** Usage of one day by 20,000 people with five models each. */
const rows = Array.from({ length: 100_000 }, (_, n): UsageRow => ({
  day,
  personId: `fake:p${n % 20_000}`,
  channel: `fake:channel:${n % 100}`,
  model: `m${Math.floor(n / 20_000)}`,
  operation: "chat",
  calls: 1,
  promptTokens: n,
  completionTokens: 1,
  images: 0,
  audioSeconds: 0,
  costUsd: 0.000_001,
  estimatedCalls: 1,
  unpricedCalls: 0,
}));

// Attack: Usage of 100,000 rows, ten transcripts of 10,000 segments, a prompt of 4,000,000 tokens,
// which held the event loop for 70 to 370 ms each. What holds: made in pieces; usage and
// transcripts once at a time for a person.
describe("100,000 rows of usage", () => {
  const world = worldOfEachTest({ startAt, rules: { admins: ["fake:user:root"] } });
  const origin = { user: "fake:user:root", isMember: true, isManager: false };

  async function use(options: Parameters<typeof call>[1], inConversation: string): Promise<string> {
    const before = world.platform.replies.length;
    const more = { isPrivate: true, origin, inConversation: true, conversationId: inConversation };
    await world.assistant.receive(call("usage", options, more));
    await world.store.queue.idle();
    return world.platform.replies[before]!.text;
  }

  it.each([
    [{}, "| Calls | 100,000 | 100,000 |"],
    [{ by: "person" }, "| 19,985 others | 99,925 |"],
    [{ by: "day" }, "| 2026-11-21 | 100,000 |"],
    [{ csv: true }, "50,000 rows. The oldest 50,000 rows did not fit"],
  ] as const)("of %j hold nobody up", async (options, expected) => {
    world.store.spending.usage = () => Promise.resolve(rows);
    expect(
      await holdUpOf(async () => expect(await use(options, "fake:c1")).toContain(expected)),
    ).toBeUndefined();
  });

  test("are read once at a time for a person", async () => {
    let running = 0;
    let most = 0;
    const waiting: (() => void)[] = [];
    world.store.spending.usage = async () => {
      most = Math.max(most, (running += 1));
      await new Promise<void>((resolve) => waiting.push(resolve));
      running -= 1;
      return [];
    };
    const all = Promise.all(["fake:c1", "fake:c2", "fake:c3"].map((id) => use({ by: "model" }, id)));
    for (let served = 0; served < 3;) {
      // All have come when nothing has happened for so long.
      for (let turn = 0; turn < 200; turn += 1) await new Promise((resolve) => setImmediate(resolve));
      for (const go of waiting.splice(0)) {
        served += 1;
        go();
      }
    }
    await all;
    expect(most).toBe(1);
  });

  test("on the dashboard hold nobody up", async () => {
    expect(
      await holdUpOf(async () => expect((await toUsageSums(rows)).total.calls).toBe(100_000)),
    ).toBeUndefined();
  });
});

describe("a day of 20,000 people in the ledger", () => {
  let folder: string;
  let store: Store;
  beforeAll(async () => {
    folder = await makeFastFolder("parley-usage-");
    store = await openStore(`sqlite:${join(folder, "parley.db")}`, { log: silentLog });
    const usage = { promptTokens: 10, completionTokens: 5, costUsd: 0.5, isEstimated: true };
    for (let from = 0; from < 20_000; from += 1000) {
      const some = Array.from({ length: 1000 }, (_, n) => from + n);
      await Promise.all(
        some.map((n) =>
          store.spending.settle(
            { id: `r${n}`, day, reservedAt: startAt, reservedUsd: 0, scopes: [] },
            { labels: { personId: `fake:p${n}`, model: "m", operation: "chat" }, usage, scopes: [] } as never,
            startAt,
          ),
        ),
      );
    }
  }, 120_000);
  afterAll(async () => {
    await store.close();
    await rm(folder, { recursive: true });
  });

  it.each([undefined, "fake:p7"])("is read for %s without holding anybody up", async (personId) => {
    const read = () => store.spending.usage({ fromDay: day, toDay: day, personId });
    expect(await read()).toHaveLength(personId === undefined ? 20_000 : 1);
    expect(await holdUpOf(read)).toBeUndefined();
  });

  it("forgets a person without holding anybody up", async () => {
    let next = 100;
    expect(await holdUpOf(() => store.spending.forgetPerson(`fake:p${next++}`))).toBeUndefined();
    expect(await store.spending.usage({ fromDay: day, toDay: day, personId: "fake:p100" })).toEqual([]);
  });
});
