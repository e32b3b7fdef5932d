/**
 * Compares Parley with a plain tutorial bot, alternately in the same run, and says which aims are not met.
 * Both are connected to Discord and Slack. It needs Linux (/proc). See bench/README.md.
 *
 *     npm run bench -- [--only start,memory,turns,loops,loads,page,instances,deliveries]
 *         [--kinds discord-slash,…] [--bot parley|tutorial] [--quick] [--turns 300]
 *         [--conversations 1000] [--json] [--cpu-prof <folder>]
 */
import { cpus, loadavg } from "node:os";
import { parseArgs } from "node:util";
import { botNames, createBot, type Bot, type BotName } from "./bot/bots.ts";
import { createFigures, listUnmet, toTable } from "./bot/figures.ts";
import { loads, measureLoad } from "./bot/measure-load.ts";
import {
  describeDeliveries,
  listUnmetDeliveries,
  measureDeliveries,
  type DeliveriesResult,
} from "./bot/measure-deliveries.ts";
import { describeInstances, measureInstances, type InstancesResult } from "./bot/measure-instances.ts";
import { measurePage } from "./bot/measure-page.ts";
import { fillCompileCache, measureIdleMemory, measureStarts } from "./bot/measure-start.ts";
import { loopKinds, measureLoop, measureTurns } from "./bot/measure-turns.ts";
import { turnKinds } from "./bot/talks.ts";

const { values } = parseArgs({
  options: {
    only: { type: "string", default: "start,memory,turns,loops,loads,page" },
    kinds: { type: "string", default: turnKinds.join(",") },
    bot: { type: "string" },
    turns: { type: "string" },
    conversations: { type: "string", default: "1000" },
    quick: { type: "boolean", default: false },
    json: { type: "boolean", default: false },
    "cpu-prof": { type: "string" },
  },
});
const amounts = values.quick
  ? {
      rounds: 1,
      starts: 2,
      idleMs: 5000,
      cpuTurns: 100,
      timedTurns: 10,
      loopMs: 3000,
      loadSeconds: 15,
      pageVisits: 3,
    }
  : {
      rounds: 2,
      starts: 5,
      idleMs: 10_000,
      cpuTurns: 300,
      timedTurns: 30,
      loopMs: 6000,
      loadSeconds: 60,
      pageVisits: 9,
    };
const instancesAmounts = {
  conversations: Number(values.conversations),
  seconds: values.quick ? 15 : 60,
  pauseMs: 2000,
};

if (values.turns !== undefined) amounts.cpuTurns = Number(values.turns);
const sections = values.only.split(",");
const kinds = turnKinds.filter((kind) => values.kinds.split(",").includes(kind));
const { note, all } = createFigures();
const failures: string[] = [];

/** Alternates A B and B A, so that a drift of the machine affects both. */
function orderOf(round: number): readonly BotName[] {
  const names = botNames.filter((name) => values.bot === undefined || values.bot === name);
  return round % 2 === 0 ? names : names.toReversed();
}

async function inTurn(
  what: string,
  rounds: number,
  work: (name: BotName, round: number) => Promise<void>,
): Promise<void> {
  for (let round = 0; round < rounds; round += 1) {
    for (const name of orderOf(round)) {
      process.stderr.write(`${what}, ${round + 1} of ${rounds}: ${name}\n`);
      // Failures are listed below the table, and the rest continues.
      await work(name, round).catch((error: unknown) => failures.push(`${what}: ${String(error)}`));
    }
  }
}

