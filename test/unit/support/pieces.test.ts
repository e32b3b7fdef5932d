import { setImmediate as turnOfLoop } from "node:timers/promises";
import { expect, it } from "vitest";
import { nextPiece } from "../../../src/support/pieces.ts";
import { longestTurnMs } from "../../support/longest-turn.ts";
import { slowdown } from "../../support/cpu-time.ts";

/** Uses the processor for so long. */
function spin(ms: number): void {
  const until = performance.now() + ms;
  while (performance.now() < until) Math.sqrt(until);
}

async function work(pieces: number): Promise<void> {
  for (let piece = 0; piece < pieces; piece += 1) {
    await nextPiece();
    spin(2);
  }
}

it("all works together hold the event loop for one share and one piece", async () => {
  const longest = async (works: number): Promise<number> =>
    await longestTurnMs(() => Promise.all(Array.from({ length: works }, () => work(10))));
  await longest(2);
  expect(await longest(4)).toBeLessThan(20 * (await slowdown()));
  expect(await longest(16)).toBeLessThan(20 * (await slowdown()));
});

it("short works wait for nobody", async () => {
  await turnOfLoop();
  await turnOfLoop();
  const first = nextPiece();
  expect(first).toBeUndefined();
  await first;
  expect(nextPiece()).toBeUndefined();
});

it("who has waited longest is served first", async () => {
  const served: number[] = [];
  const each = async (name: number): Promise<void> => {
    for (let piece = 0; piece < 3; piece += 1) {
      await nextPiece();
      served.push(name);
      spin(10);
    }
  };
  await Promise.all([each(1), each(2), each(3)]);
  expect(served).toEqual([1, 2, 3, 1, 2, 3, 1, 2, 3]);
});
