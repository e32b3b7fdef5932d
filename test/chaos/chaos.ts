/** `npm run chaos -- --seed 7 --events 200 --seconds 60 --instances 3 --store redis|sqlite|both` */
import { parseArgs } from "node:util";
import { runChaos } from "./run-chaos.ts";

const { values } = parseArgs({
  options: {
    seed: { type: "string", default: `${Date.now() % 100_000}` },
    events: { type: "string", default: "120" },
    seconds: { type: "string", default: "40" },
    instances: { type: "string", default: "3" },
    store: { type: "string", default: "both" },
    verbose: { type: "boolean", default: false },
  },
});
const stores = values.store === "both" ? (["redis", "sqlite"] as const) : [toStore(values.store)];
for (const store of stores) {
  const options = {
    store,
    seed: Number(values.seed),
    events: Number(values.events),
    seconds: Number(values.seconds),
    instances: Number(values.instances),
  };
  const { problems, output, ...account } = await runChaos(options);
  process.stdout.write(`${JSON.stringify({ ...options, ...account }, undefined, 1)}\n`);
  for (const problem of problems) process.stdout.write(`${problem}\n`);
  const isWrong = account.doubled + account.lost + account.historyFaults > 0;
  if (isWrong) process.exitCode = 1;
  if (isWrong || values.verbose) process.stdout.write(`${output}\n`);
}

function toStore(name: string): "redis" | "sqlite" {
  if (name === "redis" || name === "sqlite") return name;
  throw new Error("--store is redis, sqlite or both");
}
