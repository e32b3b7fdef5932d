import { it } from "vitest";
import { faultCounts } from "../chaos/account/account.ts";
import { runChaos } from "../chaos/run-chaos.ts";
import { has } from "../support/requirements.ts";

/** This is the short form of `npm run chaos`. */
for (const store of ["redis", "postgres", "sqlite"] as const) {
  it.skipIf(store !== "sqlite" && !has(store))(
    `each message has one outcome while processes die: ${store}`,
    { timeout: 240_000, concurrent: true },
    async ({ expect }) => {
      const only = ["killed", "stopped", "rolled"] as const;
      const result = await runChaos({ store, seed: 4711, faults: 5, instances: 2, only });
      const wrong = faultCounts.filter((count) => result[count] > 0);
      expect(wrong, `${result.problems.join("\n")}\n${result.output}`).toEqual([]);
      expect(result.answered).toBeGreaterThan(12);
      // Processes have died and started again.
      expect(result.starts).toBeGreaterThan(store === "sqlite" ? 1 : 2);
    },
  );
}
