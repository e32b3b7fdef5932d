import { it } from "vitest";
import { runChaos } from "../chaos/run-chaos.ts";
import { has } from "../support/requirements.ts";

/** The short form of `npm run chaos`. */
for (const store of ["redis", "sqlite"] as const) {
  it.skipIf(store === "redis" && !has("redis"))(
    `nothing is lost or answered twice while processes die: ${store}`,
    { timeout: 120_000, concurrent: true },
    async ({ expect }) => {
      const result = await runChaos({ store, seed: 4711, events: 30, seconds: 8, instances: 3 });
      const { doubled, lost, historyFaults, problems, output } = result;
      expect({ doubled, lost, historyFaults }, `${problems.join("\n")}\n${output}`).toEqual({
        doubled: 0,
        lost: 0,
        historyFaults: 0,
      });
      expect(result.accepted).toBeGreaterThan(20);
      expect(result.answered + result.sealed).toBe(result.accepted);
      // Faults were made.
      expect(result.starts).toBeGreaterThan(store === "redis" ? 3 : 1);
    },
  );
}
