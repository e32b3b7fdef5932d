import { expect, test } from "vitest";
import { message } from "../../support/fakes.ts";
import { worldOfEachTest } from "../../support/world-of-each-test.ts";

const world = worldOfEachTest();
const open = async () => {
  const questions = await world.history.openQuestions("fake:c1");
  return questions.map(({ event, hasBegun }) => [event.kind === "message" && event.text, hasBegun]);
};

test("open questions are those that wait, and all that a turn answers whose words are not in the log yet", async () => {
  const [one, two, three] = [message("one"), message("two"), message("three")];
  await world.leaveBegun([one, two]);
  await world.store.inbox.accept(three);
  expect(await open()).toEqual([
    ["one", true],
    ["two", true],
    ["three", false],
  ]);
});

test("a deleted message is no open question, although its turn still answers another one", async () => {
  const [one, two] = [message("one"), message("two")];
  await world.leaveBegun([one, two]);
  await world.store.inbox.change({ kind: "delete", of: one.key });
  expect(await open()).toEqual([["two", true]]);
  await world.store.inbox.change({ kind: "delete", of: two.key });
  expect(await open()).toEqual([]);
});
