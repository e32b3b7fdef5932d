import { execFile } from "node:child_process";
import { join } from "node:path";
import { promisify } from "node:util";
import { expect, it } from "vitest";
import { readMutants } from "../../chaos/read-mutants.ts";

const run = promisify(execFile);
const root = join(import.meta.dirname, "..", "..", "..");

it("every mutant still applies to the sources", async () => {
  const mutants = await readMutants();
  expect(mutants.length).toBeGreaterThan(10);
  for (const { name, file } of mutants) {
    const applied = run("git", ["apply", "--check", file], { cwd: root });
    await expect(applied, name).resolves.toBeDefined();
  }
});
