import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { fixture } from "../../../fixtures/fixtures.ts";
import { openSlackHarness, type SlackHarness } from "../../../support/slack-harness.ts";
import type { Person } from "../../../simulators/slack/person.ts";

const nothing = { text: "", attachments: [] };

describe("messages that people edit", () => {
  let harness: SlackHarness;
  let ana: Person;
  beforeEach(async () => {
    harness = await openSlackHarness();
    ana = harness.slack.person("Ana");
  });
  afterEach(() => harness.close());

  const edits = () => harness.receiver.edits;
  const settled = () =>
    harness.slack.waitFor("every event", () =>
      harness.slack.deliveries.every(({ outcome }) => outcome === "acknowledged"),
    );

  test("are reported with their new words, files and time, and the conversations they may be in", async () => {
    const { slack } = harness;
    const channel = slack.channel("ideas", [ana]);
    const file = { name: "picture.png", mediaType: "image/png", bytes: await fixture("picture.png") };
    const said = ana.sends({ channel: channel.id, text: "hello", mentionBot: true, files: [file] });
    const threadReply = ana.sends({ channel: channel.id, thread: said, text: "and?" });
    ana.edits(said, "hello <all>", { channel: channel.id, mentionBot: true });
    ana.edits(threadReply, "and more?", { channel: channel.id });
    await slack.waitFor("two edits", () => edits().length === 2);
    const id = `slack:${slack.teamId}:${channel.id}`;
    expect(edits()).toMatchObject([
      { key: `${id}:${said}`, conversationIds: [`${id}:${said}`, expect.stringContaining(channel.id)] },
      {
        key: `${id}:${threadReply}`,
        conversationIds: [`${id}:${said}`, expect.stringContaining(channel.id)],
      },
    ]);
    expect(await edits()[0]?.read(nothing)).toMatchObject({
      text: "hello <all>",
      attachments: [{ name: "picture.png" }],
    });
    expect(await edits()[1]?.read(nothing)).toEqual({ text: "and more?", attachments: [] });
    expect(edits()[0]?.editedAt).toBeGreaterThan(Number(said) * 1000);
  });

  test("twice in a second are two edits, in their order", async () => {
    const said = ana.sends({ channel: ana.directMessages, text: "one" });
    ana.edits(said, "two", { channel: ana.directMessages });
    ana.edits(said, "three", { channel: ana.directMessages });
    await harness.slack.waitFor("two edits", () => edits().length === 2);
    expect(edits()[1]?.editedAt).toBeGreaterThan(edits()[0]?.editedAt ?? 0);
  });

  test("before the message itself was accepted are the message", async () => {
    const { slack, receiver } = harness;
    receiver.failures = 1;
    receiver.editOutcome = "unknown";
    const said = ana.sends({ channel: ana.directMessages, text: "my secret" });
    await slack.waitFor("the failure", () => receiver.failures === 0);
    ana.edits(said, "harmless", { channel: ana.directMessages });
    await slack.waitFor("the message", () => receiver.events[0]);
    slack.clock.advance(61_000);
    const isOriginal = (event: unknown) => (event as { readonly ts?: string }).ts === said;
    await slack.waitFor("the redelivery", () =>
      slack.deliveries.some(
        ({ payload, outcome }) => outcome === "acknowledged" && isOriginal(payload["event"]),
      ),
    );
    expect(receiver.events).toMatchObject([
      { text: "harmless", edit: { at: edits()[0]?.editedAt, count: 0, attemptsBefore: 0 } },
    ]);
  });

  test("of a message that another process accepts at that moment are reported again", async () => {
    const { slack, receiver } = harness;
    const said = ana.sends({ channel: ana.directMessages, text: "my secret" });
    await slack.waitFor("the message", () => receiver.events[0]);
    receiver.editOutcome = "unknown";
    ana.edits(said, "harmless", { channel: ana.directMessages });
    await slack.waitFor("two reports", () => edits().length === 2);
    await settled();
    expect(edits()[1]?.editedAt).toBe(edits()[0]?.editedAt);
    expect(edits()).toHaveLength(2);
    expect(receiver.events).toHaveLength(1);
  });

  test("of what was not said to the bot are none", async () => {
    const { slack, receiver } = harness;
    receiver.editOutcome = "unknown";
    const channel = slack.channel("ideas", [ana]);
    const said = ana.sends({ channel: channel.id, text: "nothing for the bot" });
    ana.edits(said, "still nothing", { channel: channel.id });
    await slack.waitFor("the edit", () => edits().length === 1);
    await settled();
    expect(receiver.events).toEqual([]);
  });

  test("are not reported for a preview, and for what the bot itself changes", async () => {
    const { slack } = harness;
    const said = ana.sends({ channel: ana.directMessages, text: "see https://example.com" });
    ana.getsPreview(said, { channel: ana.directMessages });
    const event = await slack.waitFor("the message", () => harness.receiver.events[0]);
    const reply = harness.platform.openReply(event.address, { saveAddress: () => Promise.resolve() });
    reply.write({ text: "one" });
    await reply.finish();
    ana.edits(said, "see it", { channel: ana.directMessages });
    ana.getsPreview(said, { channel: ana.directMessages });
    await slack.waitFor("an edit", () => edits().length > 0);
    await settled();
    expect(edits()).toHaveLength(1);
  });

  test("that the store cannot take in are delivered again", async () => {
    const said = ana.sends({ channel: ana.directMessages, text: "one" });
    await harness.slack.waitFor("the message", () => harness.receiver.events.length === 1);
    harness.receiver.failures = 1;
    ana.edits(said, "two", { channel: ana.directMessages });
    await harness.slack.waitFor("the edit", () => edits().length === 1);
    expect(harness.receiver.failures).toBe(0);
  });
});
