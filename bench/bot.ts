/**
 * Compares Parley with a plain tutorial bot, alternating in the same run. Both are connected to Discord and Slack.
 * Linux only (/proc). See bench/README.md.
 *
 *     node bench/bot.ts [--runs 3] [--starts 7] [--timed-turns 60] [--cpu-turns 200] [--slack-bursts 2]
 *         [--idle-seconds 15] [--only parley|tutorial] [--json]
 */
import { cpus, loadavg } from "node:os";
import { parseArgs } from "node:util";
import { botNames, createBot, type BotName } from "./bot/bots.ts";
import { toTable, type Target, type Figure } from "./bot/figures.ts";
import { measureRun, measureStarts, fillCompileCache } from "./bot/measures.ts";

const { values } = parseArgs({
  options: {
    runs: { type: "string", default: "3" },
    starts: { type: "string", default: "7" },
    "timed-turns": { type: "string", default: "60" },
    "cpu-turns": { type: "string", default: "200" },
    "slack-bursts": { type: "string", default: "2" },
    "idle-seconds": { type: "string", default: "15" },
    only: { type: "string" },
    json: { type: "boolean", default: false },
  },
});
const amounts = {
  idleMs: Number(values["idle-seconds"]) * 1000,
  timedTurns: Number(values["timed-turns"]),
  cpuTurns: Number(values["cpu-turns"]),
  slackBursts: Number(values["slack-bursts"]),
};

const figures = new Map<string, Figure>();
function note(name: string, bot: BotName, value: number): void {
  const figure: Figure = figures.get(name) ?? {
    name,
    unit: name.startsWith("memory") ? "MB" : "ms",
    target: targetOf(name),
    parley: [],
    tutorial: [],
  };
  figures.set(name, figure);
  figure[bot].push(value);
}

/** The documented target of a figure. */
function targetOf(name: string): Target {
  if (name.startsWith("start")) return { kind: "at-most-ratio", ratio: 1 };
  if (name.startsWith("memory idle: RSS") || name.startsWith("memory idle: PSS"))
    return { kind: "at-most-ratio", ratio: 1.1 };
  if (name.startsWith("CPU")) return { kind: "at-most-ratio", ratio: 1 };
  if (name.startsWith("first token") && name.endsWith("median")) return { kind: "at-most-more", by: 1 };
  return { kind: "none" };
}

/** A B, then B A, so that drift of the machine affects both. */
function orderOf(round: number): readonly BotName[] {
  const names = botNames.filter((name) => values.only === undefined || values.only === name);
  return round % 2 === 0 ? names : names.toReversed();
}

function logProgress(text: string): void {
  process.stderr.write(`${text}\n`);
}

const loadBefore = loadavg()[0] ?? 0;
for (let round = 0; round < Number(values.starts); round += 1) {
  logProgress(`starts ${round + 1} of ${values.starts}`);
  for (const name of orderOf(round)) await measureStarts(name, note);
}
// Parley always has a compile cache; here its later starts are compared with a tutorial bot that has one too.
const cached = figures.get("start: later, both with a compile cache");
cached?.parley.push(...(figures.get("start: later")?.parley ?? []));

const bots = await Promise.all(botNames.map((name) => createBot(name, { compileCache: name === "parley" })));
try {
  for (const bot of bots) await fillCompileCache(bot);
  for (let round = 0; round < Number(values.runs); round += 1) {
    for (const name of orderOf(round)) {
      logProgress(`run ${round + 1} of ${values.runs}: ${name}`);
      const bot = bots.find((one) => one.name === name);
      if (bot !== undefined) await measureRun(bot, amounts, note);
    }
  }
} finally {
  await Promise.all(bots.map((bot) => bot.remove()));
}

const machine = {
  at: new Date().toISOString(),
  node: process.version,
  cpu: `${cpus().length} × ${cpus()[0]?.model ?? "unknown"}`,
  loadBefore,
  loadAfter: loadavg()[0] ?? 0,
};
if (values.json) {
  console.log(JSON.stringify({ machine, amounts, figures: [...figures.values()] }, null, 2));
} else {
  console.log(
    `${machine.at}  Node ${machine.node}  ${machine.cpu}  load ${loadBefore.toFixed(1)}–${machine.loadAfter.toFixed(1)}`,
  );
  console.log(`medians (lowest–highest) of ${values.starts} starts and ${values.runs} runs\n`);
  console.log(toTable([...figures.values()]));
}
