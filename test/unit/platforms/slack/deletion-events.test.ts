import { afterEach, beforeEach, expect, test } from "vitest";
import { openSlackHarness, type SlackHarness } from "../../../support/slack-harness.ts";

let harness: SlackHarness;
beforeEach(async () => {
  harness = await openSlackHarness();
});
afterEach(async () => {
  expect(harness.slack.badAcks).toEqual([]);
  await harness.close();
});

const nextEvent = (index = 0) => harness.slack.waitFor("the event", () => harness.receiver.events[index]);
const deletions = (count: number) =>
  harness.slack.waitFor("the deletions", () =>
    harness.receiver.deletions.length >= count ? harness.receiver.deletions : undefined,
  );

test("messages and commands name the channel that contains them, except in direct messages", async () => {
  const { slack } = harness;
  const ana = slack.person("Ana");
  const channel = slack.channel("ideas", [ana]);
  const team = `slack:team:${slack.teamId}`;
  const within = [`slack:channel:${slack.teamId}:${channel.id}`, team];
  ana.sends({ channel: channel.id, text: "hello", mentionBot: true });
  expect((await nextEvent()).within).toEqual(within);
  await ana.usesCommand("/ask", "why?", { channel: channel.id });
  expect((await nextEvent(1)).within).toEqual(within);
  ana.sends({ channel: ana.directMessages, text: "hello" });
  expect((await nextEvent(2)).within).toEqual([team]);
});

test("a deleted channel is reported as the place that its conversations are within", async () => {
  const { slack } = harness;
  const ana = slack.person("Ana");
  const channel = slack.channel("ideas", [ana]);
  ana.sends({ channel: channel.id, text: "hello", mentionBot: true });
  const { within } = await nextEvent();
  channel.delete();
  // The second name is the one under which its settings are held.
  expect(await deletions(2)).toEqual([within?.[0], `slack:channel:${channel.id}`]);
});

test("conversations of a deleted channel that were stored without a place are reported too, however many", async () => {
  const { slack, receiver } = harness;
  const ana = slack.person("Ana");
  const channel = slack.channel("ideas", [ana]);
  const inChannel = [1, 2, 3, 4, 5].map((n) => `slack:${slack.teamId}:${channel.id}:${n}.000000`);
  const elsewhere = `slack:${slack.teamId}:COTHER:1.000000`;
  for (const id of [...inChannel, elsewhere]) receiver.stored.add(id);
  channel.delete();
  const [place, ...rest] = await deletions(2 + inChannel.length);
  expect(place).toBe(`slack:channel:${slack.teamId}:${channel.id}`);
  expect(rest).toEqual([...inChannel, `slack:channel:${channel.id}`]);
  expect([...receiver.stored]).toEqual([elsewhere]);
});

test("a deleted message is reported in its thread's conversation, also a root that becomes a tombstone", async () => {
  const { slack, receiver } = harness;
  const ana = slack.person("Ana");
  const channel = slack.channel("ideas", [ana]);
  const root = ana.sends({ channel: channel.id, text: "root" });
  const answer = ana.sends({ channel: channel.id, thread: root, text: "answer" });
  const id = (ts: string) => `slack:${slack.teamId}:${channel.id}:${ts}`;
  channel.deleteMessage(root);
  await deletions(1);
  channel.deleteMessage(answer);
  await deletions(2);
  expect(receiver.deletions).toEqual([`${id(root)}: ${id(root)}`, `${id(root)}: ${id(answer)}`]);
});

test("a deleted message of a channel that is one conversation is reported there too", async () => {
  const { slack, receiver } = harness;
  const ana = slack.person("Ana");
  const channel = slack.channel("ideas", [ana]);
  const prefix = `slack:${slack.teamId}:${channel.id}`;
  receiver.known.add(`${prefix}:channel`);
  const ts = ana.sends({ channel: channel.id, text: "hello" });
  channel.deleteMessage(ts);
  expect(await deletions(2)).toEqual([
    `${prefix}:${ts}: ${prefix}:${ts}`,
    `${prefix}:channel: ${prefix}:${ts}`,
  ]);
});
