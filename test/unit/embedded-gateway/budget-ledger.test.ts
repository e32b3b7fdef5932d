import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { createKeyRing, type KeyLimits } from "../../../src/embedded-gateway/key-ring.ts";
import type { Charge, Target } from "../../../src/embedded-gateway/router.ts";
import { createMemoryKeyStore } from "../../support/memory-key-store.ts";
import { createQuietLog } from "../../support/quiet-log.ts";

const now = () => Date.UTC(2026, 10, 20, 12);
/** A token costs a cent. */
const prices = { inputPerMillionUsd: 10_000, outputPerMillionUsd: 10_000 };
const target = {
  publicId: "up/small",
  prefix: "up",
  upstreamModel: "small",
  model: { id: "small", prices },
} as unknown as Target;

function create() {
  const store = createMemoryKeyStore();
  const ring = createKeyRing({ store, log: createQuietLog(), now });
  /** Makes a key. `reserve` reserves at most so many cents, `settle` ends with what was used. */
  const issue = async (limits: KeyLimits) => {
    const { key, secret } = await ring.create("ada", { concurrentRequests: 1000, ...limits });
    return {
      spentUsd: async () => (await ring.usage(key.id, "day")).costUsd,
      async reserve(cents: number, mustFit = false): Promise<Charge> {
        const access = await ring.admit(secret);
        const most = { promptTokens: cents };
        const worst = { most, whenLeft: most, whenBroken: most, mustFit };
        const charge = await access?.reserve("chat", [target], worst);
        if (charge === undefined) throw new Error("the key is not admitted");
        return charge;
      },
    };
  };
  return { store, issue };
}

/** Ends a request. What it used is counted a little later. */
function settle(charge: Charge, cents: number | undefined): void {
  if (cents !== undefined) charge.settle(target, { promptTokens: cents });
  charge.end();
}

describe("reserving and settling", () => {
  it("never passes the budget by more than one request's reserve, however requests interleave", async () => {
    const { issue } = create();
    const request = fc.record({
      worstCents: fc.integer({ min: 1, max: 300 }),
      /** The part of the reserve that is used, or `undefined` when nothing was used. */
      usedPart: fc.option(fc.double({ min: 0, max: 1, noNaN: true }), { nil: undefined }),
    });
    await fc.assert(
      fc.asyncProperty(
        fc.array(request, { minLength: 1, maxLength: 20 }),
        fc.integer({ min: 1, max: 500 }),
        fc.scheduler(),
        async (requests, budgetCents, scheduler) => {
          const key = await issue({ budgetUsdPerDay: budgetCents / 100, budgetUsdPerMonth: 1000 });
          const largestCents = Math.max(...requests.map(({ worstCents }) => worstCents));
          let usedCents = 0;
          const run = async ({ worstCents, usedPart }: (typeof requests)[number]) => {
            let charge: Charge;
            try {
              charge = await key.reserve(worstCents);
            } catch (error) {
              expect(error).toMatchObject({ code: expect.stringMatching(/^budget_/) as string });
              return;
            }
            await scheduler.schedule(Promise.resolve());
            const cents = usedPart === undefined ? undefined : Math.floor(worstCents * usedPart);
            usedCents += cents ?? 0;
            settle(charge, cents);
          };
          const all = requests.map((one) => scheduler.schedule(Promise.resolve()).then(() => run(one)));
          await scheduler.waitFor(Promise.all(all));
          expect(usedCents).toBeLessThan(budgetCents + largestCents);
          await expect.poll(key.spentUsd).toBeCloseTo(usedCents / 100, 6);
          // Nothing stays reserved: what is left of the budget can be used.
          const last = key.reserve(100_000);
          if (usedCents >= budgetCents) await expect(last).rejects.toMatchObject({ code: "budget_exceeded" });
          else await last;
        },
      ),
      { numRuns: 30 },
    );
  });

  it("lets one of many wait for the rest of a budget, and says that it comes back", async () => {
    const key = await create().issue({ budgetUsdPerDay: 1 });
    const first = await key.reserve(500);
    await expect(key.reserve(1)).rejects.toMatchObject({
      status: 429,
      code: "budget_reserved",
      headers: { "retry-after": "1" },
    });
    settle(first, 50);
    await expect.poll(key.spentUsd).toBe(0.5);
    // It may cost more than is left, which is said at once.
    await expect(key.reserve(51, true)).rejects.toMatchObject({ status: 402, code: "budget_exceeded" });
    settle(await key.reserve(50, true), 50);
    await expect.poll(key.spentUsd).toBe(1);
    await expect(key.reserve(1)).rejects.toMatchObject({ status: 402, code: "budget_exceeded" });
  });

  it.each(["budgetUsdPerDay", "budgetUsdPerMonth"] as const)("refuses what %s does not pay", async (name) => {
    const key = await create().issue({ [name]: 1 });
    settle(await key.reserve(100), 100);
    await expect.poll(key.spentUsd).toBe(1);
    const seconds = name === "budgetUsdPerDay" ? 12 * 3600 : 10.5 * 24 * 3600;
    await expect(key.reserve(1)).rejects.toMatchObject({ headers: { "retry-after": String(seconds) } });
  });

  it("keeps the reserve of what the store could not count, and counts it when the store is back", async () => {
    const { issue, store } = create();
    const key = await issue({ budgetUsdPerDay: 1 });
    const charge = await key.reserve(500);
    store.isDown = true;
    settle(charge, 200);
    await expect.poll(() => store.refusals).toBeGreaterThan(0);
    store.isDown = false;
    await expect(key.reserve(1)).rejects.toMatchObject({ code: "budget_reserved" });
    await expect.poll(key.spentUsd, { timeout: 10_000 }).toBe(2);
    await expect(key.reserve(1)).rejects.toMatchObject({ code: "budget_exceeded" });
  });
});
