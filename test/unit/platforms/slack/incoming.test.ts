import { afterEach, beforeEach, describe, expect, test } from "vitest";
import type { IncomingMessage } from "../../../../src/core/events.ts";
import { fixture } from "../../../fixtures/fixtures.ts";
import { openSlackHarness, type SlackHarness } from "../../../support/slack-harness.ts";

let harness: SlackHarness;
beforeEach(async () => {
  harness = await openSlackHarness();
});
afterEach(() => harness.closeStrictly());

const messages = () =>
  harness.receiver.events.filter((event): event is IncomingMessage => event.kind === "message");
const nextMessage = () => harness.slack.waitFor("a message", () => messages()[0]);
/** Resolves when every delivery has been acknowledged. */
const settled = () =>
  harness.slack.waitFor("acknowledgements", () =>
    harness.slack.deliveries.every((delivery) => delivery.outcome === "acknowledged"),
  );

describe("direct messages", () => {
  test("start a conversation each", async () => {
    const ana = harness.slack.person("Ana");
    const ts = ana.sends({ channel: ana.directMessages, text: "1 < 2 & so on" });
    const message = await nextMessage();
    expect(message).toMatchObject({
      key: `slack:${harness.slack.teamId}:${ana.directMessages}:${ts}`,
      conversationId: `slack:${harness.slack.teamId}:${ana.directMessages}:${ts}`,
      platform: "slack",
      author: { id: `slack:${harness.slack.teamId}:${ana.id}`, name: "Ana" },
      text: "1 < 2 & so on",
      sentAt: Math.round(Number(ts) * 1000),
    });
    await settled();
  });

  test("in a thread belong to the thread's conversation", async () => {
    const ana = harness.slack.person("Ana");
    const root = ana.sends({ channel: ana.directMessages, text: "one" });
    await nextMessage();
    ana.sends({ channel: ana.directMessages, thread: root, text: "two" });
    await harness.slack.waitFor("two messages", () => messages().length === 2);
    expect(messages()[1]?.conversationId).toBe(messages()[0]?.conversationId);
  });

  test("keep their order, also if the first takes longer to read", async () => {
    const ana = harness.slack.person("Ana");
    const file = {
      name: "notes.txt",
      mediaType: "text/plain",
      bytes: new Uint8Array([65]),
      extra: { file_access: "check_file_info" },
    };
    ana.sends({ channel: ana.directMessages, text: "hello" });
    await nextMessage();
    ana.sends({ channel: ana.directMessages, text: "one", files: [file] });
    ana.sends({ channel: ana.directMessages, text: "two" });
    await harness.slack.waitFor("three messages", () => messages().length === 3);
    expect(messages().map(({ text }) => text)).toEqual(["hello", "one", "two"]);
  });
});

