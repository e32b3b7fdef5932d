import { afterEach, beforeEach, expect, test } from "vitest";
import type { ReplyAddress } from "../../../../src/core/events.ts";
import type { Person } from "../../../simulators/slack/person.ts";
import type { SimulatedChannel } from "../../../simulators/slack/simulator.ts";
import { openSlackHarness, type SlackHarness } from "../../../support/slack-harness.ts";

let harness: SlackHarness;
let ana: Person;
let channel: SimulatedChannel;
beforeEach(async () => {
  harness = await openSlackHarness();
  ana = harness.slack.person("Ana");
  channel = harness.slack.channel("ideas", [ana]);
});
afterEach(() => harness.close());

const file = { name: "a.md", mediaType: "text/markdown", bytes: new Uint8Array([65]), altText: "" };
const direct = () => harness.slack.directMessages(ana).saidByBot();

/** The private counterpart of the address of Ana's next message. */
async function privateAddressOf(message: Parameters<Person["sends"]>[0]): Promise<ReplyAddress> {
  ana.sends(message);
  const { address } = await harness.slack.waitFor("the event", () => harness.receiver.events[0]);
  return harness.platform.toPrivateAddress(address)!;
}

async function answer(address: ReplyAddress): Promise<ReplyAddress | undefined> {
  let saved: ReplyAddress | undefined;
  const reply = harness.platform.openReply(address, {
    saveAddress(grown) {
      saved = grown;
      return Promise.resolve();
    },
  });
  await reply.show();
  await reply.attach(file);
  reply.write({ text: "secret" });
  await reply.finish();
  return saved;
}

test("in a thread with replies: announced there to the author alone, once, and shown in direct messages", async () => {
  const root = ana.sends({ channel: channel.id, text: "lunch?" });
  const message = { channel: channel.id, thread: root, text: "hello", mentionBot: true };
  const saved = await answer(await privateAddressOf(message));
  expect(channel.saidByBot()).toMatchObject([
    { thread: root, onlyFor: "Ana", text: expect.stringMatching(/direct messages/), files: [] },
  ]);
  await harness.slack.waitFor("the file", () => direct().some(({ files }) => files[0]?.name === "a.md"));
  expect(direct().some(({ text }) => text === "secret")).toBe(true);
  await answer(saved!);
  expect(channel.saidByBot()).toHaveLength(1);
});

test("for a message without replies: announced in the channel, since Slack shows nothing ephemeral in its thread", async () => {
  await answer(await privateAddressOf({ channel: channel.id, text: "hello", mentionBot: true }));
  expect(channel.saidByBot()).toMatchObject([{ thread: undefined, onlyFor: "Ana" }]);
});

test("a failed announcement does not fail the reply", async () => {
  harness.slack.switchOff("chat.postEphemeral");
  await answer(await privateAddressOf({ channel: channel.id, text: "hello", mentionBot: true }));
  expect(channel.saidByBot()).toEqual([]);
  expect(direct().some(({ text }) => text === "secret")).toBe(true);
});

test("in direct messages: an ordinary reply in the thread", async () => {
  const address = await privateAddressOf({ channel: ana.directMessages, text: "hello" });
  await answer(address);
  const [message] = direct();
  expect(message).toMatchObject({ text: "secret", thread: address["thread"], onlyFor: undefined });
});
