/**
 * Runs as `npm run chaos -- --store redis|postgres|sqlite|all --instances 3 --seed 7 --faults 200`,
 * with `--only killed,rolled` for some kinds of faults.
 */
import { writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { faultCounts } from "./account/account.ts";
import { chaosStoreNames, type ChaosStoreName } from "./faults/chaos-stores.ts";
import { faultNames, type FaultName } from "./faults/faults.ts";
import { runChaos } from "./run-chaos.ts";

const { values } = parseArgs({
  options: {
    seed: { type: "string", default: `${Date.now() % 100_000}` },
    faults: { type: "string", default: "60" },
    instances: { type: "string", default: "3" },
    store: { type: "string", default: "all" },
    only: { type: "string" },
    root: { type: "string" },
    json: { type: "boolean", default: false },
  },
});
const stores = values.store === "all" ? chaosStoreNames : [toStore(values.store)];
for (const store of stores) {
  const options = {
    store,
    seed: Number(values.seed),
    faults: Number(values.faults),
    instances: store === "sqlite" ? 1 : Number(values.instances),
    only: values.only?.split(",").map((name) => toFaultName(name)),
    root: values.root,
  };
  const {
    problems,
    output,
    evidence: _evidence,
    made,
    notMade,
    refusals,
    ...account
  } = await runChaos(options);
  const isWrong = faultCounts.some((count) => account[count] > 0);
  if (isWrong) process.exitCode = 1;
  const log = join(tmpdir(), `parley-chaos-${store}-${options.seed}.log`);
  if (isWrong) await writeFile(log, output);
  if (values.json) {
    process.stdout.write(
      `${JSON.stringify({ ...options, ...account, refusals, made, notMade, problems })}\n`,
    );
    continue;
  }
  print("run", { store, instances: options.instances, seed: options.seed });
  print("faults", made);
  print("outcomes", account);
  if (account.refused > 0) print("refused", refusals);
  for (const line of notMade) process.stdout.write(`not made: ${line}\n`);
  for (const problem of problems) process.stdout.write(`${problem}\n`);
  if (isWrong) process.stdout.write(`output of the processes: ${log}\n`);
}

function print(title: string, row: Readonly<Record<string, unknown>>): void {
  const cells = Object.entries(row).map(([name, value]) => `${name} ${String(value)}`);
  process.stdout.write(`${title.padEnd(9)} ${cells.join(" · ")}\n`);
}

function toStore(name: string): ChaosStoreName {
  const found = chaosStoreNames.find((one) => one === name);
  if (found !== undefined) return found;
  throw new Error(`--store is ${chaosStoreNames.join(", ")} or all`);
}

function toFaultName(name: string): FaultName {
  const found = faultNames.find((one) => one === name);
  if (found === undefined) throw new Error(`--only takes ${faultNames.join(", ")}`);
  return found;
}
