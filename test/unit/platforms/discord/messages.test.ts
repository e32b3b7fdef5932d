import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { ParleyError } from "../../../../src/core/errors.ts";
import { fixture } from "../../../fixtures/fixtures.ts";
import { startHarness, type Harness, until, letIdentify } from "./harness.ts";

describe("messages", () => {
  let harness: Harness;
  beforeEach(async () => {
    harness = await startHarness();
  });
  afterEach(() => harness.close());

  const received = (count: number) =>
    until(() => harness.receiver.events.length >= count && harness.receiver.events, {
      explain: () => ({ events: harness.receiver.events, log: harness.lines }),
    });

  test("in a channel only a mention is an event, of the conversation in the thread that it will open", async () => {
    const { simulator, receiver } = harness;
    const ada = simulator.person("Ada");
    const general = simulator.channel("general");
    ada.sends({ channel: general, text: "not for the bot" });
    const message = ada.sends({ channel: general, text: "what is this?", mentionBot: true });
    await received(1);
    expect(receiver.events).toHaveLength(1);
    expect(receiver.events[0]).toMatchObject({
      conversationId: `discord:${message.id}`,
      text: "what is this?",
      address: { channelId: general.id, replyTo: message.id, thread: { title: "what is this?" } },
    });
  });

  test("other bots and webhooks are ignored, in direct messages and mentions too", async () => {
    const { simulator, receiver } = harness;
    const ada = simulator.person("Ada");
    const general = simulator.channel("general");
    simulator.otherBotSends({ channel: general, text: `<@${simulator.botId}> hi` });
    simulator.otherBotSends({ channel: general, text: `<@${simulator.botId}> hi`, isWebhook: true });
    ada.sends({ channel: general, text: "hi", mentionBot: true });
    await received(1);
    expect(receiver.events.map((event) => event.author.name)).toEqual(["Ada"]);
  });

  test("a thread that the bot opened needs no mention, even if the store does not know it", async () => {
    const { simulator, platform, receiver } = harness;
    const ada = simulator.person("Ada");
    const general = simulator.channel("general");
    const message = ada.sends({ channel: general, text: "a note among people" });
    await platform.openThread({ channelId: general.id, channelType: 0, replyTo: message.id }, { title: "x" });
    ada.sends({ channel: { id: message.id }, text: "and here?" });
    const [event] = await received(1);
    expect(event).toMatchObject({ text: "and here?", conversationId: `discord:${message.id}` });
    expect(receiver.events).toHaveLength(1);
  });

  test("mentions, channels, emoji and times become plain text", async () => {
    const { simulator } = harness;
    const ada = simulator.person("Ada");
    const bob = simulator.person("Bob");
    const direct = simulator.directMessages(ada);
    ada.sends({
      channel: direct,
      text: `<@${bob.id}> said <:party:123456789012345678> at <t:0:R>, see </ask:123456789012345678>`,
    });
    const [event] = await received(1);
    expect(event).toMatchObject({ text: "@Bob said :party: at 1970-01-01T00:00:00.000Z, see /ask" });
  });

  test("a command, a form and a message say people, roles and channels by the same names", async () => {
    const { simulator, receiver } = harness;
    const ada = simulator.person("Ada");
    const bob = simulator.person("Bob");
    const general = simulator.channel("general");
    const role = simulator.role("Writers");
    const text = `is <@${bob.id}> one of <@&${role}> in <#${general.id}>, <@${ada.id}>? see </ask:123456789012345678>`;
    const read = "is @Bob one of @Writers in #general, @Ada? see /ask";
    ada.sends({ channel: general, text, mentionBot: true });
    const [message] = await received(1);
    expect(message).toMatchObject({ text: read });
    ada.usesCommand("ask", { prompt: text }, { channel: general });
    const [, command] = await received(2);
    expect(command).toMatchObject({ options: { prompt: read } });
    const picture = bob.sends({ channel: general, text: "what is it?" });
    const use = ada.usesMessageCommand("Ask about this", picture, { channel: general });
    const modal = await until(() => use.interaction.modal);
    const [{ label } = { label: "" }] = modal.inputs;
    ada.submitsModal(use, { [label]: text });
    const [, , form] = await received(3);
    expect(form).toMatchObject({ options: { prompt: read } });
    expect(receiver.events).toHaveLength(3);
  });

  test("in a command the bot is named, since its mention calls nobody there", async () => {
    const { simulator } = harness;
    const ada = simulator.person("Ada");
    ada.usesCommand(
      "ask",
      { prompt: `what can <@${simulator.botId}> do?` },
      { channel: simulator.channel("x") },
    );
    const [command] = await received(1);
    expect(command).toMatchObject({ options: { prompt: "what can @parley do?" } });
  });

  test("channels of another server are not named, in servers and direct messages", async () => {
    const { simulator } = harness;
    const other = simulator.server("Other");
    const secret = other.channel("merger");
    // The bot knows the server from its next session on.
    await harness.restart();
    const ada = simulator.person("Ada");
    ada.sends({ channel: simulator.channel("general"), text: `what is <#${secret.id}>?`, mentionBot: true });
    ada.sends({ channel: simulator.directMessages(ada), text: `what is <#${secret.id}>?` });
    const events = await received(2);
    expect(events.map((event) => "text" in event && event.text)).toEqual([
      "what is #channel?",
      "what is #channel?",
    ]);
  });

  test("the message that a mention replies to is quoted, with its files", async () => {
    const { simulator } = harness;
    const ada = simulator.person("Ada");
    const bob = simulator.person("Bob");
    const general = simulator.channel("general");
    const picture = bob.sends({
      channel: general,
      text: "my drawing",
      files: [{ name: "picture.png", bytes: await fixture("picture.png") }],
    });
    ada.sends({ channel: general, text: "what is it?", mentionBot: true, replyTo: picture });
    const [event] = await received(1);
    expect(event).toMatchObject({
      text: "> Bob wrote:\n> my drawing\n\nwhat is it?",
      attachments: [{ name: "picture.png", mediaType: "image/png" }],
    });
  });

  test("a voice message has its duration, and is downloaded from Discord's own host", async () => {
    const { simulator, platform } = harness;
    const ada = simulator.person("Ada");
    const bytes = await fixture("voice.ogg");
    const direct = simulator.directMessages(ada);
    ada.sends({ channel: direct, files: [{ name: "voice-message.ogg", bytes, voiceSecs: 2.5 }] });
    const [event] = await received(1);
    if (event?.kind !== "message") throw new Error("no message");
    const attachment = event.attachments[0]!;
    expect(attachment).toMatchObject({ name: "voice-message.ogg", mediaType: "audio/ogg", durationMs: 2500 });
    const signal = AbortSignal.timeout(5000);
    const read = await platform.download(attachment, { maxBytes: 1e6, signal });
    expect(Buffer.from(read).equals(Buffer.from(bytes))).toBe(true);
    // Two days later its URL has expired. The message, fetched again, has a new one.
    simulator.advance(48 * 3600 * 1000);
    await expect(platform.download(attachment, { maxBytes: 1e6, signal })).resolves.toHaveLength(
      bytes.length,
    );
    await expect(platform.download(attachment, { maxBytes: 10, signal })).rejects.toMatchObject({
      code: "attachment-too-large",
    });
  });

  test("a file whose URL has expired is not said to be gone when Discord cannot be asked for another", async () => {
    const { simulator, platform } = harness;
    const ada = simulator.person("Ada");
    const files = [{ name: "picture.png", bytes: await fixture("picture.png") }];
    ada.sends({ channel: simulator.directMessages(ada), files });
    const [event] = await received(1);
    if (event?.kind !== "message") throw new Error("no message");
    simulator.advance(48 * 3600 * 1000);
    simulator.fail({ method: "GET", route: "/messages/", status: 503, times: 99 });
    const limits = { maxBytes: 1e6, signal: AbortSignal.timeout(15_000) };
    await expect(platform.download(event.attachments[0]!, limits)).rejects.toMatchObject({
      code: "platform-unreachable",
    });
  });

  test("in a thread that the bot opened the person is told too, although nothing is known after a restart", async () => {
    const { simulator, platform, receiver } = harness;
    const ada = simulator.person("Ada");
    const general = simulator.channel("general");
    const root = ada.sends({ channel: general, text: "a note among people" });
    await platform.openThread({ channelId: general.id, channelType: 0, replyTo: root.id }, { title: "x" });
    const [thread] = general.threads();
    receiver.outage = new ParleyError("store-unavailable", "down");
    const message = ada.sends({ channel: thread!, text: "and here?" });
    const [told] = await until(() => thread!.fromBot().length > 0 && thread!.fromBot(), {
      explain: () => harness.lines,
    });
    expect(told).toMatchObject({ replyTo: message.id, text: expect.stringContaining("store") });
  });

  test("in a thread that people opened what was told is looked up too once the store is back", async () => {
    const { simulator, receiver } = harness;
    const ada = simulator.person("Ada");
    const ben = simulator.person("Ben");
    const thread = simulator.thread(simulator.channel("general"), ada);
    receiver.known.add(`discord:${thread.id}`);
    receiver.outage = new ParleyError("store-unavailable", "down");
    const refused = ada.sends({ channel: thread, text: "told", mentionBot: true });
    await until(() => thread.fromBot().length > 0);
    const unclear = ben.sends({ channel: thread, text: "without a mention" });
    await until(() => harness.lines.filter(({ message }) => message === "message not accepted").length === 2);
    receiver.outage = undefined;
    const events = await received(2);
    expect(events.map(({ key }) => key)).toEqual([refused, unclear].map(({ id }) => `discord:${id}`));
    expect(thread.fromBot()).toMatchObject([{ text: expect.stringContaining("may still get an answer") }]);
  });

  test("while the process stops nothing is said of a message that comes too late: it is looked up later", async () => {
    const { simulator, receiver } = harness;
    const ada = simulator.person("Ada");
    const direct = simulator.directMessages(ada);
    receiver.refusal = new ParleyError("stopping", "the process is stopping");
    ada.sends({ channel: direct, text: "hello" });
    await until(() => harness.lines.some(({ message }) => message === "message left for the next look-up"));
    expect(direct.fromBot()).toEqual([]);
  });

  test("of a missed message that is not accepted nothing is said: it is looked up again", async () => {
    const { simulator, receiver } = harness;
    const ada = simulator.person("Ada");
    const direct = simulator.directMessages(ada);
    receiver.known.add(`discord:${direct.id}`);
    const notAccepted = () => harness.lines.filter((line) => line.message === "message not accepted").length;
    receiver.refusal = new ParleyError("store-unavailable", "down");
    letIdentify();
    simulator.gateway.invalidateSession(false);
    await until(() => !simulator.gateway.isConnected());
    const message = ada.sends({ channel: direct, text: "hello" });
    await until(() => notAccepted() > 0, { timeoutMs: 20_000, explain: () => harness.lines });
    receiver.refusal = undefined;
    const [event] = await received(1);
    expect(event?.key).toBe(`discord:${message.id}`);
    expect(direct.fromBot()).toEqual([]);
  });

  test("a missed message whose author's roles cannot be read yet is accepted when they can", async () => {
    const { simulator, receiver } = harness;
    const ada = simulator.person("Ada");
    const thread = simulator.thread(simulator.channel("general"), ada);
    receiver.known.add(`discord:${thread.id}`);
    letIdentify();
    simulator.gateway.invalidateSession(false);
    await until(() => !simulator.gateway.isConnected());
    const message = ada.sends({ channel: thread, text: "hello" });
    simulator.fail({ method: "GET", route: "/members/", status: 503, times: 9 });
    const [event] = await received(1);
    expect(event?.key).toBe(`discord:${message.id}`);
    expect(thread.fromBot()).toEqual([]);
  });

  test("a person with too much waiting is told once, however many messages follow", async () => {
    const { simulator, receiver } = harness;
    const ada = simulator.person("Ada");
    const direct = simulator.directMessages(ada);
    receiver.refusal = new ParleyError("busy", "too much", { detail: { waiting: 50 } });
    for (let count = 0; count < 20; count++) ada.sends({ channel: direct, text: `message ${count}` });
    await until(() => receiver.offeredKeys.length === 20);
    receiver.refusal = undefined;
    ada.sends({ channel: direct, text: "the last" });
    await received(1);
    expect(direct.fromBot().map(({ text }) => text)).toEqual([
      expect.stringContaining("You have 50 requests that are not answered yet"),
    ]);
    // Nor is the log filled by one person.
    const said = harness.lines.filter(
      ({ message, level }) => level !== "debug" && /message (refused|not)/.test(message),
    );
    expect(said).toMatchObject([{ level: "info", fields: { code: "busy" } }]);
  });
});