describe("channels", () => {
  test.each(["app_mention", "message"] as const)(
    "a mention is one message in its thread when %s comes first",
    async (first) => {
      const ana = harness.slack.person("Ana");
      const bo = harness.slack.person("Bo");
      const channel = harness.slack.channel("ideas", [ana, bo]);
      const ts = ana.sends({
        channel: channel.id,
        markup: `<@${harness.slack.botUserId}> what does <@${bo.id}> say?`,
        first,
      });
      const message = await nextMessage();
      await settled();
      expect(messages()).toHaveLength(1);
      expect(message.text).toBe("what does @Bo say?");
      expect(message.conversationId).toBe(`slack:${harness.slack.teamId}:${channel.id}:${ts}`);
      expect(message.address).toMatchObject({ channel: channel.id, thread: ts });
    },
  );

  test.each(["app_mention", "message"] as const)(
    "a mention has its files when %s comes first",
    async (first) => {
      const ana = harness.slack.person("Ana");
      const channel = harness.slack.channel("ideas", [ana]);
      const file = { name: "picture.png", mediaType: "image/png", bytes: await fixture("picture.png") };
      ana.sends({ channel: channel.id, text: "what is this?", mentionBot: true, files: [file], first });
      const message = await nextMessage();
      await settled();
      expect(message.attachments).toMatchObject([{ name: "picture.png", mediaType: "image/png" }]);
      expect(messages()).toHaveLength(1);
      expect(harness.slack.calls.map(({ method }) => method)).not.toContain("conversations.history");
    },
  );

  test("a mention that is edited is answered once, and not anew a day later", async () => {
    const { slack } = harness;
    const ana = slack.person("Ana");
    const channel = slack.channel("ideas", [ana]);
    const said = ana.sends({ channel: channel.id, text: "hello", mentionBot: true });
    expect((await nextMessage()).text).toBe("hello");
    ana.edits(said, "hello, all", { channel: channel.id, mentionBot: true });
    // One mention was forgotten, and one is added to what is history by now.
    const forgotten = ana.sends({ channel: channel.id, text: "and this?" });
    ana.edits(forgotten, "and this?", { channel: channel.id, mentionBot: true });
    await slack.waitFor("the forgotten mention", () => messages().length === 2);
    const old = ana.sends({ channel: channel.id, text: "nothing for the bot" });
    await settled();
    slack.clock.advance(24 * 3_600_000);
    ana.edits(old, "nothing for the bot?", { channel: channel.id, mentionBot: true });
    ana.sends({ channel: channel.id, text: "the last", mentionBot: true });
    await slack.waitFor("the last", () => messages().some(({ text }) => text === "the last"));
    await settled();
    expect(messages().map(({ text }) => text)).toEqual(["hello", "and this?", "the last"]);
    // It may have been read as said to others before its edit.
    expect(messages().map(({ edit }) => edit !== undefined)).toEqual([false, true, false]);
  });

  test("a mention without a message event is accepted with its files", async () => {
    const ana = harness.slack.person("Ana");
    const channel = harness.slack.channel("ideas", [ana]);
    const file = { name: "picture.png", mediaType: "image/png", bytes: await fixture("picture.png") };
    // The mention is what brings the bot into the channel.
    ana.sends({
      channel: channel.id,
      text: "hello",
      mentionBot: true,
      files: [file],
      messageAfterMs: 60_000,
    });
    expect((await nextMessage()).attachments).toHaveLength(1);
  });

  test("a mention whose file lookup fails is accepted by its message event", async () => {
    const ana = harness.slack.person("Ana");
    const channel = harness.slack.channel("ideas", [ana]);
    const file = { name: "picture.png", mediaType: "image/png", bytes: await fixture("picture.png") };
    harness.slack.fail("conversations.history", { error: "internal_error" });
    ana.sends({ channel: channel.id, text: "what is this?", mentionBot: true, files: [file] });
    expect((await nextMessage()).attachments).toHaveLength(1);
    await harness.slack.waitFor("every event", () => harness.slack.deliveries.length >= 2);
  });

  test("a channel with more answers than Slack takes there is full, and no other is", async () => {
    const { slack, platform } = harness;
    const ana = slack.person("Ana");
    const channel = slack.channel("ideas", [ana]);
    ana.sends({ channel: channel.id, text: "one", mentionBot: true });
    const { address } = await nextMessage();
    const isFull = () => platform.delivery?.isFull(address);
    const hooks = { saveAddress: () => Promise.resolve() };
    const replies = Array.from({ length: 80 }, () => platform.openReply(address, hooks));
    expect(isFull()).toBe(false);
    slack.limit("chat.postMessage", 0);
    replies[0]?.write({ text: "too many" });
    await slack.waitFor("a full channel", isFull);
    ana.sends({ channel: ana.directMessages, text: "elsewhere" });
    const elsewhere = await slack.waitFor("it", () => messages().find(({ text }) => text === "elsewhere"));
    expect(platform.delivery?.isFull(elsewhere.address)).toBe(false);
    for (const reply of replies) reply.abandon();
    expect(isFull()).toBe(false);
  });

  test("messages that are not for the bot are ignored", async () => {
    const ana = harness.slack.person("Ana");
    const channel = harness.slack.channel("ideas", [ana]);
    const root = ana.sends({ channel: channel.id, text: "good morning" });
    ana.sends({ channel: channel.id, text: "and a reply", thread: root });
    ana.sends({ channel: channel.id, mentionBot: true, text: "renamed", subtype: "channel_topic" });
    harness.slack.otherBotSends(channel, `<@${harness.slack.botUserId}> beep`);
    harness.slack.sendEvent({
      type: "message",
      subtype: "message_changed",
      channel: channel.id,
      channel_type: "channel",
      ts: root,
      event_ts: root,
      message: { type: "message", user: ana.id, ts: root, text: `<@${harness.slack.botUserId}> edited` },
    });
    await settled();
    // The app_mention of a topic has no subtype, so it is accepted.
    expect(messages().map(({ text }) => text)).toEqual(["renamed"]);
  });

  test("what is said with /me is said", async () => {
    const ana = harness.slack.person("Ana");
    ana.sends({ channel: ana.directMessages, text: "wonders", subtype: "me_message" });
    await harness.slack.waitFor("the message", () => messages().some(({ text }) => text === "wonders"));
  });

  test("a reply in a thread that the bot's own message began is for the bot; elsewhere it is not", async () => {
    const { slack } = harness;
    const ana = slack.person("Ana");
    const channel = slack.channel("ideas", [ana]);
    ana.sends({ channel: channel.id, text: "hello", mentionBot: true });
    const { address } = await nextMessage();
    const { thread: _thread, ...inChannel } = address;
    const reply = harness.platform.openReply(inChannel, { saveAddress: () => Promise.resolve() });
    reply.write({ text: "the answer" });
    await reply.finish();
    const own = await slack.waitFor("the answer", () => channel.saidByBot()[0]);
    expect(own.thread).toBeUndefined();
    const peoples = ana.sends({ channel: channel.id, text: "news" });
    ana.sends({ channel: channel.id, thread: peoples, text: "not for the bot" });
    ana.sends({ channel: channel.id, thread: own.ts, text: "why?" });
    const message = await slack.waitFor("the reply", () => messages()[1]);
    expect(message).toMatchObject({
      text: "why?",
      inRoom: true,
      conversationId: `slack:${slack.teamId}:${channel.id}:${own.ts}`,
    });
    await settled();
    expect(messages()).toHaveLength(2);
  });
});

