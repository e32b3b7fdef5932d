import { expect, test } from "vitest";
import { createNames } from "../../../../src/operations/dashboard/dashboard-data.ts";

test("asks once for each name, leaves out what nobody knows, and asks again after ten minutes", async () => {
  let now = 0;
  const asked: string[] = [];
  const names = createNames(
    (id) => {
      asked.push(id);
      return Promise.resolve(id === "slack:T:gone" ? undefined : `name of ${id}`);
    },
    { now: () => now },
  );
  const ids = ["slack:T:1", "slack:T:gone", "slack:T:1"];
  expect(await names(ids)).toEqual({ "slack:T:1": "name of slack:T:1" });
  await names(ids);
  expect(asked).toEqual(["slack:T:1", "slack:T:gone"]);
  now = 600_000;
  await names(ids);
  expect(asked).toHaveLength(4);
});

test("does not wait for a platform that is slow; its names come later", async () => {
  const { promise: slow, resolve: tell } = Promise.withResolvers<string>();
  const names = createNames((id) => (id === "slow:1" ? slow : Promise.resolve("Ada")), { now: () => 0 });
  expect(await names(["slow:1", "quick:1"])).toEqual({ "quick:1": "Ada" });
  tell("Ben");
  await slow;
  expect(await names(["slow:1", "quick:1"])).toEqual({ "slow:1": "Ben", "quick:1": "Ada" });
});
