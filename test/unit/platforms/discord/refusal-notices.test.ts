import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { ParleyError } from "../../../../src/core/errors.ts";
import type { Person } from "../../../simulators/discord/people.ts";
import { startHarness, type Harness, until } from "./harness.ts";

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

  /** Resolves when all earlier messages of a channel are handled: its next one is accepted. */
  async function settled(channel: { readonly id: string }, person: Person = harness.simulator.person("Zoe")) {
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

  test("stays refused for the message that was told of, however often it is delivered", async () => {
    const { simulator, receiver } = harness;
    const ada = simulator.person("Ada");
    const general = simulator.channel("general");
    const message = ada.sends({ channel: general, text: "one", mentionBot: true });
    await refusals(1);
    receiver.refusal = undefined;
    simulator.redeliver(message);
    const next = ada.sends({ channel: general, text: "two", mentionBot: true });
    await until(() => receiver.events.length > 0);
    expect(receiver.events.map(({ key }) => key)).toEqual([`discord:${next.id}`]);
  });

  test("sees the answer to a command alone, at once", async () => {
    const { simulator, receiver } = harness;
    const ada = simulator.person("Ada");
    const general = simulator.channel("general");
    const startedAt = performance.now();
    ada.usesCommand("ask", { prompt: "why?" }, { channel: general });
    const told = await until(() => general.fromBot()[0]);
    expect(told).toMatchObject({ isEphemeral: true, text: expect.stringContaining("access rules exclude") });
    expect(performance.now() - startedAt).toBeLessThan(2000);
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
    receiver.retry = () => Promise.reject(denied);
    simulator.person("Bo").clicks("Retry", general.fromBot()[0]!, { channel: general });
    const told = await until(() => general.fromBot()[1]);
    expect(told).toMatchObject({ isEphemeral: true, text: expect.stringContaining("access rules exclude") });
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
