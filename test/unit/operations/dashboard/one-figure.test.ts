import * as fc from "fast-check";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { budgetNotice } from "../../../../src/core/error-messages.ts";
import type { BudgetState } from "../../../../src/core/spending.ts";
import { budgetLines } from "../../../../src/core/usage.ts";
import { createDashboardData } from "../../../../src/operations/dashboard/dashboard-data.ts";
import { formatUsd, inLanguage } from "../../../../src/words/translate.ts";
import { languages } from "../../../../src/words/languages.ts";
import { createWorld, type World } from "../../../support/assistant-world.ts";
import { call } from "../../../support/fakes.ts";
import { loadPageModule } from "../../platforms/web/page-module.ts";

const { toCostText } = await loadPageModule<{
  readonly toCostText: (usd: number, locale: string) => string;
}>("times");

/** An amount as the dashboard shows it in a browser of this language. */
async function loadDashboardFormat(language: string): Promise<(usd: number) => string> {
  const words = { querySelector: () => ({ textContent: JSON.stringify({ language, messages: {} }) }) };
  Object.assign(globalThis, { document: words });
  const url = new URL("../../../../src/operations/dashboard/page/words.js", import.meta.url);
  url.search = language;
  try {
    return ((await import(url.href)) as { usd: (amount: number) => string }).usd;
  } finally {
    Reflect.deleteProperty(globalThis, "document");
  }
}

describe("an amount", () => {
  it("is rounded alike wherever it is shown, in every language", async () => {
    for (const language of languages) {
      const onDashboard = await loadDashboardFormat(language);
      fc.assert(
        fc.property(
          fc.oneof(
            fc.double({ min: 0, max: 1000, noNaN: true }),
            fc.double({ min: 1e-6, max: 0.02, noNaN: true }),
          ),
          (usd) =>
            inLanguage(language, () => {
              const shown = formatUsd(usd);
              const budgetUsd = usd * 4;
              const spentUsd = budgetUsd - usd;
              const scope = { kind: "person", id: "fake:ada" } as const;
              const budget: BudgetState = { scope, period: "day", budgetUsd, spentUsd, renewsAt: 0 };
              const left = formatUsd(budgetUsd - spentUsd);
              expect(onDashboard(usd)).toBe(shown);
              expect(toCostText(usd, language)).toBe(shown);
              expect(budgetLines([budget]).join()).toContain(left);
              if (usd > 0) expect(budgetNotice(budget, 50, 0)).toContain(left);
            }),
        ),
      );
    }
  });
});

describe("a person's budget", () => {
  let world: World;
  beforeEach(async () => {
    world = await createWorld({ spending: { personDayUsd: 1 } });
  });
  afterEach(() => world.close());

  it("has one figure in /usage and on the dashboard, also where the price of a model is not known", async () => {
    world.answerWith("short", { promptTokens: 10_000, completionTokens: 6000 });
    await world.ask("what?");
    await world.answered(call("usage", {}));
    const { spending } = world.store;
    const now = () => world.clock.now();
    const data = await createDashboardData({
      usage: (query: Parameters<typeof spending.usage>[0]) => spending.usage(query),
      spentTodayUsd: () => spending.spentUsd({ kind: "deployment" }, now()),
      highestSpender: () => spending.highestSpender(now()),
      budgets: { dayUsd: undefined, personDayUsd: 1 },
      readiness: () => Promise.resolve({ status: "ready", parts: {} }),
      connections: () => [],
      deliveryWaiting: () => [],
      load: () => ({ turns: { waiting: 0 }, gatewayCalls: { running: 0 } }),
      gateway: { description: "", state: () => "fine" },
      store: { describe: () => "", sizeBytes: async () => undefined, writes: () => ({}) },
      history: { activity: () => ({}), series: () => ({}) },
      day: { slices: () => [], modelsSince: () => [] },
      problems: { read: () => [] },
      names: async () => ({}),
      disk: async () => undefined,
      version: "0",
      maxCalls: 1,
      now,
    } as unknown as Parameters<typeof createDashboardData>[0])();
    const shown = data.full.find(({ kind }) => kind === "person-budget");
    expect(shown).toMatchObject({ name: "fake:ada", limit: 1 });
    // 10,000 tokens at $15 and 6,000 at $75 a million.
    expect(shown?.used).toBeCloseTo(0.6, 6);
    const left = formatUsd(1 - (shown?.used ?? 0));
    expect(left).toBe("$0.40");
    expect(world.platform.replies.at(-1)?.text).toContain(left);
  });
});
