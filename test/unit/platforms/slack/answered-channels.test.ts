import { afterEach, beforeEach, expect, test } from "vitest";
import type { IncomingMessage } from "../../../../src/core/events.ts";
import { openSlackHarness, type SlackHarness } from "../../../support/slack-harness.ts";

let harness: SlackHarness;
beforeEach(async () => {
  harness = await openSlackHarness();
});
afterEach(async () => {
  expect(harness.slack.badAcks).toEqual([]);
  await harness.close();
});

const messages = (count: number) =>
  harness.slack.waitFor("the messages", () => {
    const found = harness.receiver.events.filter(
      (event): event is IncomingMessage => event.kind === "message",
    );
    return found.length >= count ? found : undefined;
  });

test("in a channel that is answered whole, every message is an event in its thread", async () => {
  const { slack, receiver } = harness;
  receiver.place = { answerTo: "every-message", answerIn: "thread" };
  const ana = slack.person("Ana");
  const channel = slack.channel("ideas", [ana]);
  const ts = ana.sends({ channel: channel.id, text: "nobody in particular" });
  ana.sends({ channel: channel.id, text: "and you", mentionBot: true });
  const [first, second] = await messages(2);
  expect(first).toMatchObject({
    text: "nobody in particular",
    conversationId: `slack:${slack.teamId}:${channel.id}:${ts}`,
    address: { thread: ts },
  });
  expect(second?.text).toBe("and you");
});

test("an answer in the channel belongs to one conversation of the whole channel", async () => {
  const { slack, receiver } = harness;
  receiver.place = { answerTo: "mentions", answerIn: "channel" };
  const ana = slack.person("Ana");
  const channel = slack.channel("ideas", [ana]);
  ana.sends({ channel: channel.id, text: "not this" });
  ana.sends({ channel: channel.id, text: "one", mentionBot: true });
  ana.sends({ channel: channel.id, text: "two", mentionBot: true });
  const found = await messages(2);
  expect(found.map(({ text }) => text)).toEqual(["one", "two"]);
  for (const { conversationId, address } of found) {
    expect(conversationId).toBe(`slack:${slack.teamId}:${channel.id}:channel`);
    expect(address).not.toHaveProperty("thread");
  }
});

test("threads and direct messages stay conversations of their own", async () => {
  const { slack, receiver } = harness;
  receiver.place = { answerTo: "every-message", answerIn: "channel" };
  const ana = slack.person("Ana");
  const ts = ana.sends({ channel: ana.directMessages, text: "hello" });
  const [message] = await messages(1);
  expect(message).toMatchObject({
    conversationId: `slack:${slack.teamId}:${ana.directMessages}:${ts}`,
    address: { thread: ts },
  });
});
