import { describe, expect, it } from "vitest";
import { findSoakProblems, runSoak } from "./soak/run-soak.ts";
import { has } from "../support/requirements.ts";

/** The caches of a new process still fill. `bench/soak.ts` runs longer and allows less growth. */
const maxGrowth = 1.5;

describe.skipIf(!has("redis"))("two processes with a shard each on one Redis, in many servers", () => {
  it("lose nothing and answer once while one loses its connection and the other is killed", async () => {
    const lines: string[] = [];
    const result = await runSoak({
      minutes: 1,
      servers: 200,
      chatsPerSecond: 30,
      asksPerSecond: 1,
      log: (line) => lines.push(line),
    });
    expect(findSoakProblems(result, maxGrowth), JSON.stringify([result, lines], undefined, 1)).toEqual([]);
    expect(result.asked).toBeGreaterThan(50);
    expect(result).toMatchObject({ identifies: 3, resumes: 1 });
  }, 240_000);
});
