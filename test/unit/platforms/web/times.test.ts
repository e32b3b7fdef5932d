import { expect, test } from "vitest";
import { loadPageModule } from "./page-module.ts";

const { dayOf, toCostText, toDayText, toLocale } = await loadPageModule<{
  readonly dayOf: (ms: number) => string;
  readonly toDayText: (ms: number, now: number, locale: string) => string;
  readonly toCostText: (usd: number, locale: string) => string;
  readonly toLocale: (language: string, browser: string) => string;
}>("times");

const at = (...parts: readonly [number, number, number, number?]) => {
  const [year, month, day, hour = 12] = parts;
  return new Date(year, month - 1, day, hour).getTime();
};

test("days are named by how long ago they are", () => {
  const now = at(2026, 3, 30, 0);
  expect(toDayText(at(2026, 3, 30, 23), now, "en")).toBe("Today");
  expect(toDayText(at(2026, 3, 29, 23), now, "en")).toBe("Yesterday");
  expect(toDayText(at(2026, 3, 29, 1), now, "de")).toBe("Gestern");
  expect(toDayText(at(2026, 3, 27), now, "en")).toBe("Friday");
  expect(toDayText(at(2026, 3, 23), now, "en-GB")).toMatch(/^Mon,? 23 March$/);
  expect(toDayText(at(2025, 3, 30), now, "en-GB")).toMatch(/2025$/);
  // A wrong clock may show a message of tomorrow.
  expect(toDayText(at(2026, 3, 31), now, "en-GB")).toMatch(/31 March/);
});

test("midnight separates days", () => {
  expect(dayOf(at(2026, 3, 29, 23))).not.toBe(dayOf(at(2026, 3, 30, 0)));
  expect(dayOf(at(2026, 3, 30, 0))).toBe(dayOf(at(2026, 3, 30, 23)));
});

test("costs have the digits that tell something", () => {
  const texts = [0, 0.0000123, 0.0042, 0.01, 12.3, 1234.5].map((usd) => toCostText(usd, "en"));
  expect(texts).toEqual(["$0", "$0.000012", "$0.0042", "$0.01", "$12.30", "$1,234.50"]);
});

test("the browser's hours are used in its own language alone", () => {
  expect(toLocale("en", "en-GB")).toBe("en-GB");
  expect(toLocale("en", "pt-BR")).toBe("en");
});
