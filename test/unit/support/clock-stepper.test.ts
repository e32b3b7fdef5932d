import { spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";
import { afterEach, expect, it } from "vitest";
import { type ClockStepper, createClockStepper } from "../../support/clock-stepper.ts";

const dayMs = 86_400_000;
let clock: ClockStepper | undefined;

afterEach(() => clock?.remove());

/** This program prints its clocks for each line of input. */
const program = `
  const print = () => {
    const made = new Date();
    console.log(JSON.stringify({
      now: Date.now(), made: made.getTime(), text: Date.parse(Date()), elapsed: performance.now(),
      parsed: new Date("2026-01-02T00:00:00Z").toISOString(), fields: new Date(2026, 0, 2).getDate(),
      isDate: made instanceof Date, utc: Date.UTC(2026, 0),
    }));
  };
  require("node:readline").createInterface({ input: process.stdin }).on("line", print);
`;

it.each(["nodeArgs", "settings"] as const)("steps a process's wall clock only, given %s", async (given) => {
  clock = await createClockStepper();
  const child = spawn(
    process.execPath,
    [...(given === "nodeArgs" ? clock.nodeArgs : []), "--input-type=commonjs", "-e", program],
    {
      env: { PATH: process.env["PATH"], ...(given === "settings" ? clock.settings : {}) },
      stdio: ["pipe", "pipe", "inherit"],
    },
  );
  const lines = createInterface({ input: child.stdout });
  const read = async () => {
    child.stdin.write("\n");
    const [line] = (await once(lines, "line")) as [string];
    return JSON.parse(line) as Record<string, unknown> & Record<"now" | "made" | "text" | "elapsed", number>;
  };
  let { elapsed } = await read();
  for (const stepMs of [dayMs, -2 * dayMs, 11 * 60_000]) {
    await clock.stepBy(stepMs);
    const expected = clock.now();
    await expect.poll(async () => Math.abs((await read()).now - expected)).toBeLessThan(60_000);
    const clocks = await read();
    expect(Math.abs(clocks.made - clocks.now)).toBeLessThan(10_000);
    expect(Math.abs(clocks.text - clocks.now)).toBeLessThan(10_000);
    expect(clocks.elapsed - elapsed).toBeGreaterThanOrEqual(0);
    expect(clocks.elapsed - elapsed).toBeLessThan(60_000);
    elapsed = clocks.elapsed;
    expect(clocks).toMatchObject({
      parsed: "2026-01-02T00:00:00.000Z",
      fields: 2,
      isDate: true,
      utc: 1_767_225_600_000,
    });
  }
  child.stdin.end();
  await once(child, "exit");
});
