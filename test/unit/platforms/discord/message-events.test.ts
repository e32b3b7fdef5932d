import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { ParleyError } from "../../../../src/core/errors.ts";
import type { Person } from "../../../simulators/discord/people.ts";
import { type Harness, startHarness, until, letIdentify } from "./harness.ts";
import { loopTime } from "../../../support/loop-time.ts";

describe("message events", () => {
  describe("without the Message Content Intent", () => {
    test("the bot still connects, reports it, and receives mentions and direct messages", async () => {
      const harness = await startHarness({ messageContentAllowed: false });
      try {
        const { simulator, receiver, platform } = harness;
        expect(platform.health()).toEqual({
          state: "ready",
          detail: "without message contents: the Message Content Intent is off",
        });
        expect(harness.lines.some((line) => line.message.includes("Message Content Intent"))).toBe(true);
        const ada = simulator.person("Ada");
        const general = simulator.channel("general");
        ada.sends({ channel: general, text: "do you hear me?", mentionBot: true });
        ada.sends({ channel: simulator.directMessages(ada), text: "and here?" });
        await until(() => receiver.events.length === 2);
        expect(new Set(receiver.events.map((event) => event.kind === "message" && event.text))).toEqual(
          new Set(["do you hear me?", "and here?"]),
        );
      } finally {
        await harness.close();
      }
    });

    test("in its own thread a message without a mention is not answered; what is missing is said once", async () => {
      const harness = await startHarness({ messageContentAllowed: false });
      try {
        const { simulator, receiver } = harness;
        const ada = simulator.person("Ada");
        const general = simulator.channel("general");
        const root = ada.sends({ channel: general, text: "begin", mentionBot: true });
        await until(() => receiver.events.length === 1);
        await harness.platform.openThread(receiver.events[0]!.address, { title: "begin" });
        const [thread] = general.threads();
        for (const text of ["one", "two"]) ada.sends({ channel: thread!, text });
        ada.sends({ channel: thread!, extras: { poll: { question: "Tea?", answers: ["Yes", "No"] } } });
        const [told] = await until(() => thread!.fromBot().length > 0 && thread!.fromBot());
        expect(told?.text).toMatch(/Message Content Intent.*[Mm]ention me/);
        ada.sends({ channel: thread!, text: "three", mentionBot: true });
        await until(() => receiver.events.length === 2);
        // A later process reads in the thread that it was said.
        await harness.restart();
        harness.receiver.known.add(`discord:${root.id}`);
        ada.sends({ channel: thread!, text: "four" });
        ada.sends({ channel: thread!, text: "five", mentionBot: true });
        await until(() => harness.receiver.events.length === 1);
        expect(receiver.events.map((event) => event.kind === "message" && event.text)).toEqual([
          "begin",
          "three",
        ]);
        expect(harness.receiver.events).toMatchObject([{ text: "five" }]);
        expect(thread!.fromBot()).toHaveLength(1);
      } finally {
        await harness.close();
      }
    });

    test("a mention of the bot's role arrives without its text, and is not answered as if it had none", async () => {
      const harness = await startHarness({ messageContentAllowed: false });
      try {
        const { simulator, receiver } = harness;
        const roleId = simulator.botRole();
        const ada = simulator.person("Ada");
        const general = simulator.channel("general");
        ada.sends({ channel: general, text: `<@&${roleId}> what is this?` });
        await until(() => general.fromBot().length === 1, { explain: () => receiver.events });
        ada.sends({ channel: general, text: "", mentionBot: true });
        await until(() => receiver.events.length === 1);
        expect(receiver.events[0]).toMatchObject({ text: "@parley" });
      } finally {
        await harness.close();
      }
    });
  });

  test("a mention of the bot's role while it was offline is seen, although such messages do not name their server", async () => {
    const harness = await startHarness();
    try {
      const { simulator, receiver } = harness;
      const ada = simulator.person("Ada");
      const roleId = simulator.botRole();
      const general = simulator.channel("general");
      const thread = simulator.thread(general, ada);
      // An earlier version stored it without its places.
      receiver.known.add(`discord:${thread.id}`);
      letIdentify();
      simulator.gateway.invalidateSession(false);
      await until(() => !simulator.gateway.isConnected());
      const sent = [thread, general].map((channel) =>
        ada.sends({ channel, text: `<@&${roleId}> what is ${channel.name}?` }),
      );
      await until(() => receiver.events.length === 2);
      const byKey = new Map(receiver.events.map((event) => [event.key, event]));
      expect(sent.map(({ id }) => byKey.get(`discord:${id}`))).toMatchObject([
        { text: "what is thread?", within: expect.arrayContaining([`discord:channel:${general.id}`]) },
        { text: "what is general?" },
      ]);
    } finally {
      await harness.close();
    }
  });
});

