import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { ParleyError } from "../../../../src/core/errors.ts";
import { startHarness, type Harness, until } from "./harness.ts";

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
      receiver.place = { answerTo: "every-message", answerIn: "thread" };
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
      receiver.place = { answerTo: "mentions", answerIn: "channel" };
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
      receiver.place = { answerTo: "every-message", answerIn: "thread" };
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
    receiver.place = { answerTo: "every-message", answerIn: "thread" };
    const ada = simulator.person("Ada");
    const general = simulator.channel("general");
    ada.sends({ channel: general, text: "unreadable" });
    ada.sends({ channel: general, text: "readable", mentionBot: true });
    await received(1);
    expect(textsOf()).toEqual(["readable"]);
  });
});
