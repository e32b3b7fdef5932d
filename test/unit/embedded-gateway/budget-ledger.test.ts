import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { createBudgetLedger, type Reservation } from "../../../src/embedded-gateway/keys/key-ring.ts";
import { createKeyUsage } from "../../../src/embedded-gateway/keys/key-usage.ts";
import { createMemoryKeyStore } from "../../support/memory-key-store.ts";

const now = () => Date.UTC(2026, 10, 20, 12);

function create() {
  const store = createMemoryKeyStore();
  const keyUsage = createKeyUsage(store);
  const lost: number[] = [];
  const ledger = createBudgetLedger({ keyUsage, now, onLost: (_, costUsd) => lost.push(costUsd) });
  const spent = async () => (await keyUsage.read("k", "day", new Date(now()))).costUsd;
  return { store, ledger, spent, lost };
}

describe("reserving and settling", () => {
  it("never passes the budget by more than one request's reserve, however requests interleave", async () => {
    const request = fc.record({
      worstCents: fc.integer({ min: 0, max: 300 }),
      /** The part of the reserve that is used, or `undefined` when nothing was used. */
      usedPart: fc.option(fc.double({ min: 0, max: 1, noNaN: true }), { nil: undefined }),
    });
    await fc.assert(
      fc.asyncProperty(
        fc.array(request, { minLength: 1, maxLength: 40 }),
        fc.integer({ min: 1, max: 500 }),
        fc.scheduler(),
        async (requests, budgetCents, scheduler) => {
          const { ledger, spent } = create();
          const budgetUsd = budgetCents / 100;
          const running = new Set<number>();
          const largestUsd = Math.max(...requests.map(({ worstCents }) => worstCents)) / 100;
          const run = async ({ worstCents, usedPart }: (typeof requests)[number]) => {
            const worstUsd = worstCents / 100;
            let reservation: Reservation;
            try {
              reservation = await ledger.reserve("k", { budgetUsdPerDay: budgetUsd }, worstUsd);
            } catch (error) {
              expect(error).toMatchObject({ code: expect.stringMatching(/^budget_/) as string });
              return;
            }
            running.add(worstUsd);
            const reservedUsd = [...running].reduce((sum, usd) => sum + usd, 0);
            expect((await spent()) + Math.min(reservedUsd, worstUsd)).toBeLessThanOrEqual(
              budgetUsd + largestUsd + 1e-9,
            );
            await scheduler.schedule(Promise.resolve());
            running.delete(worstUsd);
            const costUsd = worstUsd * (usedPart ?? 0);
            await reservation.settle(usedPart === undefined ? undefined : { usage: {}, costUsd });
          };
          const all = requests.map((one) => scheduler.schedule(Promise.resolve()).then(() => run(one)));
          await scheduler.waitFor(Promise.all(all));
          expect(await spent()).toBeLessThanOrEqual(budgetUsd + largestUsd + 1e-9);
          // Nothing stays reserved: what is left of the budget can be used.
          const isSpent = (await spent()) >= budgetUsd;
          const last = ledger.reserve("k", { budgetUsdPerDay: budgetUsd }, 1000);
          if (isSpent) await expect(last).rejects.toMatchObject({ code: "budget_exceeded" });
          else await last;
        },
      ),
      { numRuns: 60 },
    );
  });

  it("lets one of many wait for the rest of a budget, and says that it comes back", async () => {
    const { ledger } = create();
    const budgets = { budgetUsdPerDay: 1 };
    const first = await ledger.reserve("k", budgets, 5);
    await expect(ledger.reserve("k", budgets, 0.01)).rejects.toMatchObject({
      status: 429,
      code: "budget_reserved",
      headers: { "retry-after": "1" },
    });
    await first.settle({ usage: {}, costUsd: 0.5 });
    await (await ledger.reserve("k", budgets, 5)).settle({ usage: {}, costUsd: 0.5 });
    await expect(ledger.reserve("k", budgets, 0)).rejects.toMatchObject({
      status: 402,
      code: "budget_exceeded",
    });
  });

  it("counts what the store could not keep", async () => {
    const { ledger, store, lost } = create();
    const budgets = { budgetUsdPerDay: 1 };
    const reservation = await ledger.reserve("k", budgets, 5);
    store.isDown = true;
    await reservation.settle({ usage: {}, costUsd: 2 });
    store.isDown = false;
    expect(lost).toEqual([2]);
    await expect(ledger.reserve("k", budgets, 0)).rejects.toMatchObject({ code: "budget_exceeded" });
  });
});
