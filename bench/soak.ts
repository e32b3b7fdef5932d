/**
 * Runs two processes with a Discord shard each on one Redis, while people of many servers write. It ends with
 * code 1 if a question was lost or answered several times, or if memory grew. It needs Linux (/proc) and
 * redis-server.
 *
 *     node bench/soak.ts [--minutes 10] [--servers 1000] [--chats 100] [--asks 3]
 */
import { parseArgs } from "node:util";
import { findSoakProblems, runSoak } from "../test/endurance/soak/run-soak.ts";

const { values } = parseArgs({
  options: {
    minutes: { type: "string", default: "10" },
    servers: { type: "string", default: "1000" },
    chats: { type: "string", default: "100" },
    asks: { type: "string", default: "3" },
  },
});

/** The allowed growth from the second fifth of the time to the last, as much as late collections vary. */
const maxGrowth = 1.15;

const result = await runSoak({
  minutes: Number(values.minutes),
  servers: Number(values.servers),
  chatsPerSecond: Number(values.chats),
  asksPerSecond: Number(values.asks),
  log: (line) => console.error(line),
});
console.log(JSON.stringify(result, undefined, 2));
const problems = findSoakProblems(result, maxGrowth);
console.log(problems.length === 0 ? "Nothing lost, nothing doubled, memory flat." : problems.join("\n"));
process.exitCode = problems.length === 0 ? 0 : 1;