async function measureAll(bots: ReadonlyMap<BotName, Bot>): Promise<void> {
  const { rounds } = amounts;
  const run = (what: string, work: (bot: Bot, round: number) => Promise<void>): Promise<void> =>
    inTurn(what, rounds, (name, round) => work(bots.get(name)!, round));
  if (sections.includes("memory"))
    await run("idle memory", (bot) => measureIdleMemory(bot, amounts.idleMs, note));
  if (sections.includes("turns")) {
    for (const kind of kinds) await run(`turns, ${kind}`, (bot) => measureTurns(bot, kind, amounts, note));
  }
  if (sections.includes("loops")) {
    for (const kind of loopKinds.filter((one) => kinds.includes(one)))
      await run(`closed loop, ${kind}`, (bot) => measureLoop(bot, kind, amounts.loopMs, note));
  }
  if (sections.includes("loads")) {
    for (const load of loads.filter(({ kind }) => kinds.includes(kind)))
      await run(load.group, async (bot, round) => {
        // No aim is relative to it, and it takes the longest.
        if (bot.name === "tutorial" && round > 0) return;
        await measureLoad(bot, load, amounts.loadSeconds, note);
      });
  }
}

const loadBefore = loadavg()[0] ?? 0;
if (sections.includes("start")) await inTurn("starts", amounts.starts, (name) => measureStarts(name, note));
if (sections.includes("page")) {
  process.stderr.write("page\n");
  await measurePage({ visits: amounts.pageVisits }, note).catch((error: unknown) =>
    failures.push(`page: ${String(error)}`),
  );
}
/** The results of one instance and of three on one Redis. The other bot has no store to compare with. */
const instances: InstancesResult[] = [];
if (sections.includes("instances")) {
  for (const count of [1, 3]) {
    process.stderr.write(`instances: ${count}\n`);
    await measureInstances(count, instancesAmounts).then(
      (result) => instances.push(result),
      (error: unknown) => failures.push(`${count} instances: ${String(error)}`),
    );
  }
}
/** The results of Slack events at a steady rate. The other bot keeps nothing to compare with. */
const deliveries: DeliveriesResult[] = [];
if (sections.includes("deliveries")) {
  for (const mode of ["socket", "http"] as const) {
    process.stderr.write(`deliveries over ${mode}\n`);
    await measureDeliveries(mode, { perSecond: 100, seconds: amounts.loadSeconds }).then(
      (result) => deliveries.push(result),
      (error: unknown) => failures.push(`deliveries over ${mode}: ${String(error)}`),
    );
  }
}
const profile = values["cpu-prof"];
const nodeOptions = profile === undefined ? [] : ["--cpu-prof", `--cpu-prof-dir=${profile}`];
const bots = new Map<BotName, Bot>();
try {
  const isCompared = sections.some(
    (section) => !["instances", "start", "deliveries", "page"].includes(section),
  );
  for (const name of isCompared ? orderOf(0) : []) {
    const bot = await createBot(name, { compileCache: name === "parley", nodeOptions });
    bots.set(name, bot);
    await fillCompileCache(bot);
  }
  await measureAll(bots);
} finally {
  for (const bot of bots.values()) await bot.remove();
}

const figures = all();
const machine = {
  at: new Date().toISOString(),
  node: process.version,
  cpu: `${cpus().length} × ${cpus()[0]?.model ?? "unknown"}`,
  loadBefore,
  loadAfter: loadavg()[0] ?? 0,
};
if (values.json) {
  console.log(JSON.stringify({ machine, amounts, figures, instances, deliveries, failures }, null, 2));
} else {
  console.log(
    `${machine.at}  Node ${machine.node}  ${machine.cpu}  load ${loadBefore.toFixed(1)}–${machine.loadAfter.toFixed(1)}`,
  );
  console.log("medians (lowest–highest) of runs in the order A B B A\n");
  if (figures.length > 0) console.log(toTable(figures));
  for (const result of instances) console.log(describeInstances(result));
  for (const result of deliveries) console.log(describeDeliveries(result));
  const unmet = [
    ...listUnmet(figures),
    ...deliveries.flatMap((result) => listUnmetDeliveries(result)),
    ...failures.map((failure) => `NOT measured: ${failure}`),
  ];
  console.log(unmet.length === 0 ? "\nEvery aim is met." : `\n${unmet.join("\n")}`);
}
