import { expect, test } from "vitest";
import { readAttacks } from "../attacks.ts";

test("each attack that is known stands above a test", () => {
  const attacks = readAttacks();
  expect(attacks.length).toBeGreaterThan(80);
  expect(attacks.filter(({ title }) => title === undefined)).toEqual([]);
});
