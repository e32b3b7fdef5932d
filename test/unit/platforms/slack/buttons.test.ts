import { afterEach, beforeEach, expect, test } from "vitest";
import type { Person } from "../../../simulators/slack/person.ts";
import type { SimulatedChannel } from "../../../simulators/slack/simulator.ts";
import { openSlackHarness, type SlackHarness } from "../../../support/slack-harness.ts";

let harness: SlackHarness;
let ana: Person;
let bo: Person;
let channel: SimulatedChannel;
beforeEach(async () => {
  harness = await openSlackHarness();
  ana = harness.slack.person("Ana");
  bo = harness.slack.person("Bo");
  channel = harness.slack.channel("ideas", [ana, bo]);
});
afterEach(async () => {
  expect(harness.slack.badAcks).toEqual([]);
  await harness.close();
});

/** A finished reply to Ana's mention, and the message that shows it. */
async function showReply(button: "retry" | "confirm") {
  ana.sends({ channel: channel.id, text: "hello", mentionBot: true });
  const { address } = await harness.slack.waitFor("the event", () => harness.receiver.events[0]);
  const reply = harness.platform.openReply(address, { saveAddress: () => Promise.resolve() });
  await reply.show();
  if (button === "retry") await reply.fail({ text: "The gateway failed.", retryKey: "the-key" });
  else await reply.finish({ confirm: { label: "Remove it", key: "the-key" } });
  return channel.saidByBot()[0]!;
}

const noticeTo = (name: string) =>
  harness.slack.waitFor("the notice", () => channel.transcript().find(({ onlyFor }) => onlyFor === name));

test("Retry calls the receiver with the turn's key", async () => {
  const message = await showReply("retry");
  expect(message.buttons).toMatchObject([{ label: "Retry" }]);
  await ana.clicks(message, "Retry", { channel: channel.id });
  expect(harness.receiver.retried).toEqual(["the-key"]);
});

test("Retry says when there is nothing left to retry", async () => {
  const message = await showReply("retry");
  harness.receiver.retryOutcome = "gone";
  await ana.clicks(message, "Retry", { channel: channel.id });
  expect((await noticeTo("Ana")).text).toMatch(/no longer/);
});

test("confirm calls the receiver with the person who pressed", async () => {
  const message = await showReply("confirm");
  await ana.clicks(message, "Remove it", { channel: channel.id });
  expect(harness.receiver.confirmed).toEqual([`the-key by slack:${harness.slack.teamId}:${ana.id}`]);
});

test.each([
  ["refused", /Only the person who asked/],
  ["gone", /no longer be confirmed/],
] as const)("confirm says when it is %s", async (outcome, words) => {
  const message = await showReply("confirm");
  harness.receiver.confirmOutcome = outcome;
  await bo.clicks(message, "Remove it", { channel: channel.id });
  expect((await noticeTo("Bo")).text).toMatch(words);
});

test("a press that fails is acknowledged and shows the error", async () => {
  const message = await showReply("retry");
  harness.receiver.retry = () => Promise.reject(new Error("a bug"));
  const pressed = await ana.clicks(message, "Retry", { channel: channel.id });
  expect(pressed.kind).toBe("acknowledged");
  expect((await noticeTo("Ana")).text).not.toBe("");
});
