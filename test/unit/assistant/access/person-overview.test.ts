import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { createPersonOverview } from "../../../../src/assistant/access/person-overview.ts";
import type { Actor } from "../../../../src/core/access.ts";
import { isParleyError, ParleyError } from "../../../../src/core/errors.ts";
import type { UsageQuery } from "../../../../src/core/spending.ts";

const by: Actor = { platform: "slack", author: { id: "slack:T1:U1", name: "Ana" } };

let asked: UsageQuery[];
let isRefused: boolean;
beforeEach(() => {
  asked = [];
  isRefused = false;
});
afterEach(() => {
  expect(asked.every(({ personId }) => personId === by.author.id)).toBe(true);
});

const overview = createPersonOverview({
  expectAllowed: () =>
    isRefused ? Promise.reject(new ParleyError("access-denied", "the test refuses")) : Promise.resolve(),
  settings: { explainTo: () => Promise.resolve({ language: "de", settings: [] }) },
  ledger: {
    usage(query) {
      asked.push(query);
      return Promise.resolve([]);
    },
  },
  budgets: {
    inForce: ({ personId }) =>
      Promise.resolve([
        { scope: { kind: "person", id: personId }, budgetUsd: 1, spentUsd: 0.5, renewsAt: 0 },
      ]),
  },
  now: () => Date.UTC(2026, 10, 22, 12),
});

describe("what concerns one person", () => {
  test("is their own usage of this month, and their budgets", async () => {
    expect(await overview(by)).toMatchObject({
      language: "de",
      today: "2026-11-22",
      usage: [],
      budgets: [{ scope: { id: by.author.id } }],
    });
    expect(asked).toEqual([{ fromDay: "2026-11-01", toDay: "2026-11-22", personId: by.author.id }]);
  });

  test("is not read for whom the rules refuse", async () => {
    isRefused = true;
    await expect(overview(by)).rejects.toSatisfy((error) => isParleyError(error, "access-denied"));
    expect(asked).toEqual([]);
  });
});
