import { setImmediate as turnOfLoop } from "node:timers/promises";
import { expect, it } from "vitest";
import { nextPiece } from "../../../src/support/pieces.ts";
import { holdUpOf, longestTurnMs } from "../../support/longest-turn.ts";

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
  const together = (works: number) => () => Promise.all(Array.from({ length: works }, () => work(10)));
  await longestTurnMs(together(2));
  expect(await holdUpOf(together(4), 20)).toBeUndefined();
  expect(await holdUpOf(together(16), 20)).toBeUndefined();
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
