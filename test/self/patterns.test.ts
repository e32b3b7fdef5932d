import { globSync } from "node:fs";
import { analyse } from "scslre";
import { expect, test } from "vitest";
import { boundedPatterns } from "../support/bounded-patterns.ts";
import { patternsOf, type SourcePattern } from "../support/regex-literals.ts";
import { isRepeating, type Pumped, pumpsOf } from "../support/regex-pumps.ts";

const files = globSync(["src/**/*.{ts,js}", "commands/*.ts"]).sort();
const patterns = [
  ...new Map(files.flatMap(patternsOf).map((one) => [`/${one.source}/${one.flags}`, one])).entries(),
].map(([name, pattern]) => ({ name, ...pattern }));
const repeating = patterns.filter(isRepeating);

const fill = ({ before, pump, after }: Pumped, chars: number): string =>
  before + pump.repeat(Math.ceil(chars / pump.length)).slice(0, chars) + after;

/** The longest text of the measurement. Quadratic time is more than a hundred times the limit there. */
const mostChars = 32_000;
const limitMs = 10;
const mostRounds = 20;

/** Returns the least processor time of several searches of the whole text, in milliseconds. */
function msOf({ source, flags }: SourcePattern, text: string, rounds: number): number {
  const expression = new RegExp(source, flags);
  let least = Infinity;
  for (let round = 0; round < rounds && least > limitMs; round += 1) {
    const { user } = process.cpuUsage();
    text.replace(expression, "");
    least = Math.min(least, (process.cpuUsage().user - user) / 1000);
    // Nothing else that happens in this process takes as long twice.
    if (round > 0 && least > 5 * limitMs) break;
  }
  return least;
}

/** Returns the first text on which a pattern takes too long. Texts grow, so that a slow one ends early. */
function findSlow(pattern: SourcePattern, maxChars: number): string | undefined {
  for (const pumped of pumpsOf(pattern)) {
    for (let chars = maxChars / 64; ; chars = Math.min(chars * 4, maxChars)) {
      const ms = msOf(pattern, fill(pumped, chars), mostRounds);
      if (ms > limitMs) return `${JSON.stringify(pumped)}, ${chars} characters: ${Math.round(ms)} ms`;
      if (chars >= maxChars) break;
    }
  }
  return undefined;
}

/** Runs a static analysis, which finds repetitions of one character that several parts of a pattern want. */
function findStatically({ source, flags }: SourcePattern): string | undefined {
  const { reports } = analyse({ source, flags });
  return reports.length === 0
    ? undefined
    : reports.map(({ type, character }) => `${type} of ${JSON.stringify(character.pick)}`).join(", ");
}

// Attack: A pattern that looks at the same characters again and again. What holds: every pattern of
// src is linear, or on a list with the longest text that it sees.
test("every pattern of src takes linear time, or only ever sees a short text", () => {
  const bounded = new Set(boundedPatterns.map(({ pattern }) => pattern));
  const slow = repeating.flatMap((pattern) => {
    if (bounded.has(pattern.name)) return [];
    const problem = findStatically(pattern) ?? findSlow(pattern, mostChars);
    return problem === undefined ? [] : [`${pattern.file}:${pattern.line} ${pattern.name}: ${problem}`];
  });
  expect(slow).toEqual([]);
});

test.each(boundedPatterns)(
  "$pattern, which is not linear, is quick on the longest text that it sees",
  (one) => {
    const pattern = repeating.find(({ name }) => name === one.pattern);
    // An entry without its pattern, or for one that has become linear, must be removed.
    expect(pattern).toBeDefined();
    expect(pattern && findSlow(pattern, one.maxChars)).toBeUndefined();
  },
);

test.each([/^\s*(`{3,})/gm, /<(\/[^:>]+):\d+>/g, /"(?:[^"\\\n]|\\.)*"|\/\*[^]*?\*\//g, /(?:a|b)+\s+$/])(
  "the measurement finds that %s is not linear",
  ({ source, flags }) => {
    expect(findSlow({ source, flags, file: "", line: 1 }, mostChars)).toBeDefined();
  },
);
