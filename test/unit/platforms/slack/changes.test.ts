import type { ReceiverEvent } from "@slack/bolt";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { ParleyError } from "../../../../src/core/errors.ts";
import type { IncomingMessage } from "../../../../src/core/events.ts";
import { createLateAcks } from "../../../../src/platforms/slack/transport/durable-app.ts";
import { fixture } from "../../../fixtures/fixtures.ts";
import type { Person } from "../../../simulators/slack/person.ts";
import { createManualClock } from "../../../support/manual-clock.ts";
import { openSlackHarness, type SlackHarness } from "../../../support/slack-harness.ts";

let harness: SlackHarness;
let ana: Person;
beforeEach(async () => {
  harness = await openSlackHarness();
  ana = harness.slack.person("Ana");
});
afterEach(() => harness.close());

describe("edits", () => {
  const nothing = { text: "", attachments: [] };

  describe("messages that people edit", () => {
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
      expect(receiver.events).toMatchObject([{ text: "harmless", edit: { at: edits()[0]?.editedAt } }]);
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
});

describe("deletions", () => {
  afterEach(() => expect(harness.slack.badAcks).toEqual([]));

  const nextEvent = (index = 0) => harness.slack.waitFor("the event", () => harness.receiver.events[index]);
  const deletions = (count: number) =>
    harness.slack.waitFor("the deletions", () =>
      harness.receiver.deletions.length >= count ? harness.receiver.deletions : undefined,
    );

  test("messages and commands name the channel that contains them, except in direct messages", async () => {
    const { slack } = harness;
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
    const channel = slack.channel("ideas", [ana]);
    ana.sends({ channel: channel.id, text: "hello", mentionBot: true });
    const { within } = await nextEvent();
    channel.delete();
    // Its settings are held under the second name.
    expect(await deletions(2)).toEqual([within?.[0], `slack:channel:${channel.id}`]);
  });

  test("conversations of a deleted channel that were stored without a place are reported too, however many", async () => {
    const { slack, receiver } = harness;
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
});

describe("answered channels", () => {
  afterEach(() => expect(harness.slack.badAcks).toEqual([]));

  const messages = (count: number) =>
    harness.slack.waitFor("the messages", () => {
      const found = harness.receiver.events.filter(
        (event): event is IncomingMessage => event.kind === "message",
      );
      return found.length >= count ? found : undefined;
    });

  test("in a channel that is answered whole, every message is an event in its thread", async () => {
    const { slack, receiver } = harness;
    receiver.place = { answerTo: "all", answerIn: "thread" };
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
    receiver.place = { answerTo: "addressed", answerIn: "channel" };
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
    receiver.place = { answerTo: "all", answerIn: "channel" };
    const ts = ana.sends({ channel: ana.directMessages, text: "hello" });
    const [message] = await messages(1);
    expect(message).toMatchObject({
      conversationId: `slack:${slack.teamId}:${ana.directMessages}:${ts}`,
      address: { thread: ts },
    });
  });
});

describe("event intake", () => {
  /** Does what an app does with an event, and records the acknowledgements that Slack gets. */
  function open(handle: (event: ReceiverEvent) => Promise<void>) {
    const acks: unknown[] = [];
    const closing = new AbortController();
    const clock = createManualClock();
    const intake = createLateAcks(handle, closing.signal, clock);
    const send = (body: Record<string, unknown>): Promise<void> =>
      intake.processEvent({
        body,
        ack(response) {
          acks.push(response);
          return Promise.resolve();
        },
      });
    return { acks, clock, closing, intake, send };
  }

  const event = { type: "event_callback" };

  test("an event is acknowledged when it is handled, and not where its handler fails", async () => {
    const { promise, resolve } = Promise.withResolvers<void>();
    const handled = open(async ({ ack }) => {
      // Bolt does so before the listeners run.
      await ack();
      await promise;
    });
    const sent = handled.send(event);
    await Promise.resolve();
    expect(handled.acks).toEqual([]);
    resolve();
    await sent;
    expect(handled.acks).toHaveLength(1);
    const failing = open(() => Promise.reject(new Error("no store")));
    await expect(failing.send(event)).rejects.toThrow("no store");
    expect(failing.acks).toEqual([]);
  });

  test("a button is acknowledged in time, whatever takes long behind it, and once", async () => {
    const { promise, resolve } = Promise.withResolvers<void>();
    const { acks, clock, send } = open(async ({ ack }) => {
      await promise;
      await ack();
    });
    const sent = send({ type: "block_actions" });
    await clock.advance(2999);
    expect(acks).toHaveLength(1);
    resolve();
    await sent;
    expect(acks).toHaveLength(1);
  });

  test("what nobody listens to is acknowledged, with nothing in it", async () => {
    const { acks, send } = open(() => Promise.resolve());
    await send({ type: "block_actions" });
    await send({ type: "view_closed" });
    expect(acks).toEqual([undefined, undefined]);
  });

  test("while it closes, events are refused and commands are handled", async () => {
    const { acks, closing, intake, send } = open(({ ack }) => ack("said"));
    closing.abort(new ParleyError("stopping", "closing"));
    await expect(send(event)).rejects.toMatchObject({ code: "stopping" });
    await send({ command: "/ask" });
    expect(acks).toEqual(["said"]);
    await intake.whenHandled();
  });
});
