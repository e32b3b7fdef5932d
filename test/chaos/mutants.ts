/** Runs chaos against each mutant of the sources: `npm run chaos:mutants -- [--only …] [--seeds 3]`. */
import { execFile } from "node:child_process";
import { cp, mkdtemp, rm, symlink } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs, promisify } from "node:util";
import { createConcurrencyLimit } from "../../src/support/queues.ts";
import { faultCounts } from "./account/account.ts";
import { readMutants, type Mutant } from "./read-mutants.ts";
import { runChaos, type ChaosOptions } from "./run-chaos.ts";

const run = promisify(execFile);
const root = join(import.meta.dirname, "..", "..");

const { values } = parseArgs({
  options: {
    only: { type: "string" },
    store: { type: "string" },
    seeds: { type: "string", default: "3" },
    /** How many runs go side by side. Each mostly waits. */
    parallel: { type: "string", default: "3" },
  },
});
const wanted = values.only?.split(",");
const mutants = (await readMutants()).filter(({ name }) => wanted === undefined || wanted.includes(name));

/** The counts of the unchanged sources, once for the same settings. */
const unchanged = new Map<string, Promise<Record<string, number>>>();

const limit = createConcurrencyLimit(Number(values.parallel));
const rows = mutants.flatMap((mutant) =>
  mutant.stores
    .filter((store) => values.store === undefined || values.store === store)
    .map(async (store) => [mutant.name, store, ...(await limit(() => judge(mutant, store)))]),
);
process.stdout.write(
  "| Mutant | Store | Unchanged | Mutant | Caught by |\n| --- | --- | --- | --- | --- |\n",
);
for (const row of rows) process.stdout.write(`| ${(await row).join(" | ")} |\n`);

function runUnchanged(options: ChaosOptions): Promise<Record<string, number>> {
  const key = JSON.stringify(options);
  const running = unchanged.get(key) ?? runChaos(options).then(countsOf);
  unchanged.set(key, running);
  return running;
}

/** Runs seeds until one catches it. The unchanged sources must pass with the same settings. */
async function judge(mutant: Mutant, store: "redis" | "sqlite"): Promise<string[]> {
  const changed = await applied(mutant);
  try {
    let counts: Readonly<Record<string, number>> = {};
    for (let seed = 1; seed <= Number(values.seeds); seed++) {
      const options = { store, seed, faults: mutant.faults, instances: 3, only: mutant.only };
      counts = countsOf(await runChaos({ ...options, root: changed }));
      const caughtBy = mutant.caughtBy.filter((count) => (counts[count] ?? 0) > 0);
      if (caughtBy.length === 0) continue;
      return [show(await runUnchanged(options)), show(counts), `${caughtBy.join(", ")} (seed ${seed})`];
    }
    return ["", show(counts), mutant.madeUpForBy ?? "**not caught**"];
  } finally {
    await rm(changed, { recursive: true, force: true });
  }
}

/** Returns a copy of the sources with the patch applied. */
async function applied({ file }: Mutant): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), "parley-mutant-"));
  for (const name of ["src", "commands", "package.json"])
    await cp(join(root, name), join(folder, name), { recursive: true });
  await symlink(join(root, "node_modules"), join(folder, "node_modules"));
  await run("patch", ["-p1", "--silent", "-i", file], { cwd: folder });
  return folder;
}

function countsOf(result: Awaited<ReturnType<typeof runChaos>>): Record<string, number> {
  return Object.fromEntries(
    faultCounts.flatMap((count) => (result[count] > 0 ? [[count, result[count]]] : [])),
  );
}

function show(counts: Readonly<Record<string, number>>): string {
  const cells = Object.entries(counts).map(([name, value]) => `${name} ${value}`);
  return cells.length === 0 ? "all 0" : cells.join(", ");
}
