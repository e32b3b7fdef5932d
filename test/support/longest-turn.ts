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
export async function holdUpOf(work: () => Promise<unknown>): Promise<string | undefined> {
  let problem: string | undefined;
  for (let round = 0; round < 4; round += 1) {
    const longestMs = await longestTurnMs(work);
    const limitMs = holdUpMs * (await slowdown());
    if (longestMs < limitMs) return undefined;
    problem = `a turn of the event loop took ${Math.round(longestMs)} ms of ${Math.round(limitMs)}`;
  }
  return problem;
}
