import { setImmediate as turnOfLoop } from "node:timers/promises";
import { expect, it } from "vitest";
import { longestTurnMs } from "../../support/longest-turn.ts";

it("measures a turn of the event loop, and nothing turns any more when the work is over", async () => {
  const longest = await longestTurnMs(async () => {
    const before = process.threadCpuUsage().user;
    while (process.threadCpuUsage().user - before < 20_000);
    await turnOfLoop();
  });
  expect(longest).toBeGreaterThanOrEqual(20);
  await turnOfLoop();
  expect(process.getActiveResourcesInfo()).not.toContain("Immediate");
});
