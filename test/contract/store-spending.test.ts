import fc from "fast-check";
import { expect, it } from "vitest";
import {
  type Budget,
  type CountedUsage,
  type Reservation,
  type SettledCall,
  type SpentBudget,
} from "../../src/core/spending.ts";
import type { Store } from "../../src/conversations/open-store.ts";
import { describeStores } from "../support/stores.ts";

const dayMs = 24 * 60 * 60_000;
const reserveTtlMs = 60_000;
/** This is noon, at the beginning of a minute. */
const noon = Date.UTC(2026, 6, 28, 12);
const today = "2026-07-28";

const person = (id: string) => ({ kind: "person", id }) as const;
const everybody = { kind: "deployment" } as const;
const budgetOf = (scope: Budget["scope"], budgetUsd: number, period: Budget["period"] = "day"): Budget => ({
  scope,
  period,
  budgetUsd,
});

function isReserved(result: Reservation | SpentBudget): result is Reservation {
  return "id" in result;
}

function used(
  costUsd: number,
  { usage, ...more }: Partial<Omit<SettledCall, "usage">> & { readonly usage?: Partial<CountedUsage> } = {},
): SettledCall {
  return {
    labels: { personId: "discord:1", channel: "discord:channel:5", model: "m", operation: "chat" },
    usage: { promptTokens: 100, completionTokens: 20, costUsd, isEstimated: false, ...usage },
    scopes: [person("discord:1"), everybody],
    ...more,
  };
}

