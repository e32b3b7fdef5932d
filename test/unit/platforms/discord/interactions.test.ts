import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { ParleyError } from "../../../../src/core/errors.ts";
import { fixture } from "../../../fixtures/fixtures.ts";
import { until } from "../../../simulators/discord/until.ts";
import { startHarness, type Harness } from "./harness.ts";

describe("interactions", () => {
  let harness: Harness;
  beforeEach(async () => {
    harness = await startHarness();
  });
  afterEach(() => harness.close());

  const received = (count: number) =>
    until(() => harness.receiver.events.length >= count && harness.receiver.events, {
      explain: () => ({ log: harness.lines, requests: harness.simulator.requests }),
    });

  test("a slash command is deferred, then received as a call", async () => {
    const { simulator } = harness;
    const ada = simulator.person("Ada");
    const general = simulator.channel("general");
    const use = ada.usesCommand("ask", { prompt: "why?" }, { channel: general });
    const [event] = await received(1);
    expect(use.state()).toBe("thinking");
    expect(general.fromBot()).toMatchObject([{ isThinking: true, isEphemeral: false }]);
    expect(event).toMatchObject({
      kind: "call",
      key: `discord:${use.id}`,
      conversationId: `discord:${use.id}`,
      name: "ask",
      options: { prompt: "why?" },
      inConversation: false,
      isPrivate: false,
      author: { id: `discord:${ada.id}`, name: "Ada" },
    });
  });

  test("a private one is deferred for its caller alone", async () => {
    const { simulator } = harness;
    const ada = simulator.person("Ada");
    const general = simulator.channel("general");
    ada.usesCommand("ask", { prompt: "why?", private: true }, { channel: general });
    const [event] = await received(1);
    expect(event).toMatchObject({ isPrivate: true });
    expect(general.fromBot()).toMatchObject([{ isEphemeral: true }]);
  });

  test("in a thread or direct message it belongs to the conversation", async () => {
    const { simulator } = harness;
    const ada = simulator.person("Ada");
    const direct = simulator.directMessages(ada);
    ada.usesCommand("ask", { prompt: "why?" }, { channel: direct });
    const [event] = await received(1);
    expect(event).toMatchObject({ inConversation: true, conversationId: `discord:${direct.id}` });
  });

  test("attachments are received with their option and can be downloaded", async () => {
    const { simulator, platform } = harness;
    const ada = simulator.person("Ada");
    const bytes = await fixture("picture.png");
    ada.usesCommand(
      "ask",
      { prompt: "what is this?" },
      { channel: simulator.channel("general"), attachments: { image: { name: "picture.png", bytes } } },
    );
    const [event] = await received(1);
    if (event?.kind !== "call") throw new Error("no call");
    const image = event.options["image"];
    if (typeof image !== "object") throw new Error("no attachment");
    expect(image).toMatchObject({ name: "picture.png", mediaType: "image/png" });
    const read = await platform.download(image, { maxBytes: 1e6, signal: AbortSignal.timeout(5000) });
    expect(read).toHaveLength(bytes.length);
  });

  test("invalid options are answered for the caller alone, and nothing is accepted", async () => {
    const { simulator, receiver } = harness;
    const ada = simulator.person("Ada");
    const general = simulator.channel("general");
    // A client with an outdated registration can send options that do not exist any more.
    const commands = simulator.world.commands;
    simulator.world.commands = commands.map((command) =>
      command.name === "imagine"
        ? { ...command, options: [{ type: 4, name: "count", description: "x" }] }
        : command,
    );
    const use = ada.usesCommand("imagine", { count: 99 }, { channel: general });
    await until(() => use.state() === "answered");
    expect(general.fromBot()).toMatchObject([{ isEphemeral: true }]);
    expect(general.fromBot()[0]?.text).toMatch(/prompt|count/);
    expect(receiver.events).toEqual([]);
  });

  test("when a call is not accepted, its caller is told privately and the placeholder is deleted", async () => {
    const { simulator, receiver } = harness;
    const ada = simulator.person("Ada");
    const general = simulator.channel("general");
    receiver.refusal = new ParleyError("store-unavailable", "down");
    ada.usesCommand("ask", { prompt: "why?" }, { channel: general });
    const [told, ...rest] = await until(() => {
      const shown = general.fromBot();
      return shown.length === 1 && !shown[0]?.isThinking && shown;
    });
    expect(rest).toEqual([]);
    expect(told).toMatchObject({ isEphemeral: true });
    expect(told?.text).toContain("store");
  });

  test("an acknowledgement whose response is lost is not mistaken for another instance's", async () => {
    const { simulator } = harness;
    simulator.fail({ method: "POST", route: "/callback", status: 502, afterEffect: true, times: 1 });
    simulator.person("Ada").usesCommand("ask", { prompt: "why?" }, { channel: simulator.channel("general") });
    expect(await received(1)).toHaveLength(1);
  });

  test("a command that another instance has deferred is still passed to the receiver, which knows duplicates", async () => {
    const { simulator } = harness;
    simulator.fail({ method: "POST", route: "/callback", status: 400, code: 40060, times: 1 });
    simulator.person("Ada").usesCommand("ask", { prompt: "why?" }, { channel: simulator.channel("general") });
    expect(await received(1)).toMatchObject([{ kind: "call", name: "ask" }]);
  });

  test("model options are completed with at most 25 suggestions", async () => {
    const { simulator, receiver } = harness;
    const ada = simulator.person("Ada");
    receiver.suggestions = [
      ...Array.from({ length: 40 }, (_, index) => `maker/model-${index}`),
      `maker/${"x".repeat(120)}`,
    ];
    const use = ada.types("ask", "model", "model-1", { channel: simulator.channel("general") });
    const choices = await until(() => use.interaction.choices);
    expect(choices.length).toBe(11);
    expect(choices[0]).toEqual({ name: "maker/model-1", value: "maker/model-1" });
    const all = ada.types("ask", "model", "", { channel: simulator.channel("other") });
    expect(await until(() => all.interaction.choices)).toHaveLength(25);
  });

  test("Transcribe on a message runs at once with the message's file", async () => {
    const { simulator } = harness;
    const ada = simulator.person("Ada");
    const bob = simulator.person("Bob");
    const general = simulator.channel("general");
    const note = bob.sends({
      channel: general,
      files: [{ name: "voice-message.ogg", bytes: await fixture("voice.ogg"), voiceSecs: 2 }],
    });
    ada.usesMessageCommand("Transcribe", note, { channel: general });
    const [event] = await received(1);
    expect(event).toMatchObject({
      kind: "call",
      name: "transcribe",
      subject: { author: { name: "Bob" }, attachments: [{ name: "voice-message.ogg", durationMs: 2000 }] },
    });
  });

  test("Ask about this opens a modal, and its text is received with the message", async () => {
    const { simulator } = harness;
    const ada = simulator.person("Ada");
    const bob = simulator.person("Bob");
    const general = simulator.channel("general");
    const note = bob.sends({ channel: general, text: "E = mc²" });
    const use = ada.usesMessageCommand("Ask about this", note, { channel: general });
    const modal = await until(() => use.interaction.modal);
    expect(modal.title).toBe("Ask about this");
    ada.submitsModal(use, { [modal.inputs[0]!.label]: "Explain" });
    const [event] = await received(1);
    expect(event).toMatchObject({
      name: "ask",
      options: { prompt: "Explain" },
      subject: { author: { name: "Bob" }, text: "E = mc²" },
    });
  });

  test("a command used where the bot is not a member is a guest's: its reply stays in the interaction", async () => {
    const { simulator } = harness;
    const ada = simulator.person("Ada");
    const general = simulator.channel("general");
    ada.usesCommand("ask", { prompt: "why?" }, { channel: general, isUserInstallOnly: true });
    const [event] = await received(1);
    expect(event).toMatchObject({ inConversation: false, address: { interaction: { isGuest: true } } });
    await expect(harness.platform.openThread(event!.address, { title: "x" })).rejects.toMatchObject({
      code: "platform-forbidden",
    });
  });
});
