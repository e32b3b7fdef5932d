import { expect, test } from "vitest";
import { ParleyError } from "../../../../src/core/errors.ts";
import { createRefusalNotices } from "../../../../src/platforms/slack/refusal-notices.ts";
import { silentLog } from "../../../support/silent-log.ts";

const denied = new ParleyError("access-denied", "refused", { detail: { because: "denied" } });
const overRate = new ParleyError("rate-limited", "refused", { detail: { max: 20 }, retryAfterMs: 40_000 });
const busy = new ParleyError("busy", "refused", { detail: { waiting: 50 } });

function setUp() {
  const shown: string[] = [];
  const api = {
    post: (channel: string, thread: string | undefined) => {
      shown.push(`${channel} in ${thread}`);
      return Promise.resolve({ channel, ts: "2" });
    },
    postEphemeral: (channel: string, thread: string | undefined, user: string) => {
      shown.push(`${channel} in ${thread} to ${user}`);
      return Promise.resolve();
    },
  };
  return { shown, notices: createRefusalNotices(api, silentLog) };
}

const inChannel = { channel: "C1", user: "U1", ts: "1", thread: undefined };

test("a person is told once in each channel, and once of each reason", async () => {
  const { shown, notices } = setUp();
  for (const error of [denied, denied, overRate]) await notices.tell(inChannel, error);
  await notices.tell({ ...inChannel, channel: "C2" }, denied);
  await notices.tell({ ...inChannel, user: "U2" }, denied);
  expect(shown).toEqual([
    "C1 in undefined to U1",
    "C1 in undefined to U1",
    "C2 in undefined to U1",
    "C1 in undefined to U2",
  ]);
});

test("in direct messages it is an answer to the message", async () => {
  const { shown, notices } = setUp();
  await notices.tell({ channel: "D1", user: "U1", ts: "1", thread: undefined }, denied);
  await notices.tell({ channel: "D2", user: "U2", ts: "3", thread: "2" }, denied);
  expect(shown).toEqual(["D1 in 1", "D2 in 2"]);
});

test("a busy process tells of each message that it does not take", async () => {
  const { shown, notices } = setUp();
  for (const _time of [1, 2, 3]) await notices.tell(inChannel, busy);
  expect(shown).toHaveLength(3);
});
