import { afterEach, beforeEach, describe, expect, test } from "vitest";
import type { ReplyAddress } from "../../../../src/core/events.ts";
import type { Person } from "../../../simulators/discord/people.ts";
import type { ChannelHandle } from "../../../simulators/discord/simulator.ts";
import { startHarness, type Harness, until } from "./harness.ts";

describe("typing", () => {
  let harness: Harness;
  let ada: Person;
  let direct: ChannelHandle;
  let general: ChannelHandle;
  beforeEach(async () => {
    harness = await startHarness();
    ada = harness.simulator.person("Ada");
    direct = harness.simulator.directMessages(ada);
    general = harness.simulator.channel("general");
  });
  afterEach(() => harness.close());

  const address = async (): Promise<ReplyAddress> => (await until(() => harness.receiver.events[0])).address;
  const open = async () =>
    harness.platform.openReply(await address(), { saveAddress: () => Promise.resolve() });

  test("is shown until the first words, which are the first post and its notification", async () => {
    ada.sends({ channel: direct, text: "hello" });
    const reply = await open();
    await reply.show();
    await until(() => direct.isTyping());
    expect(direct.fromBot()).toEqual([]);
    reply.write({ text: "Good" });
    await until(() => direct.fromBot().length === 1);
    expect(direct.isTyping()).toBe(false);
    reply.write({ text: "Good morning." });
    await reply.finish();
    expect(direct.fromBot()).toMatchObject([{ text: "Good morning.", notification: "Good" }]);
    expect(direct.typingCount()).toBe(1);
  });

  test("is repeated before it ends while there is no text", async () => {
    ada.sends({ channel: direct, text: "hello" });
    const reply = await open();
    await reply.show();
    await until(() => direct.typingCount() === 2, { timeoutMs: 12_000 });
    await reply.fail({ text: "No answer." });
    expect(direct.isTyping()).toBe(false);
    const count = direct.typingCount();
    expect(count).toBe(2);
  });

  test("is not shown where the text comes at once", async () => {
    ada.sends({ channel: direct, text: "hello" });
    const reply = await open();
    await reply.show();
    reply.write({ text: "Here." });
    await reply.finish();
    expect(direct.fromBot()).toMatchObject([{ text: "Here." }]);
    // The time after which it would have been shown is over when another reply types.
    const other = harness.simulator.person("Ben");
    const elsewhere = harness.simulator.directMessages(other);
    other.sends({ channel: elsewhere, text: "hello" });
    const second = harness.platform.openReply((await until(() => harness.receiver.events[1])).address, {
      saveAddress: () => Promise.resolve(),
    });
    await second.show();
    await until(() => elsewhere.isTyping());
    second.abandon();
    expect(direct.typingCount()).toBe(0);
  });

  test("a mention's is in the thread that is opened meanwhile, not in the channel", async () => {
    ada.sends({ channel: general, text: "what?", mentionBot: true });
    const reply = await open();
    await reply.show();
    const thread = await until(() => general.threads()[0]);
    await until(() => thread.isTyping());
    expect(thread.fromBot()).toEqual([]);
    expect(general.typingCount()).toBe(0);
    reply.write({ text: "That." });
    await reply.finish();
    expect(thread.isTyping()).toBe(false);
    expect(thread.fromBot()).toMatchObject([{ text: "That." }]);
  });

  test("a command has none: it shows its own", async () => {
    const use = ada.usesCommand("ask", { prompt: "why?" }, { channel: general });
    const reply = await open();
    await reply.show();
    await until(() => use.state() === "thinking");
    reply.write({ text: "Because." });
    await reply.finish();
    expect(general.fromBot()).toMatchObject([{ text: "Because." }]);
    expect(general.typingCount()).toBe(0);
  });

  test("that fails is only logged", async () => {
    harness.simulator.fail({ route: "typing", status: 403, code: 50013, times: 1 });
    ada.sends({ channel: direct, text: "hello" });
    const reply = await open();
    await reply.show();
    const line = await until(() => harness.lines.find(({ message }) => message === "typing not shown"));
    expect(line.level).toBe("debug");
    reply.write({ text: "Here." });
    await reply.finish();
    expect(direct.fromBot()).toMatchObject([{ text: "Here." }]);
  });

  test("that is in flight when the first words come does not last beyond them", async () => {
    const arrived = Promise.withResolvers<void>();
    const held = Promise.withResolvers<void>();
    harness.simulator.fail({
      route: "typing",
      status: 500,
      afterEffect: true,
      until() {
        arrived.resolve();
        return held.promise;
      },
      times: 1,
    });
    ada.sends({ channel: direct, text: "hello" });
    const reply = await open();
    await reply.show();
    await arrived.promise;
    reply.write({ text: "Here." });
    held.resolve();
    await reply.finish();
    expect(direct.fromBot()).toMatchObject([{ text: "Here." }]);
    expect(direct.isTyping()).toBe(false);
  });
});