describeStores("spending", (current) => {
  /** Opens the same store, as another process would. */
  const open = (retentionDays = 0): Promise<Store> =>
    current().open({ exclusive: false, reserveTtlMs, retentionDays });

  it("counts at most so many turns of a person in a minute, and says when there is room again", async () => {
    const [one, other] = [(await open()).spending, (await open()).spending];
    const burst = await Promise.all(
      Array.from({ length: 100 }, (_, n) =>
        (n % 2 === 0 ? one : other).countTurn("ada", { max: 20, now: noon + 30_000 }),
      ),
    );
    const refused = burst.filter((wait) => wait !== undefined);
    expect(burst.length - refused.length).toBe(20);
    // The minute has 30 s left. Then the 20 turns fade out, one in 3 s.
    expect(new Set(refused)).toEqual(new Set([33_000]));
    expect(await one.countTurn("bob", { max: 20, now: noon + 30_000 })).toBeUndefined();
    expect(await other.countTurn("ada", { max: 20, now: noon + 62_000 })).toBe(1000);
    expect(await other.countTurn("ada", { max: 20, now: noon + 63_000 })).toBeUndefined();
    expect(await one.countTurn("ada", { max: 20, now: noon + 63_000 })).toBe(3000);
    expect(await one.countTurn("ada", { max: 20, now: noon + 10 * 60_000 })).toBeUndefined();
  });

  it("takes a counted turn back once", async () => {
    const { spending } = await open();
    expect(await spending.countTurn("ada", { max: 1, now: noon })).toBeUndefined();
    await spending.uncountTurn("ada", noon);
    await spending.uncountTurn("ada", noon);
    expect(await spending.countTurn("ada", { max: 1, now: noon })).toBeUndefined();
    expect(await spending.countTurn("ada", { max: 1, now: noon })).toBe(120_000);
  });

  it("reserves until a budget has nothing left, over all instances together", async () => {
    const stores = [(await open()).spending, (await open()).spending];
    const budgets = [budgetOf(person("discord:1"), 10), budgetOf(everybody, 1)];
    const results = await Promise.all(
      Array.from({ length: 10 }, (_, n) => stores[n % 2]!.reserve(0.4, { budgets, now: noon })),
    );
    const reservations = results.filter(isReserved);
    expect(reservations).toHaveLength(3);
    expect(results.find((result) => !isReserved(result))).toEqual({
      budget: budgetOf(everybody, 1),
      spentUsd: 0,
      reservedUsd: 1.2,
    });
    for (const reservation of reservations) await stores[0]!.settle(reservation, used(0.3), noon);
    expect((await stores[1]!.spent(everybody, noon)).spentUsd).toBe(0.9);
    expect((await stores[1]!.spent(person("discord:1"), noon)).spentUsd).toBe(0.9);
    expect(isReserved(await stores[1]!.reserve(0.4, { budgets, now: noon }))).toBe(true);
    expect(isReserved(await stores[0]!.reserve(0.4, { budgets, now: noon }))).toBe(false);
    // The next day (UTC) begins with nothing spent.
    expect(isReserved(await stores[0]!.reserve(0.4, { budgets, now: noon + dayMs / 2 }))).toBe(true);
  });

  it("says who has spent most today, as budgets count it", async () => {
    const { spending } = await open();
    expect(await spending.highestSpender(noon)).toBeUndefined();
    const spend = async (id: string, usd: number, now = noon) => {
      const reserved = (await spending.reserve(usd, { budgets: [], now })) as Reservation;
      await spending.settle(reserved, { ...used(usd), scopes: [person(id), everybody] }, now);
    };
    await spend("discord:1", 0.25);
    await spend("slack:T1:U2", 0.5);
    await spend("discord:1", 0.5);
    await spend("discord:3", 0.8, noon - dayMs);
    expect(await spending.highestSpender(noon)).toEqual({
      personId: "discord:1",
      spentUsd: 0.75,
      isEstimated: false,
    });
  });

  it("counts a month in UTC beside its days, also when a reserve is settled in the next one", async () => {
    const { spending } = await open();
    const budgets = [budgetOf(everybody, 1, "month"), budgetOf(everybody, 0.6)];
    const reserve = (now: number) => spending.reserve(0.4, { budgets, now });
    const [evening, midnight] = [Date.UTC(2028, 1, 29, 23, 59), Date.UTC(2028, 2, 1)];
    await spending.settle((await reserve(evening - dayMs)) as Reservation, used(0.6), evening - dayMs);
    const overMidnight = (await reserve(evening)) as Reservation;
    await spending.settle(overMidnight, used(0.5), midnight);
    expect((await spending.spent(everybody, evening, "month")).spentUsd).toBe(1.1);
    expect((await spending.spent(everybody, evening)).spentUsd).toBe(0.5);
    expect(await reserve(evening)).toMatchObject({ budget: budgets[0], spentUsd: 1.1 });
    expect((await spending.spent(everybody, midnight, "month")).spentUsd).toBe(0);
    expect(isReserved(await reserve(midnight))).toBe(true);
  });

  it("tells of a share of a budget once, over all instances, and not of a lower one afterwards", async () => {
    const stores = [(await open()).spending, (await open()).spending];
    const told = async (budget: Budget, percent: number, now = noon) =>
      (await Promise.all(stores.map((spending) => spending.tell(budget, percent, now)))).filter(Boolean)
        .length;
    const month = budgetOf(person("discord:1"), 10, "month");
    expect(await told(month, 80)).toBe(1);
    expect(await told(month, 80, noon + dayMs)).toBe(0);
    expect(await told(month, 50)).toBe(0);
    expect(await told(month, 100, noon + dayMs)).toBe(1);
    expect(await told(budgetOf(person("discord:1"), 10), 80)).toBe(1);
    expect(await told(budgetOf(everybody, 20, "month"), 50)).toBe(1);
    expect(await told(month, 80, Date.UTC(2026, 7, 1))).toBe(1);
  });

  it("does not refuse what is free", async () => {
    const { spending } = await open();
    expect(isReserved(await spending.reserve(0, { budgets: [budgetOf(everybody, 0)], now: noon }))).toBe(
      true,
    );
    expect(isReserved(await spending.reserve(0.01, { budgets: [budgetOf(everybody, 0)], now: noon }))).toBe(
      false,
    );
  });

  it("releases a reserve that nobody settles", async () => {
    const { spending } = await open();
    const budgets = [budgetOf(everybody, 1)];
    expect(isReserved(await spending.reserve(1, { budgets, now: noon }))).toBe(true);
    expect(isReserved(await spending.reserve(1, { budgets, now: noon + reserveTtlMs }))).toBe(false);
    expect(isReserved(await spending.reserve(1, { budgets, now: noon + 2 * reserveTtlMs }))).toBe(true);
  });

  it("settles a reserve once, also when it is told twice or late", async () => {
    const store = await open();
    const { spending } = store;
    const budgets = [budgetOf(everybody, 1)];
    const reservation = (await spending.reserve(1, { budgets, now: noon })) as Reservation;
    await spending.settle(reservation, used(0.25), noon);
    await spending.settle(reservation, used(0.25), noon);
    expect((await spending.spent(everybody, noon)).spentUsd).toBe(0.25);
    const late = (await spending.reserve(0.75, { budgets, now: noon })) as Reservation;
    await store.sweep(noon + 5 * reserveTtlMs);
    await spending.settle(late, used(0.5), noon + 5 * reserveTtlMs);
    expect((await spending.spent(everybody, noon)).spentUsd).toBe(0.75);
    expect(isReserved(await spending.reserve(0.1, { budgets, now: noon + 5 * reserveTtlMs }))).toBe(true);
  });

  it("keeps usage by day, person, channel, model and operation", async () => {
    const { spending } = await open();
    const settle = async (now: number, what: SettledCall) => {
      await spending.settle((await spending.reserve(0, { budgets: [], now })) as Reservation, what, now);
    };
    await settle(noon, used(0.25));
    await settle(noon, used(0.5, { usage: { isEstimated: true } }));
    const bob = { personId: "discord:2", model: "x", operation: "transcription" } as const;
    await settle(
      noon - dayMs,
      used(2, { labels: bob, usage: { audioSeconds: 1.5, isEstimated: true, isAssumed: true } }),
    );
    const ada = {
      day: today,
      personId: "discord:1",
      channel: "discord:channel:5",
      model: "m",
      operation: "chat",
      calls: 2,
      promptTokens: 200,
      completionTokens: 40,
      images: 0,
      audioSeconds: 0,
      costUsd: 0.75,
      estimatedCalls: 1,
      unpricedCalls: 0,
    };
    const others = {
      day: "2026-07-27",
      ...bob,
      calls: 1,
      audioSeconds: 1.5,
      costUsd: 2,
      estimatedCalls: 1,
      unpricedCalls: 1,
    };
    const month = { fromDay: "2026-07-01", toDay: today };
    expect(await spending.usage(month)).toEqual([expect.objectContaining(others), ada]);
    expect(await spending.usage({ ...month, personId: "discord:1" })).toEqual([ada]);
    expect(await spending.usage({ fromDay: today, toDay: today, personId: "discord:2" })).toEqual([]);
    expect(await spending.usage({ fromDay: today, toDay: "2026-07-01" })).toEqual([]);
  });

  it("says of what is spent whether a part is estimated, and forgets that with it", async () => {
    const { spending } = await open();
    const settle = async (id: string, usage: Partial<CountedUsage>) => {
      const reserved = (await spending.reserve(0, { budgets: [], now: noon })) as Reservation;
      await spending.settle(reserved, used(0.5, { usage, scopes: [person(id)] }), noon);
    };
    await settle("slack:T1:U1", {});
    await settle("slack:T1:U2", {});
    await settle("slack:T1:U2", { isEstimated: true });
    await settle("discord:3", { isEstimated: true, costUsd: 0 });
    const spent = (id: string) => spending.spent(person(id), noon, "month");
    expect(await spent("slack:T1:U1")).toEqual({ spentUsd: 0.5, isEstimated: false });
    expect(await spent("slack:T1:U2")).toEqual({ spentUsd: 1, isEstimated: true });
    expect(await spent("discord:3")).toEqual({ spentUsd: 0, isEstimated: false });
    const first = { personId: "slack:T1:U2", spentUsd: 1, isEstimated: true };
    expect(await spending.highestSpender(noon)).toEqual(first);
    await spending.forgetPeople("slack:T1:");
    expect(await spent("slack:T1:U2")).toEqual({ spentUsd: 0, isEstimated: false });
  });

  it("believes no amount that cannot be right", async () => {
    const { spending } = await open();
    for (const amount of [Number.NaN, Number.POSITIVE_INFINITY, -5, 1e300]) {
      const reservation = (await spending.reserve(0, { budgets: [], now: noon })) as Reservation;
      await spending.settle(reservation, used(amount, { usage: { promptTokens: amount } }), noon);
    }
    await spending.settle(
      (await spending.reserve(0, { budgets: [], now: noon })) as Reservation,
      used(1),
      noon,
    );
    expect(Number.isSafeInteger((await spending.spent(everybody, noon)).spentUsd * 1e9)).toBe(true);
    expect((await spending.spent(everybody, noon)).spentUsd).toBeGreaterThanOrEqual(1);
  });

  it("forgets a person's usage, and not that it was spent", async () => {
    const store = await open();
    const { spending } = store;
    for (const personId of ["discord:1", "discord:2"]) {
      const reservation = (await spending.reserve(0, { budgets: [], now: noon })) as Reservation;
      await spending.settle(
        reservation,
        used(0.5, { labels: { personId, model: "m", operation: "image" }, scopes: [person(personId)] }),
        noon,
      );
    }
    await store.erasure.forgetAuthor(undefined, "discord:1");
    const rows = await spending.usage({ fromDay: today, toDay: today });
    expect(rows.map(({ personId }) => personId)).toEqual(["discord:2"]);
    expect(await spending.usage({ fromDay: today, toDay: today, personId: "discord:1" })).toEqual([]);
    expect((await spending.spent(person("discord:1"), noon)).spentUsd).toBe(0.5);
  });

  it("forgets all that is counted of people whose ids have a common beginning, also what was spent", async () => {
    const store = await open();
    const { spending } = store;
    const people = ["slack:T1:U1", "slack:T1:U2", "slack:T10:U3"];
    for (const personId of people) {
      await spending.countTurn(personId, { max: 1, now: noon });
      const reservation = (await spending.reserve(0, { budgets: [], now: noon })) as Reservation;
      await spending.settle(
        reservation,
        used(0.5, { labels: { personId, model: "m", operation: "image" }, scopes: [person(personId)] }),
        noon,
      );
      await spending.tell(budgetOf(person(personId), 1), 50, noon);
    }
    const counted = async () => (await spending.countedPeople("slack:T1:")).toSorted();
    expect(await counted()).toEqual(["slack:T1:U1", "slack:T1:U2"]);
    await spending.forgetPeople("slack:T1:");
    expect(await counted()).toEqual([]);
    const rows = await spending.usage({ fromDay: today, toDay: today });
    expect(rows.map(({ personId }) => personId)).toEqual(["slack:T10:U3"]);
    for (const period of ["day", "month"] as const) {
      const spent = await Promise.all(
        people.map(async (id) => (await spending.spent(person(id), noon, period)).spentUsd),
      );
      expect(spent).toEqual([0, 0, 0.5]);
    }
    const isToldAnew = await Promise.all(
      people.map((personId) => spending.tell(budgetOf(person(personId), 1), 50, noon)),
    );
    expect(isToldAnew).toEqual([true, true, false]);
    expect(await spending.countTurn("slack:T1:U1", { max: 1, now: noon })).toBeUndefined();
    expect(await spending.countTurn("slack:T10:U3", { max: 1, now: noon })).toBeGreaterThan(0);
  });

  it.each([
    [0, 400],
    [30, 30],
  ])(
    "with a retention of %i days keeps usage for %i days and counters for a day",
    async (retention, days) => {
      const store = await open(retention);
      const { spending } = store;
      await spending.countTurn("ada", { max: 1, now: noon });
      const budgets = [budgetOf(everybody, 1)];
      await spending.settle(
        (await spending.reserve(1, { budgets, now: noon })) as Reservation,
        used(0.5),
        noon,
      );
      const query = { fromDay: today, toDay: today };
      await store.sweep(noon + 2 * dayMs);
      expect((await spending.spent(everybody, noon)).spentUsd).toBe(0);
      await store.sweep(noon + days * dayMs);
      expect(await spending.usage(query)).toHaveLength(1);
      await store.sweep(noon + (days + 1) * dayMs);
      expect(await spending.usage(query)).toEqual([]);
      expect((await current().bytes()).includes("discord:channel:5")).toBe(false);
    },
  );

  it("never passes a budget by more than one reserve, whatever ends, repeats or dies", async () => {
    const processes = [(await open()).spending, (await open()).spending];
    const step = fc.oneof(
      {
        weight: 3,
        arbitrary: fc.record({
          reserve: fc.array(fc.integer({ min: 1, max: 40 }), { minLength: 1, maxLength: 6 }),
        }),
      },
      { weight: 3, arbitrary: fc.record({ settle: fc.nat(), share: fc.integer({ min: 0, max: 100 }) }) },
      { weight: 1, arbitrary: fc.record({ die: fc.constantFrom(0, 1) }) },
      { weight: 1, arbitrary: fc.record({ waitMs: fc.integer({ min: 0, max: reserveTtlMs }) }) },
    );
    let runs = 0;
    await fc.assert(
      fc.asyncProperty(
        fc.array(step, { maxLength: 25 }),
        fc.integer({ min: 1, max: 100 }),
        async (steps, budgetUsd) => {
          // Each run spends on another day.
          let now = noon + ++runs * 3 * dayMs;
          const budgets = [budgetOf(everybody, budgetUsd)];
          let open: { at: number; process: number; since: number; reservation: Reservation; usd: number }[] =
            [];
          let spentUsd = 0;
          let highestUsd = 0;
          for (const each of steps) {
            if ("reserve" in each) {
              highestUsd = Math.max(highestUsd, ...each.reserve);
              const results = await Promise.all(
                each.reserve.map(async (usd, at) => {
                  const process = at % 2;
                  return { usd, process, result: await processes[process]!.reserve(usd, { budgets, now }) };
                }),
              );
              for (const { usd, process, result } of results)
                if (isReserved(result))
                  open.push({ at: open.length, process, since: now, reservation: result, usd });
                else expect(result.spentUsd + result.reservedUsd).toBeGreaterThanOrEqual(budgetUsd);
            } else if ("settle" in each) {
              const [one] = open.splice(open.length === 0 ? 0 : each.settle % open.length, 1);
              if (one === undefined) continue;
              const usd = (one.usd * each.share) / 100;
              const call = each.share === 0 ? undefined : used(usd);
              // The outcome of the first attempt is unknown to its process, so it is repeated by either.
              await Promise.all(processes.map((process) => process.settle(one.reservation, call, now)));
              spentUsd += usd;
            } else if ("die" in each) {
              open = open.filter(({ process }) => process !== each.die);
            } else {
              now += each.waitMs;
              // A live call ends before its reserve does.
              open = open.filter(({ since }) => now - since < reserveTtlMs);
            }
            const counted = (await processes[0]!.spent(everybody, now)).spentUsd;
            expect(counted).toBeCloseTo(spentUsd, 6);
            const inUseUsd = open.reduce((sum, { usd }) => sum + usd, 0);
            expect(counted + inUseUsd).toBeLessThan(budgetUsd + highestUsd + 1e-6);
          }
          // The reserves of the dead are released, but what was spent is not.
          const later = await processes[1]!.reserve(1, { budgets, now: now + 3 * reserveTtlMs });
          expect(isReserved(later)).toBe(spentUsd < budgetUsd);
        },
      ),
      { numRuns: 25 },
    );
  });

  it("never passes a day's or a month's budget by more than one reserve, where months end and clocks step", async () => {
    const processes = [(await open()).spending, (await open()).spending];
    const ends = ["2027-03-01", "2028-02-29", "2028-03-01", "2100-03-01", "2029-01-01", "2030-05-01"];
    const step = fc.oneof(
      { weight: 4, arbitrary: fc.record({ usd: fc.integer({ min: 1, max: 40 }) }) },
      { weight: 3, arbitrary: fc.record({ settle: fc.nat(), share: fc.integer({ min: 0, max: 100 }) }) },
      // Clocks also step back, and reserves of a minute are seen by a clock that is a minute behind.
      { weight: 2, arbitrary: fc.record({ stepMs: fc.integer({ min: -reserveTtlMs, max: reserveTtlMs }) }) },
      { weight: 1, arbitrary: fc.record({ stepMs: fc.constant(dayMs) }) },
    );
    let runs = 0;
    await fc.assert(
      fc.asyncProperty(
        fc.constantFrom(...ends),
        fc.array(step, { minLength: 15, maxLength: 40 }),
        fc.integer({ min: 1, max: 60 }),
        fc.integer({ min: 1, max: 100 }),
        async (end, steps, dayUsd, monthUsd) => {
          // Each run is charged to a scope of its own, because several spend in the same month.
          const scope = person(`run:${++runs}`);
          const budgets = [budgetOf(scope, dayUsd), budgetOf(scope, monthUsd, "month")];
          let now = Date.parse(`${end}T00:00:00Z`) - 2 * dayMs;
          let latest = now;
          let open: { readonly since: number; readonly reservation: Reservation; readonly usd: number }[] =
            [];
          const charged = new Map<string, number>();
          let highestUsd = 0;
          for (const each of steps) {
            if ("usd" in each) {
              const result = await processes[each.usd % 2]!.reserve(each.usd, { budgets, now });
              if (!isReserved(result)) {
                expect(result.spentUsd + result.reservedUsd).toBeGreaterThanOrEqual(result.budget.budgetUsd);
                continue;
              }
              highestUsd = Math.max(highestUsd, each.usd);
              open.push({ since: now, reservation: result, usd: each.usd });
            } else if ("settle" in each) {
              const [one] = open.splice(open.length === 0 ? 0 : each.settle % open.length, 1);
              if (one === undefined) continue;
              const usd = (one.usd * each.share) / 100;
              await processes[each.settle % 2]!.settle(one.reservation, used(usd, { scopes: [scope] }), now);
              const { day } = one.reservation;
              for (const name of [day, day.slice(0, 7)]) charged.set(name, (charged.get(name) ?? 0) + usd);
            } else {
              now = Math.max(latest - reserveTtlMs, now + each.stepMs);
              latest = Math.max(latest, now);
              open = open.filter(({ since }) => now - since < reserveTtlMs);
            }
            for (const { period, budgetUsd } of budgets) {
              const [day] = new Date(now).toISOString().split("T") as [string];
              const name = period === "day" ? day : day.slice(0, 7);
              const counted = (await processes[0]!.spent(scope, now, period)).spentUsd;
              expect(counted).toBeCloseTo(charged.get(name) ?? 0, 6);
              const inUseUsd = open
                .filter(({ reservation }) => reservation.day.startsWith(name))
                .reduce((sum, { usd }) => sum + usd, 0);
              expect(counted + inUseUsd).toBeLessThan(budgetUsd + highestUsd + 1e-6);
            }
          }
        },
      ),
      { numRuns: 40 },
    );
  });

  it("remembers what a process has counted that ended without another word", async () => {
    const budgets = [budgetOf(everybody, 1)];
    const { spending: before } = await open();
    await before.countTurn("ada", { max: 1, now: noon });
    const call = used(0.5, { scopes: [everybody] });
    await before.settle((await before.reserve(0.5, { budgets, now: noon })) as Reservation, call, noon);
    await before.reserve(0.5, { budgets, now: noon });

    const { spending } = await open();
    expect((await spending.spent(everybody, noon)).spentUsd).toBe(0.5);
    expect(await spending.countTurn("ada", { max: 1, now: noon })).toBeGreaterThan(0);
    expect(await spending.reserve(0.1, { budgets, now: noon })).toMatchObject({
      spentUsd: 0.5,
      reservedUsd: 0.5,
    });
    expect(isReserved(await spending.reserve(0.1, { budgets, now: noon + 2 * reserveTtlMs }))).toBe(true);
  });
});
