/**
 * Compares Parley with a plain tutorial bot, alternately in the same run, and says which aims are not met.
 * Both are connected to Discord and Slack. It needs Linux (/proc). See bench/README.md.
 *
 *     npm run bench -- [--only start,memory,turns,loops,loads] [--kinds discord-slash,…]
 *         [--bot parley|tutorial] [--quick] [--turns 300] [--json] [--cpu-prof <folder>]
 */
import { cpus, loadavg } from "node:os";
import { parseArgs } from "node:util";
import { botNames, createBot, type Bot, type BotName } from "./bot/bots.ts";
import { createFigures, listUnmet, toTable } from "./bot/figures.ts";
import { loads, measureLoad } from "./bot/measure-load.ts";
import { fillCompileCache, measureIdleMemory, measureStarts } from "./bot/measure-start.ts";
import { loopKinds, measureLoop, measureTurns } from "./bot/measure-turns.ts";
import { turnKinds } from "./bot/talks.ts";

const { values } = parseArgs({
  options: {
    only: { type: "string", default: "start,memory,turns,loops,loads" },
    kinds: { type: "string", default: turnKinds.join(",") },
    bot: { type: "string" },
    turns: { type: "string" },
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
    }
  : {
      rounds: 2,
      starts: 5,
      idleMs: 10_000,
      cpuTurns: 300,
      timedTurns: 30,
      loopMs: 6000,
      loadSeconds: 60,
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
const profile = values["cpu-prof"];
const nodeOptions = profile === undefined ? [] : ["--cpu-prof", `--cpu-prof-dir=${profile}`];
const bots = new Map<BotName, Bot>();
try {
  const isCompared = sections.some((section) => section !== "start");
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
  console.log(JSON.stringify({ machine, amounts, figures, failures }, null, 2));
} else {
  console.log(
    `${machine.at}  Node ${machine.node}  ${machine.cpu}  load ${loadBefore.toFixed(1)}–${machine.loadAfter.toFixed(1)}`,
  );
  console.log("medians (lowest–highest) of runs in the order A B B A\n");
  if (figures.length > 0) console.log(toTable(figures));
  const unmet = [...listUnmet(figures), ...failures.map((failure) => `NOT measured: ${failure}`)];
  console.log(unmet.length === 0 ? "\nEvery aim is met." : `\n${unmet.join("\n")}`);
}
