import { expect, test, vi } from "vitest";
import { createPeople } from "../../../../src/platforms/slack/people.ts";
import type { SlackUserInfo } from "../../../../src/platforms/slack/web-api.ts";
import { silentLog } from "../../../support/silent-log.ts";

const info = (name: string): SlackUserInfo => ({
  name,
  teamId: "T1",
  teams: [],
  isAdmin: false,
  isStranger: false,
});

test("a name is looked up once, also by concurrent callers", async () => {
  const lookUp = vi.fn((id: string) => Promise.resolve(info(`name of ${id}`)));
  const people = createPeople({ lookUp, log: silentLog });
  expect(await Promise.all([people.nameOf("U1"), people.nameOf("U1")])).toEqual(["name of U1", "name of U1"]);
  expect(await people.nameOf("U1")).toBe("name of U1");
  expect(lookUp).toHaveBeenCalledTimes(1);
});

test("a failed lookup returns the id and is not cached", async () => {
  const lookUp = vi.fn<(id: string) => Promise<SlackUserInfo>>();
  lookUp.mockRejectedValueOnce(new Error("unreachable")).mockResolvedValueOnce(info("Ana"));
  const people = createPeople({ lookUp, log: silentLog });
  expect(await people.nameOf("U1")).toBe("U1");
  expect(await people.nameOf("U1")).toBe("Ana");
});

test("a slow lookup returns the id, and its result is there for the next caller", async () => {
  let resolve: (found: SlackUserInfo) => void = () => {};
  const lookUp = () => new Promise<SlackUserInfo>((settle) => (resolve = settle));
  const people = createPeople({ lookUp, log: silentLog, maxWaitMs: 5 });
  expect(await people.nameOf("U1")).toBe("U1");
  resolve(info("Ana"));
  expect(await people.nameOf("U1")).toBe("Ana");
});

test("a flood of unknown people leaves few lookups in flight, and is over when they are", async () => {
  const pending: (() => void)[] = [];
  const lookUp = (id: string) =>
    new Promise<SlackUserInfo>((settle) => pending.push(() => settle(info(`name of ${id}`))));
  const people = createPeople({ lookUp, log: silentLog });
  const found = Promise.all(Array.from({ length: 2000 }, (_, index) => people.nameOf(`U${index}`)));
  expect(pending.length).toBeLessThanOrEqual(200);
  for (const settle of pending.splice(0)) settle();
  expect((await found).filter((name) => name.startsWith("name of")).length).toBeGreaterThan(50);
  const next = people.nameOf("U1999");
  for (const settle of pending) settle();
  expect(await next).toBe("name of U1999");
});
