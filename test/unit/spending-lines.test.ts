import { expect, test } from "vitest";
import { parseConfig } from "../../src/config.ts";
import { describeLimits, spendingWarning } from "../../src/start-lines.ts";

test("the start says what limits use", () => {
  expect(describeLimits(parseConfig({}))).toBe("20 requests a minute and person");
  expect(
    describeLimits(
      parseConfig({
        TURNS_PERSON_MINUTE: "0",
        BUDGET_PERSON_DAY_USD: "0.5",
        BUDGET_DAY_USD: "20",
        MODELS_ALLOWED: "gpt-*,whisper-1",
      }),
    ),
  ).toBe("any number of requests; $0.5 a day and person; $20 a day in all; models gpt-*, whisper-1");
});

test("the start warns when nothing limits spending", () => {
  const gateway = { GATEWAY_BASE_URL: "https://models.example.com" };
  expect(spendingWarning(parseConfig(gateway))).toContain("nothing limits spending");
  expect(spendingWarning(parseConfig({ GATEWAY_CONFIG: "gateway.jsonc" }))).toBeDefined();
  // The sandbox costs nothing.
  expect(spendingWarning(parseConfig({}))).toBeUndefined();
  for (const limit of [{ ALLOW: "discord:guild:1" }, { BUDGET_PERSON_DAY_USD: "1" }, { BUDGET_DAY_USD: "0" }])
    expect(spendingWarning(parseConfig({ ...gateway, ...limit }))).toBeUndefined();
});
