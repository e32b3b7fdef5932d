import { setImmediate as turnOfLoop } from "node:timers/promises";
import { slowdown } from "./cpu-time.ts";

/**
 * Runs work and returns the most processor time that this thread took meanwhile in one turn of the event
 * loop, in milliseconds: how long `GET /healthz` would have waited. What other processes take is not in it.
 */
export async function longestTurnMs(work: () => Promise<unknown>): Promise<number> {
  let longest = 0;
  let before = threadMs();
  const measure = (): void => {
    const now = threadMs();
    longest = Math.max(longest, now - before);
    before = now;
  };
  const turnEnds = (): void => {
    measure();
    next = setImmediate(turnEnds);
  };
  let next = setImmediate(turnEnds);
  try {
    await work();
    // What the work has done since the last turn counts too.
    await turnOfLoop();
    measure();
  } finally {
    clearImmediate(next);
  }
  return longest;
}

function threadMs(): number {
  const { user, system } = process.threadCpuUsage();
  return (user + system) / 1000;
}

/** The longest time that the event loop may be held up, in milliseconds. */
const holdUpMs = 50;

/**
 * Says where work holds up the event loop for too long in each of several rounds, or `undefined`. Time and
 * limit are measured side by side, as the speed of a busy machine changes.
 */
export async function holdUpOf(work: () => Promise<unknown>, mostMs = holdUpMs): Promise<string | undefined> {
  let problem: string | undefined;
  for (let round = 0; round < 4; round += 1) {
    const longestMs = await longestTurnMs(work);
    const limitMs = mostMs * (await slowdown());
    if (longestMs < limitMs) return undefined;
    problem = `a turn of the event loop took ${Math.round(longestMs)} ms of ${Math.round(limitMs)}`;
  }
  return problem;
}

const leastRounds = 4;
const mostRounds = 12;

/**
 * Says that a large work takes much longer turns of the event loop than a small one of the same kind, or
 * `undefined`. The least of several rounds is compared: a busy machine, or memory that is freed just then,
 * only ever adds to a turn.
 * @param slackMs may be added to one and a half times the small one's turns
 */
export async function growthOfTurns(
  small: () => Promise<unknown>,
  large: () => Promise<unknown>,
  slackMs: number,
): Promise<string | undefined> {
  let [smallMs, largeMs] = [Infinity, Infinity];
  for (let round = 0; round < mostRounds; round += 1) {
    smallMs = Math.min(smallMs, await longestTurnMs(small));
    largeMs = Math.min(largeMs, await longestTurnMs(large));
    if (round + 1 >= leastRounds && largeMs < 1.5 * smallMs + slackMs * (await slowdown())) return undefined;
  }
  return `the longest turn took ${smallMs} ms for the small one, ${largeMs} ms for the large one`;
}