describe("accepting", () => {
  test("an event that cannot be stored is not acknowledged, and is accepted when redelivered", async () => {
    const ana = harness.slack.person("Ana");
    harness.receiver.failures = 1;
    ana.sends({ channel: ana.directMessages, text: "keep this" });
    const first = await harness.slack.waitFor("a delivery", () => harness.slack.deliveries[0]);
    await harness.slack.waitFor("a failure", () => harness.receiver.failures === 0);
    expect(first.outcome).toBe("waiting");
    harness.slack.clock.advance(3000);
    expect(first.outcome).toBe("timeout");
    harness.slack.clock.advance(1000);
    expect((await nextMessage()).text).toBe("keep this");
    await harness.slack.waitFor(
      "an acknowledgement",
      () => harness.slack.deliveries[1]?.outcome === "acknowledged",
    );
    expect(harness.slack.deliveries[1]?.attempt).toBe(1);
  });

  test("an event that cannot be stored at Slack's last delivery either is said in words that are true either way", async () => {
    const { slack, receiver } = harness;
    const ana = slack.person("Ana");
    receiver.failures = Number.POSITIVE_INFINITY;
    ana.sends({ channel: ana.directMessages, text: "keep this" });
    for (let delivery = 1; delivery <= 4; delivery++) {
      await slack.waitFor(`delivery ${delivery}`, () => slack.deliveries.length === delivery);
      expect(slack.directMessages(ana).saidByBot()).toEqual([]);
      if (delivery === 4) break;
      slack.clock.advance(3000);
      slack.clock.advance(300_000);
    }
    await slack.waitFor("an acknowledgement", () => slack.deliveries[3]?.outcome === "acknowledged");
    expect(slack.directMessages(ana).saidByBot()).toMatchObject([
      { onlyFor: "Ana", text: expect.stringContaining("may still get an answer") },
    ]);
    expect(slack.lost).toEqual([]);
  });

  test("so is what cannot even be looked up: a mention in a thread or a channel, and what is said below the bot's message", async () => {
    const { slack, receiver } = harness;
    const ana = slack.person("Ana");
    const channel = slack.channel("ideas", [ana]);
    ana.sends({ channel: channel.id, text: "hello", mentionBot: true });
    const { thread: _thread, ...inChannel } = (await nextMessage()).address;
    const reply = harness.platform.openReply(inChannel, { saveAddress: () => Promise.resolve() });
    reply.write({ text: "the answer" });
    await reply.finish();
    const own = await slack.waitFor("the answer", () => channel.saidByBot()[0]);
    const peoples = ana.sends({ channel: channel.id, text: "news" });
    await settled();
    receiver.isStoreAway = true;
    const said = [
      ana.sends({ channel: channel.id, thread: peoples, text: "what of it?", mentionBot: true }),
      ana.sends({ channel: channel.id, text: "and you?", mentionBot: true }),
      ana.sends({ channel: channel.id, thread: own.ts, text: "why?" }),
      ana.sends({ channel: channel.id, thread: peoples, text: "said to people" }),
    ];
    const attempts = (attempt: number) =>
      slack.deliveries.filter(
        (one) =>
          one.attempt === attempt &&
          one.what === "message" &&
          said.includes((one.payload["event"] as { ts: string }).ts),
      );
    for (let attempt = 0; attempt < 3; attempt += 1) {
      await slack.waitFor(`delivery ${attempt}`, () => attempts(attempt).length === said.length);
      await slack.waitFor("the other events of the mentions", () =>
        slack.deliveries.every(({ what, outcome }) => what !== "app_mention" || outcome === "acknowledged"),
      );
      slack.clock.advance(3000);
      slack.clock.advance(300_000);
    }
    const told = () => channel.saidByBot().filter(({ onlyFor }) => onlyFor === "Ana");
    await slack.waitFor("the words", () => told().length === 3);
    const words = expect.stringContaining("may still get an answer");
    expect(told().map(({ thread, text }) => [thread, text])).toEqual(
      expect.arrayContaining([
        [peoples, words],
        [undefined, words],
        [own.ts, words],
      ]),
    );
  });

  test("reconnects when the connection breaks, and accepts what was sent meanwhile", async () => {
    const ana = harness.slack.person("Ana");
    const opened = (times: number) => () =>
      harness.platform.health().state === "ready" &&
      harness.slack.connections === 1 &&
      harness.slack.calls.filter(
        ({ method, outcome }) => method === "apps.connections.open" && outcome === "ok",
      ).length === times;
    await harness.slack.waitFor("a connection", opened(1));
    harness.slack.fail("apps.connections.open", { status: 503 });
    harness.slack.cutConnections();
    ana.sends({ channel: ana.directMessages, text: "anybody there?" });
    await harness.slack.waitFor("a second connection", opened(2));
    harness.slack.clock.advance(61_000);
    expect((await nextMessage()).text).toBe("anybody there?");
  });
});

// Attack: Have the bot flood a channel with refusals. What holds: one short answer, private where
// the platform can.
describe("while too much of a person's waits", () => {
  test("each message gets one short private answer and is not delivered again", async () => {
    const { slack, receiver } = harness;
    const ana = slack.person("Ana");
    const channel = slack.channel("general", [ana]);
    receiver.isBusy = true;
    ana.sends({ channel: channel.id, markup: `<@${slack.botUserId}> one more` });
    const notices = () => slack.transcriptOf(channel.id).filter((message) => message.onlyFor !== undefined);
    await slack.waitFor("the notice", () => notices()[0]);
    await settled();
    // Both `message` and `app_mention` were delivered.
    expect(slack.deliveries.length).toBeGreaterThan(1);
    expect(notices().map(({ text, onlyFor }) => ({ text, onlyFor }))).toEqual([
      { text: expect.stringContaining("You have 50 requests that are not answered yet"), onlyFor: "Ana" },
    ]);
    expect(receiver.events).toEqual([]);
  });
});
