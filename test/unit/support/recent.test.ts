import { expect, it } from "vitest";
import { createRecent } from "../../../src/support/recent.ts";

it("forgets what was not used for longest", () => {
  const recent = createRecent<number>(2);
  recent.set("a", 1);
  recent.set("b", 2);
  expect(recent.get("a")).toBe(1);
  recent.set("c", 3);
  expect(recent.has("b")).toBe(false);
  expect([recent.get("a"), recent.get("c")]).toEqual([1, 3]);
});

it("forgets what is old, by the clock it is given, from time 0 on", () => {
  let now = 0;
  const recent = createRecent(10, 1000, () => now);
  recent.set("a", true);
  now = 1000;
  expect(recent.has("a")).toBe(true);
  now = 1001;
  expect(recent.has("a")).toBe(false);
  expect(recent.get("a")).toBeUndefined();
});

it("keeps what has no time to live", () => {
  let now = 0;
  const recent = createRecent(10, undefined, () => now);
  recent.set("a", true);
  now = Number.MAX_SAFE_INTEGER;
  expect(recent.has("a")).toBe(true);
});
