import { expect, test } from "vitest";
import { createRareLog } from "../../../src/core/telemetry.ts";
import { createManualClock } from "../../support/manual-clock.ts";

test("the first of a kind is logged, then once a minute with their number", async () => {
  const clock = createManualClock();
  const lines: unknown[] = [];
  const warn = createRareLog({ warn: (fields, message) => lines.push([message, fields]) }, () =>
    clock.monotonic(),
  );
  for (let index = 0; index < 500; index += 1) warn("host", {}, "wrong host");
  warn("origin", { path: "/" }, "wrong origin");
  expect(lines).toEqual([
    ["wrong host", { count: 1 }],
    ["wrong origin", { count: 1, path: "/" }],
  ]);
  await clock.advance(60_000);
  warn("host", {}, "wrong host");
  expect(lines.at(-1)).toEqual(["wrong host", { count: 500 }]);
});
