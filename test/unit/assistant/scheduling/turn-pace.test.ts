import { expect, it } from "vitest";
import { createTurnPace } from "../../../../src/assistant/scheduling/turn-pace.ts";

/** A pace on a clock that stands still unless it is moved, and the turns that have begun. */
function createSubject() {
  const clock = { now: 0 };
  const begun: number[] = [];
  const pace = createTurnPace(() => clock.now);
  const ask = (from: number, to: number): void => {
    for (let turn = from; turn <= to; turn++) void pace.begin().then(() => begun.push(turn));
  };
  return { clock, begun, ask };
}
const iteration = () => new Promise<void>((resolve) => setImmediate(resolve));
const upTo = (last: number) => Array.from({ length: last }, (_, index) => index + 1);

it("lets a few turns begin at once, and the others in the next iterations, in order", async () => {
  const { begun, ask } = createSubject();
  ask(1, 40);
  await Promise.resolve();
  expect(begun).toEqual(upTo(16));
  await iteration();
  expect(begun).toEqual(upTo(32));
  await iteration();
  expect(begun).toEqual(upTo(40));
});

it("lets one begin after a slow iteration, however long it goes on", async () => {
  const { clock, begun, ask } = createSubject();
  ask(1, 40);
  clock.now += 11;
  await iteration();
  expect(begun).toEqual(upTo(17));
  // A later one does not overtake those that wait.
  ask(41, 41);
  clock.now += 11;
  await iteration();
  expect(begun).toEqual(upTo(18));
  await iteration();
  expect(begun).toEqual(upTo(34));
});

it("counts anew in each iteration, also when none waits", async () => {
  const { clock, begun, ask } = createSubject();
  ask(1, 16);
  clock.now += 50;
  await iteration();
  await iteration();
  ask(17, 32);
  await Promise.resolve();
  expect(begun).toEqual(upTo(32));
});
