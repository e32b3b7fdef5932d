import { afterEach, beforeEach, describe, expect, test } from "vitest";
import type { IncomingEvent, ReplyAddress } from "../../../../src/core/events.ts";
import type { Reply, ReplyFile } from "../../../../src/core/reply.ts";
import { fixture } from "../../../fixtures/fixtures.ts";
import { startHarness, type Harness, until } from "./harness.ts";

describe("replies", () => {
  let harness: Harness;
  beforeEach(async () => {
    harness = await startHarness();
  });
  afterEach(() => harness.close());

  const nextEvent = async (count = 1): Promise<IncomingEvent> => {
    const events = await until(() => harness.receiver.events.length >= count && harness.receiver.events, {
      explain: () => harness.lines,
    });
    return events[count - 1]!;
  };

  const open = (address: ReplyAddress): { reply: Reply; saved: ReplyAddress[] } => {
    const saved: ReplyAddress[] = [];
    const reply = harness.platform.openReply(address, {
      saveAddress: async (grown) => void saved.push(structuredClone(grown)),
    });
    return { reply, saved };
  };

  const picture = async (): Promise<ReplyFile> => ({
    name: "cat.png",
    mediaType: "image/png",
    bytes: await fixture("picture.png"),
    altText: "A cat on a roof",
  });

  test("in a direct message the first text is the first post: there is no placeholder", async () => {
    const { simulator } = harness;
    const ada = simulator.person("Ada");
    const direct = simulator.directMessages(ada);
    ada.sends({ channel: direct, text: "hello" });
    const { reply, saved } = open((await nextEvent()).address);
    await reply.show();
    expect(direct.fromBot()).toEqual([]);
    expect(saved.at(-1)).toMatchObject({ messages: [] });
    reply.write({ text: "Good morning." });
    await until(() => saved.length === 2);
    expect(saved.at(-1)).toMatchObject({ messages: [{ channelId: direct.id, isOwn: true }] });
    expect(direct.fromBot()).toMatchObject([{ notification: "Good morning." }]);
    await reply.finish({ notices: ["Only the last 3 messages were used."] });
    expect(direct.fromBot()).toMatchObject([
      { text: "Good morning.\n-# Only the last 3 messages were used.", previews: [], pings: [] },
    ]);
  });

  for (const permission of ["CREATE_PUBLIC_THREADS", "SEND_MESSAGES_IN_THREADS"] as const) {
    test(`without ${permission} the answer is posted in the channel, as a reply, and says why`, async () => {
      const { simulator } = harness;
      const ada = simulator.person("Ada");
      const general = simulator.channel("general");
      general.deny(permission);
      const asked = ada.sends({ channel: general, text: "what?", mentionBot: true });
      const event = await nextEvent();
      const { reply } = open(event.address);
      await reply.show();
      reply.write({ text: "That." });
      await reply.finish();
      const [shown] = general.fromBot();
      expect(shown?.replyTo).toBe(asked.id);
      expect(shown?.text).toMatch(/^That\.\n-# No thread could be used here/);
      // A reply to the answer continues the conversation.
      harness.receiver.known.add(event.conversationId);
      ada.sends({ channel: general, text: "and then?", replyTo: shown! });
      expect((await nextEvent(2)).conversationId).toBe(event.conversationId);
    });
  }

  test("a command's placeholder becomes its answer; further messages follow it", async () => {
    const { simulator } = harness;
    const ada = simulator.person("Ada");
    const general = simulator.channel("general");
    ada.usesCommand("ask", { prompt: "why?" }, { channel: general });
    const { reply } = open((await nextEvent()).address);
    await reply.show();
    reply.write({
      text: Array.from({ length: 60 }, (_, index) => `Paragraph ${index}. ${"word ".repeat(10)}`).join(
        "\n\n",
      ),
    });
    await reply.finish();
    const shown = general.fromBot();
    expect(shown.length).toBeGreaterThan(1);
    expect(shown.every((message) => !message.isThinking && message.text.length <= 2000)).toBe(true);
    const all = shown.map((message) => message.text).join("\n\n");
    for (let index = 0; index < 60; index += 1) expect(all).toContain(`Paragraph ${index}. `);
  });

  test("after 15 minutes a command's reply continues in ordinary messages", async () => {
    const { simulator } = harness;
    const ada = simulator.person("Ada");
    const general = simulator.channel("general");
    ada.usesCommand("ask", { prompt: "why?" }, { channel: general });
    const { reply } = open((await nextEvent()).address);
    await reply.show();
    reply.write({ text: "Because" });
    await until(() => general.fromBot()[0]?.text.startsWith("Because"));
    simulator.advance(16 * 60 * 1000);
    reply.write({ text: "Because it is so." });
    await reply.attach(await picture());
    await reply.finish();
    const shown = general.fromBot();
    expect(shown[0]?.text).toBe("Because it is so.");
    expect(shown.at(-1)?.files).toMatchObject([{ name: "cat.png", altText: "A cat on a roof" }]);
  });

  test("a private reply whose token has expired continues in a direct message, never in the channel", async () => {
    const { simulator } = harness;
    const ada = simulator.person("Ada");
    const general = simulator.channel("general");
    ada.usesCommand("ask", { prompt: "why?", private: true }, { channel: general });
    const { address } = await nextEvent();
    simulator.advance(16 * 60 * 1000);
    const { reply } = open(address);
    await reply.show();
    reply.write({ text: "A secret." });
    await reply.finish();
    expect(general.fromBot().map((message) => message.text)).not.toContain("A secret.");
    expect(simulator.directMessages(ada).fromBot()).toMatchObject([{ text: "A secret." }]);
  });

  test("a partial private reply is shown whole in a direct message when its token has expired", async () => {
    const { simulator } = harness;
    const ada = simulator.person("Ada");
    const general = simulator.channel("general");
    ada.usesCommand("ask", { prompt: "why?", private: true }, { channel: general });
    const { reply } = open((await nextEvent()).address);
    await reply.show();
    reply.write({ text: "Half a" });
    await until(() => general.fromBot()[0]?.text.startsWith("Half a"));
    simulator.advance(16 * 60 * 1000);
    reply.write({ text: "Half a secret and the rest." });
    await reply.finish();
    expect(simulator.directMessages(ada).fromBot()).toMatchObject([{ text: "Half a secret and the rest." }]);
    expect(general.fromBot().filter((message) => !message.isEphemeral)).toEqual([]);
  });

  test("a failure that only the caller can fix is shown to the caller alone", async () => {
    const { simulator } = harness;
    const general = simulator.channel("general");
    simulator.person("Ada").usesCommand("ask", { prompt: "why?" }, { channel: general });
    const { reply } = open((await nextEvent()).address);
    await reply.show();
    await reply.fail({ text: "There is no model x." });
    expect(general.fromBot()).toMatchObject([{ isEphemeral: true, text: "⚠️ There is no model x." }]);
  });

  for (const fault of [
    { method: "POST", route: "/webhooks/{webhook_id}/{webhook_token}" },
    { method: "DELETE", route: "/webhooks/{webhook_id}/{webhook_token}/messages/{message_id}" },
    {
      method: "DELETE",
      route: "/webhooks/{webhook_id}/{webhook_token}/messages/{message_id}",
      afterEffect: true,
    },
  ])
    test(`it is shown where one ${fault.method} is answered by 502${fault.afterEffect === true ? " after its effect" : ""}`, async () => {
      const { simulator } = harness;
      const general = simulator.channel("general");
      simulator.person("Ada").usesCommand("ask", { prompt: "why?" }, { channel: general });
      const { reply } = open((await nextEvent()).address);
      await reply.show();
      simulator.fail({ ...fault, status: 502, times: 1 });
      await reply.fail({ text: "There is no model x." });
      expect(general.fromBot()).toMatchObject([{ isEphemeral: true, text: "⚠️ There is no model x." }]);
    });

  test("a failure with a Retry button stays public", async () => {
    const { simulator } = harness;
    const general = simulator.channel("general");
    simulator.person("Ada").usesCommand("ask", { prompt: "why?" }, { channel: general });
    const { key, address } = await nextEvent();
    const { reply } = open(address);
    await reply.show();
    await reply.fail({ text: "The gateway is down.", retryKey: key });
    expect(general.fromBot()).toMatchObject([{ isEphemeral: false, isThinking: false }]);
  });

  describe("notices that have no room in one message", () => {
    const notices = Array.from({ length: 20 }, (_, n) => `${n} ${"n".repeat(137)}`);
    const lines = notices.map((notice) => `-# ${notice}`);
    const ask = async () => {
      const ada = harness.simulator.person("Ada");
      const direct = harness.simulator.directMessages(ada);
      ada.sends({ channel: direct, text: "hello" });
      const { reply, saved } = open((await nextEvent()).address);
      await reply.show();
      return { direct, reply, saved };
    };

    test("are all shown with a failure", async () => {
      const { direct, reply } = await ask();
      await reply.fail({ text: "No.", notices });
      const shown = direct.fromBot().map(({ text }) => text);
      expect(shown.join("\n").split("\n").toSorted()).toEqual([...lines, "⚠️ No."].toSorted());
      expect(shown.at(-1)).toMatch(/^⚠️ No\.\n/);
    });

    test("are all shown below an answer, which is shown once", async () => {
      const { direct, reply } = await ask();
      reply.write({ text: "Yes." });
      await reply.finish({ notices, actions: [{ kind: "regenerate", key: "r" }] });
      const shown = direct.fromBot();
      expect(shown.flatMap(({ text }) => text.split("\n"))).toEqual(["Yes.", ...lines]);
      expect(shown.map(({ buttons }) => buttons.length)).toEqual([0, 1]);
    });

    test("are removed with the answer that they stood below", async () => {
      const { direct, reply, saved } = await ask();
      reply.write({ text: "x".repeat(1650) });
      await reply.finish({ notices: ["n".repeat(900)] });
      expect(direct.fromBot()).toHaveLength(2);
      const again = open(saved.at(-1)!).reply;
      await again.show();
      again.write({ text: "Short." });
      await again.finish();
      expect(direct.fromBot().map(({ text }) => text)).toEqual(["Short."]);
    });

    test("are cut where one of them is longer than a message", async () => {
      const { direct, reply } = await ask();
      await reply.finish({ notices: ["n".repeat(5000)] });
      expect(direct.fromBot()).toHaveLength(1);
      expect(direct.fromBot()[0]?.text).toMatch(/^-# n{1500,}…$/);
    });
  });

  test("a crash between posting and saving does not post twice", async () => {
    const { simulator } = harness;
    const ada = simulator.person("Ada");
    const direct = simulator.directMessages(ada);
    ada.sends({ channel: direct, text: "hello" });
    const { address } = await nextEvent();
    await open(address).reply.show();
    const again = open(address);
    await again.reply.show();
    again.reply.write({ text: "Once." });
    await again.reply.finish();
    expect(direct.fromBot()).toMatchObject([{ text: "Once." }]);
  });

  test("a failure says why, and its Retry button retries", async () => {
    const { simulator, receiver } = harness;
    const ada = simulator.person("Ada");
    const general = simulator.channel("general");
    ada.usesCommand("ask", { prompt: "why?", private: true }, { channel: general });
    const { key, address } = await nextEvent();
    const { reply, saved } = open(address);
    await reply.show();
    await reply.fail({ text: "The model gateway cannot be reached.", retryKey: key });
    const [failed] = general.fromBot();
    expect(failed?.text).toContain("The model gateway cannot be reached.");
    expect(failed?.buttons.map((button) => button.label)).toEqual(["Retry"]);
    // The token has expired, with which alone a private message can be edited.
    simulator.advance(16 * 60 * 1000);
    const use = ada.clicks("Retry", failed!, { channel: general });
    await until(() => receiver.retried.length > 0);
    expect(use.state()).toBe("answered");
    expect(receiver.retried).toEqual([key]);
    const again = open(saved.at(-1) ?? address);
    await again.reply.show();
    again.reply.write({ text: "Now it works." });
    await again.reply.finish();
    expect(general.fromBot()).toMatchObject([{ text: failed?.text, isEphemeral: true }]);
    expect(simulator.directMessages(ada).fromBot()).toMatchObject([{ text: "Now it works." }]);
  });

  test("a deleted message is not posted again", async () => {
    const { simulator } = harness;
    const ada = simulator.person("Ada");
    const direct = simulator.directMessages(ada);
    ada.sends({ channel: direct, text: "hello" });
    const { reply } = open((await nextEvent()).address);
    await reply.show();
    reply.write({ text: "Too" });
    await until(() => direct.fromBot().length === 1);
    simulator.world.channels.get(direct.id)!.messages.at(-1)!.isDeleted = true;
    reply.write({ text: "Too late." });
    await reply.finish();
    expect(direct.fromBot()).toEqual([]);
  });

  test("a rate limited edit is made later, with the latest text", async () => {
    const { simulator } = harness;
    const ada = simulator.person("Ada");
    const direct = simulator.directMessages(ada);
    ada.sends({ channel: direct, text: "hello" });
    const { reply } = open((await nextEvent()).address);
    await reply.show();
    simulator.fail({ method: "PATCH", route: "messages", status: 429, retryAfterMs: 300, times: 2 });
    reply.write({ text: "one" });
    reply.write({ text: "one two" });
    await reply.finish();
    expect(direct.fromBot()).toMatchObject([{ text: "one two" }]);
  });

  test("a lost response does not post a message twice", async () => {
    const { simulator } = harness;
    const ada = simulator.person("Ada");
    const direct = simulator.directMessages(ada);
    ada.sends({ channel: direct, text: "hello" });
    simulator.fail({
      method: "POST",
      route: "/channels/{channel_id}/messages",
      status: 502,
      afterEffect: true,
      times: 1,
    });
    const { reply } = open((await nextEvent()).address);
    await reply.show();
    reply.write({ text: "Once." });
    await reply.finish();
    expect(direct.fromBot()).toMatchObject([{ text: "Once." }]);
  });
});

describe("/chat", () => {
  test("opens one thread from the command's message, however often it is called", async () => {
    const harness = await startHarness();
    try {
      const { simulator, platform, receiver } = harness;
      const ada = simulator.person("Ada");
      const general = simulator.channel("general");
      ada.usesCommand("chat", { message: "Plan a trip" }, { channel: general });
      const event = await until(() => receiver.events[0]);
      const opened = await platform.openThread(event.address, { title: "Plan a trip" });
      const [thread] = general.threads();
      expect(opened.conversationId).toBe(`discord:${thread?.id}`);
      expect(thread?.name).toBe("Plan a trip");
      expect(await platform.openThread(event.address, { title: "Plan a trip" })).toEqual(opened);
      const inThread = ada.usesCommand("chat", {}, { channel: thread! });
      const second = await until(() =>
        receiver.events.find((one) => one.key === `discord:command/${inThread.id}`),
      );
      expect(await platform.openThread(second.address, { title: "x" })).toMatchObject({
        conversationId: opened.conversationId,
      });
    } finally {
      await harness.close();
    }
  });

  test("names the missing permission", async () => {
    const harness = await startHarness();
    try {
      const { simulator, platform, receiver } = harness;
      const general = simulator.channel("general");
      general.deny("CREATE_PUBLIC_THREADS");
      simulator.person("Ada").usesCommand("chat", {}, { channel: general });
      const event = await until(() => receiver.events[0]);
      await expect(platform.openThread(event.address, { title: "x" })).rejects.toMatchObject({
        code: "platform-forbidden",
        detail: { permission: "Create Public Threads" },
      });
    } finally {
      await harness.close();
    }
  });
});
