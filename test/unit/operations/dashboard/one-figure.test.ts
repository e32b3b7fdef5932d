import * as fc from "fast-check";
import { describe, expect, it, vi } from "vitest";
import { budgetNotice } from "../../../../src/core/error-messages.ts";
import { ParleyError } from "../../../../src/core/errors.ts";
import type { Usage } from "../../../../src/core/gateway.ts";
import { budgetLines } from "../../../../src/core/usage.ts";
import {
  createDashboardData,
  type DashboardData,
} from "../../../../src/operations/dashboard/dashboard-data.ts";
import { formatCost, formatUsd, inLanguage } from "../../../../src/words/translate.ts";
import { languages } from "../../../../src/words/languages.ts";
import { createWorld, type World } from "../../../support/assistant-world.ts";
import { ada, call, message } from "../../../support/fakes.ts";
import { toUsageView } from "../../../../src/platforms/web/items.ts";
import { fixture } from "../../../fixtures/fixtures.ts";
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
          fc.boolean(),
          (usd, isEstimated) =>
            inLanguage(language, () => {
              const shown = formatUsd(usd);
              const budgetUsd = usd * 4;
              const spentUsd = budgetUsd - usd;
              const scope = { kind: "person", id: "fake:ada" } as const;
              const budget = { scope, period: "day", budgetUsd, spentUsd, isEstimated, renewsAt: 0 } as const;
              const left = formatCost(budgetUsd - spentUsd, isEstimated);
              const mark = left.startsWith("~");
              expect(mark).toBe(isEstimated);
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

/** What the dashboard shows of a world. */
async function dashboardOf({ store: { spending }, clock }: World, budgetUsd: number): Promise<DashboardData> {
  const now = () => clock.now();
  return await createDashboardData({
    usage: (query: Parameters<typeof spending.usage>[0]) => spending.usage(query),
    spentToday: () => spending.spent({ kind: "deployment" }, now()),
    highestSpender: () => spending.highestSpender(now()),
    budgets: { dayUsd: budgetUsd, personDayUsd: budgetUsd },
    readiness: () => Promise.resolve({ status: "ready", parts: {} }),
    connections: () => [],
    deliveryWaiting: () => [],
    load: () => ({ turns: { waiting: 0 }, gatewayCalls: { running: 0 } }),
    gateway: { description: "", state: () => "fine" },
    store: { describe: () => "", sizeBytes: async () => undefined, writes: () => ({}) },
    metrics: { read: async () => [] },
    history: { minutes: async () => [], day: async () => ({}) },
    problems: { read: () => [] },
    names: async () => ({}),
    disk: async () => undefined,
    version: "0",
    maxCalls: 1,
    now,
  } as unknown as Parameters<typeof createDashboardData>[0])();
}

/** One thing that a person does, and what the gateway reports of it. */
type Asked =
  | { readonly kind: "ask"; readonly usage: Partial<Usage> }
  | { readonly kind: "speak" }
  | { readonly kind: "break"; readonly text: string }
  | { readonly kind: "stop"; readonly text: string };

const tokens = fc.integer({ min: 1, max: 2000 });
const reported = fc.record({ promptTokens: tokens, completionTokens: tokens, isEstimated: fc.boolean() });
const asked: fc.Arbitrary<Asked> = fc.oneof(
  reported.map((usage) => ({ kind: "ask", usage }) as const),
  fc
    .tuple(reported, fc.double({ min: 1e-6, max: 0.2, noNaN: true }))
    .map(([usage, costUsd]) => ({ kind: "ask", usage: { ...usage, costUsd } }) as const),
  fc.constant({ kind: "speak" } as const),
  fc.constant({ kind: "break", text: "half an" } as const),
  fc.string({ minLength: 1, maxLength: 3000, unit: fc.constantFrom("a", "é", " b") }).map((text) => {
    return { kind: "stop", text: `x${text}` } as const;
  }),
);

/** The bold amount that is left, the cells of the line of costs, and so on: every amount of a text. */
const amountsIn = (text: string): string[] => text.match(/~?\$[\d.,]+/g) ?? [];

describe("what a person has spent", () => {
  const budgetUsd = 1000;
  const dollar = { inputPerMillionUsd: 1, outputPerMillionUsd: 4, perAudioMinuteUsd: 0.006 };

  it("is one figure wherever it is shown, whatever the gateway reports and whether a price is known", async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(asked, { minLength: 1, maxLength: 4 }),
        fc.boolean(),
        async (all, isPriced) => {
          let metered = 0;
          const world = await createWorld({
            startAt: Date.UTC(2026, 10, 21, 12),
            spending: { personDayUsd: budgetUsd, dayUsd: budgetUsd },
            files: { voice: await fixture("voice.ogg") },
            ...(isPriced ? { prices: { chatty: dollar, listener: dollar } } : {}),
            meter(event) {
              if (event.kind === "charged") metered += event.usage.costUsd;
            },
          });
          try {
            for (const each of all) await run(world, each);
            const data = await dashboardOf(world, budgetUsd);
            const usd = data.budgets.spentTodayUsd ?? 0;
            const rows = await world.store.spending.usage({ fromDay: "2026-11-01", toDay: "2026-11-30" });
            const isEstimated = rows.some(({ estimatedCalls }) => estimatedCalls > 0);

            expect(usd).toBeGreaterThan(0);
            expect(metered).toBeCloseTo(usd, 8);
            expect(data.usage?.total.costUsd).toBeCloseTo(usd, 8);
            expect(data.usage?.people).toMatchObject([
              { key: "fake:ada", costUsd: data.usage?.total.costUsd },
            ]);
            for (const kind of ["budget", "person-budget"]) {
              const full = data.full.find((one) => one.kind === kind);
              expect(full?.used).toBeCloseTo(usd, 8);
              expect(full?.isEstimated ?? false).toBe(isEstimated);
            }

            const answers = await world.history.history("fake:c1", { maxMessages: 100 });
            const calls = answers.flatMap(({ receipt }) => receipt?.calls ?? []);
            const ofReceipts = toUsageView(calls);
            expect(ofReceipts?.costUsd).toBeCloseTo(usd, 8);
            expect(ofReceipts?.isEstimated ?? false).toBe(isEstimated);
            expect(ofReceipts?.isPartial).toBeUndefined();

            const spent = formatCost(usd, isEstimated);
            const left = formatCost(budgetUsd - usd, isEstimated);
            await world.answered(call("usage", {}, { inConversation: true }));
            const { text } = world.platform.replies.at(-1)!;
            expect(amountsIn(text)).toEqual([spent, spent, left, "$1,000.00", left, "$1,000.00"]);
            await world.answered(call("usage", { by: "day" }, { inConversation: true }));
            expect(amountsIn(world.platform.replies.at(-1)!.text)).toEqual([spent]);
            await world.answered(call("usage", { csv: true }, { inConversation: true }));
            const csv = new TextDecoder().decode(world.platform.replies.at(-1)?.files[0]?.bytes);
            const [head = [], ...lines] = csv
              .trim()
              .split("\r\n")
              .map((line) => line.split(","));
            const costs = lines.map((cells) => Number(cells[head.indexOf("cost_usd")]));
            expect(costs.reduce((sum, cost) => sum + cost, 0)).toBeCloseTo(usd, 8);
          } finally {
            await world.close();
          }
        },
      ),
      { numRuns: 25 },
    );
  });

  async function run(world: World, asked: Asked): Promise<void> {
    switch (asked.kind) {
      case "ask":
        world.answerWith("an answer", asked.usage);
        await world.ask("what?");
        return;
      case "speak":
        world.answerWith("heard", { promptTokens: 1, completionTokens: 1, isEstimated: false });
        await world.ask("", { attachments: [{ id: "voice", name: "note.ogg", source: null }] });
        return;
      case "break":
        world.gateway.answerWith(async function* breaks() {
          yield { kind: "text", text: asked.text };
          throw new ParleyError("gateway-interrupted", "the connection broke");
        });
        await world.ask("what?");
        return;
      case "stop": {
        world.hang(asked.text);
        const before = world.platform.replies.length;
        await world.assistant.receive(message("go"));
        await world.passingTime(
          vi.waitFor(() => expect(world.platform.replies[before]?.text).toMatch(/^x/), { timeout: 5000 }),
        );
        await world.assistant.press({ kind: "stop", key: "fake:c1" }, ada);
        await world.settled();
        return;
      }
    }
  }
});