describe("channels whose managers changed when and where they are answered", () => {
  let harness: Harness;
  afterEach(() => harness.close());

  const received = (count: number) =>
    until(() => harness.receiver.events.length >= count && harness.receiver.events, {
      explain: () => ({ events: harness.receiver.events, log: harness.lines }),
    });
  const textsOf = () => harness.receiver.events.map((event) => event.kind === "message" && event.text);

  describe("with the Message Content Intent", () => {
    beforeEach(async () => {
      harness = await startHarness();
    });

    test("every message is an event, in a thread of its own", async () => {
      const { simulator, receiver } = harness;
      receiver.place = { answerTo: "all", answerIn: "thread" };
      const ada = simulator.person("Ada");
      const general = simulator.channel("general");
      const message = ada.sends({ channel: general, text: "nobody in particular" });
      simulator.otherBotSends({ channel: general, text: "a bot speaks" });
      ada.sends({ channel: general, text: "and this", mentionBot: true });
      await received(2);
      expect(textsOf()).toEqual(["nobody in particular", "and this"]);
      expect(receiver.events[0]).toMatchObject({
        conversationId: `discord:${message.id}`,
        address: { channelId: general.id, replyTo: message.id, thread: { title: "nobody in particular" } },
        origin: { channel: `discord:channel:${general.id}` },
      });
    });

    test("an answer in the channel belongs to one conversation of the whole channel", async () => {
      const { simulator, receiver } = harness;
      receiver.place = { answerTo: "addressed", answerIn: "channel" };
      const ada = simulator.person("Ada");
      const general = simulator.channel("general");
      ada.sends({ channel: general, text: "not this" });
      const one = ada.sends({ channel: general, text: "one", mentionBot: true });
      ada.sends({ channel: general, text: "two", mentionBot: true });
      await received(2);
      expect(textsOf()).toEqual(["one", "two"]);
      for (const event of receiver.events) expect(event.conversationId).toBe(`discord:${general.id}`);
      expect(receiver.events[0]?.address).toMatchObject({ channelId: general.id, replyTo: one.id });
      expect(receiver.events[0]?.address).not.toHaveProperty("thread");
    });

    test("somebody who may not use it and did not speak to it is told nothing", async () => {
      const { simulator, receiver } = harness;
      receiver.place = { answerTo: "all", answerIn: "thread" };
      receiver.refusal = new ParleyError("access-denied", "refused", { detail: { because: "place" } });
      const ada = simulator.person("Ada");
      const general = simulator.channel("general");
      ada.sends({ channel: general, text: "just talking" });
      await until(() => receiver.offeredKeys.length === 1);
      receiver.refusal = undefined;
      ada.sends({ channel: general, text: "allowed now" });
      await received(1);
      expect(textsOf()).toEqual(["allowed now"]);
      expect(general.fromBot()).toEqual([]);
    });
  });

  test("without the intent, messages that arrive empty are not answered", async () => {
    harness = await startHarness({ messageContentAllowed: false });
    const { simulator, receiver } = harness;
    receiver.place = { answerTo: "all", answerIn: "thread" };
    const ada = simulator.person("Ada");
    const general = simulator.channel("general");
    ada.sends({ channel: general, text: "unreadable" });
    ada.sends({ channel: general, text: "readable", mentionBot: true });
    await received(1);
    expect(textsOf()).toEqual(["readable"]);
  });
});

describe("refusal notices", () => {
  const denied = new ParleyError("access-denied", "refused", { detail: { because: "denied" } });
  const overRate = new ParleyError("rate-limited", "refused", { detail: { max: 20 }, retryAfterMs: 40_000 });

  describe("a refused person", () => {
    let harness: Harness;
    beforeEach(async () => {
      harness = await startHarness();
      harness.receiver.refusal = denied;
    });
    afterEach(() => harness.close());

    const refusals = (count: number) =>
      until(() => harness.lines.filter(({ message }) => message === "message refused").length >= count, {
        explain: () => harness.lines,
      });

    /** Resolves when all earlier messages of a channel are handled, because its next one is accepted. */
    async function settled(
      channel: { readonly id: string },
      person: Person = harness.simulator.person("Zoe"),
    ) {
      harness.receiver.refusal = undefined;
      person.sends({ channel, text: "the last", mentionBot: true });
      await until(() => harness.receiver.events.length > 0, { explain: () => harness.lines });
    }

    test("who mentions the bot in a channel is told in one direct message, and the channel shows nothing", async () => {
      const { simulator } = harness;
      const ada = simulator.person("Ada");
      const general = simulator.channel("general");
      const first = ada.sends({ channel: general, text: "one", mentionBot: true });
      ada.sends({ channel: general, text: "two", mentionBot: true });
      ada.sends({ channel: general, text: "three", mentionBot: true });
      await refusals(3);
      await settled(general);
      const direct = simulator.directMessages(ada);
      expect(direct.fromBot()).toHaveLength(1);
      expect(direct.fromBot()[0]?.text).toContain("access rules exclude you");
      expect(direct.fromBot()[0]?.text).toContain(`${general.id}/${first.id}`);
      expect(general.fromBot()).toEqual([]);
      expect(general.typingCount()).toBe(0);
      expect(harness.lines.filter(({ level }) => level === "error" || level === "warn")).toEqual([]);
    });

    test("who takes no direct messages sees nothing, and nothing goes wrong", async () => {
      const { simulator } = harness;
      const ada = simulator.person("Ada");
      const general = simulator.channel("general");
      simulator.closeDirectMessages(ada);
      ada.sends({ channel: general, text: "one", mentionBot: true });
      await refusals(1);
      await settled(general);
      expect(general.fromBot()).toEqual([]);
      expect(harness.lines.filter(({ level }) => level === "error")).toEqual([]);
    });

    test("who writes directly is answered there, once for several messages", async () => {
      const { simulator } = harness;
      const eve = simulator.person("Eve", { isMember: false });
      const direct = simulator.directMessages(eve);
      eve.sends({ channel: direct, text: "one" });
      eve.sends({ channel: direct, text: "two" });
      await refusals(2);
      await settled(direct, eve);
      expect(direct.fromBot().map(({ text }) => text)).toEqual([
        expect.stringContaining("access rules exclude"),
      ]);
    });

    test("by a limit is told of it also where the message was missed, and not of the rules", async () => {
      const { simulator, receiver } = harness;
      const ada = simulator.person("Ada");
      const direct = simulator.directMessages(ada);
      receiver.known.add(`discord:${direct.id}`);
      const miss = async (text: string): Promise<void> => {
        letIdentify();
        simulator.gateway.invalidateSession(false);
        await until(() => !simulator.gateway.isConnected());
        ada.sends({ channel: direct, text });
      };
      await miss("one");
      await refusals(1);
      receiver.refusal = overRate;
      await miss("two");
      const [told] = await until(() => direct.fromBot().length > 0 && direct.fromBot());
      expect(told?.text).not.toContain("access rules");
    });

    test("by a limit is told of it although told of the rules before", async () => {
      const { simulator, receiver } = harness;
      const ada = simulator.person("Ada");
      const general = simulator.channel("general");
      ada.sends({ channel: general, text: "one", mentionBot: true });
      await refusals(1);
      receiver.refusal = overRate;
      ada.sends({ channel: general, text: "two", mentionBot: true });
      await refusals(2);
      await settled(general);
      expect(simulator.directMessages(ada).fromBot()[1]?.text).toContain("Try again in 40 seconds");
      expect(general.fromBot()).toEqual([]);
    });

    test("sees the answer to a command alone, at once", async () => {
      const { simulator, receiver } = harness;
      const ada = simulator.person("Ada");
      const general = simulator.channel("general");
      const startedAt = loopTime();
      ada.usesCommand("ask", { prompt: "why?" }, { channel: general });
      const told = await until(() => general.fromBot()[0]);
      expect(told).toMatchObject({
        isEphemeral: true,
        text: expect.stringContaining("access rules exclude"),
      });
      expect(loopTime() - startedAt).toBeLessThan(2000);
      expect(receiver.events).toEqual([]);
      expect(harness.lines.filter(({ level }) => level === "error")).toEqual([]);
    });

    test("who clicks sees it alone", async () => {
      const { simulator, platform, receiver } = harness;
      receiver.refusal = undefined;
      const ada = simulator.person("Ada");
      const general = simulator.channel("general");
      ada.usesCommand("ask", { prompt: "why?" }, { channel: general });
      const { address } = await until(() => receiver.events[0]);
      const reply = platform.openReply(address, { saveAddress: () => Promise.resolve() });
      await reply.show();
      await reply.fail({ text: "No.", retryKey: "key-1" });
      receiver.rerunResult = denied;
      simulator.person("Bo").clicks("Retry", general.fromBot()[0]!, { channel: general });
      const told = await until(() => general.fromBot()[1]);
      expect(told).toMatchObject({
        isEphemeral: true,
        text: expect.stringContaining("access rules exclude"),
      });
      expect(harness.lines.filter(({ level }) => level === "error")).toEqual([]);
    });
  });

  test("the bot opens few direct messages in a short time, however many people are refused", async () => {
    const generous = { limit: 1000, windowMs: 1000 };
    const harness = await startHarness({
      rateLimits: { messages: generous, others: generous, globalPerSecond: 1000 },
    });
    try {
      const { simulator, receiver } = harness;
      receiver.refusal = denied;
      const general = simulator.channel("general");
      const people = Array.from({ length: 30 }, (_, index) => simulator.person(`Person${index}`));
      for (const person of people) person.sends({ channel: general, text: "hi", mentionBot: true });
      await until(
        () => harness.lines.filter(({ message }) => message.startsWith("refused without")).length === 10,
        { explain: () => harness.lines },
      );
      const opened = simulator.requests.filter(({ template }) => template === "/users/@me/channels");
      expect(opened).toHaveLength(20);
    } finally {
      await harness.close();
    }
  });
});
