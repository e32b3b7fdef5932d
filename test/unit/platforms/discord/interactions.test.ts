import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { ParleyError } from "../../../../src/core/errors.ts";
import { createDiscordPlatform } from "../../../../src/platforms/discord/platform.ts";
import { allCommands } from "../../../support/commands.ts";
import { createRecordingReceiver } from "../../../support/recording-receiver.ts";
import { clock, createListLog, startHarness, type Harness, until } from "./harness.ts";

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

  /** Starts a second instance with the same token, as during a rolling update. */
  const startInstance = async () => {
    const { simulator } = harness;
    const { log, lines } = createListLog();
    const options = { token: simulator.token, apiUrl: simulator.apiUrl, now: simulator.world.now, clock };
    const platform = createDiscordPlatform({ ...options, commands: allCommands, log });
    const receiver = createRecordingReceiver();
    await platform.start(receiver, receiver);
    return { platform, receiver, lines };
  };

  test("a slash command is received as a call, and deferred once it is accepted", async () => {
    const { simulator, receiver } = harness;
    const ada = simulator.person("Ada");
    const general = simulator.channel("general");
    let open = (): void => {};
    receiver.gate = new Promise((resolve) => {
      open = resolve;
    });
    const use = ada.usesCommand("ask", { prompt: "why?" }, { channel: general });
    await until(() => receiver.offeredKeys.length === 1);
    expect(use.state()).toBe("waiting");
    expect(general.fromBot()).toEqual([]);
    open();
    const [event] = await received(1);
    await until(() => use.state() === "thinking");
    expect(general.fromBot()).toMatchObject([{ isThinking: true, isEphemeral: false }]);
    expect(event).toMatchObject({
      kind: "call",
      key: `discord:command/${use.id}`,
      conversationId: `discord:command/${use.id}`,
      name: "ask",
      options: { prompt: "why?" },
      inConversation: false,
      isPrivate: false,
      author: { id: `discord:${ada.id}`, name: "Ada" },
    });
  });

  test("in a thread or direct message it belongs to the conversation", async () => {
    const { simulator } = harness;
    const ada = simulator.person("Ada");
    const direct = simulator.directMessages(ada);
    ada.usesCommand("ask", { prompt: "why?" }, { channel: direct });
    const [event] = await received(1);
    expect(event).toMatchObject({ inConversation: true, conversationId: `discord:${direct.id}` });
  });

  test("invalid options are answered for the caller alone, and nothing is accepted", async () => {
    const { simulator, receiver } = harness;
    const ada = simulator.person("Ada");
    const general = simulator.channel("general");
    // A client with an outdated registration can send options that were removed.
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

  for (const [how, outage] of Object.entries({
    "hangs and then accepts": { isHanging: true },
    "fails and then accepts": { isHanging: false },
  })) {
    test(`when the store ${how}, the caller reads true words within the deadline, and then the answer there`, async () => {
      const { simulator, receiver, platform } = harness;
      const general = simulator.channel("general");
      let open = (): void => {};
      if (outage.isHanging)
        receiver.gate = new Promise((resolve) => {
          open = resolve;
        });
      else {
        receiver.refusal = new ParleyError("store-unavailable", "down");
        open = () => {
          receiver.refusal = undefined;
        };
      }
      const use = simulator.person("Ada").usesCommand("ask", { prompt: "why?" }, { channel: general });
      await until(() => use.state() === "answered");
      const [notice] = general.fromBot();
      expect(notice).toMatchObject({ isThinking: false, isEphemeral: false });
      expect(notice?.text).toMatch(/store does not respond.*may still get an answer/);
      open();
      const [event] = await received(1);
      const reply = platform.openReply(event!.address, { saveAddress: () => Promise.resolve() });
      await reply.show();
      reply.write({ text: "Because." });
      await reply.finish();
      expect(general.fromBot()).toMatchObject([{ id: notice?.id, text: "Because." }]);
    });
  }

  test("a store that stays unavailable leaves the words, without a placeholder", async () => {
    const { simulator, receiver } = harness;
    const general = simulator.channel("general");
    receiver.refusal = new ParleyError("store-unavailable", "down");
    simulator.person("Ada").usesCommand("ask", { prompt: "why?" }, { channel: general });
    const [notice] = await until(() => general.fromBot().length > 0 && general.fromBot());
    await until(() => harness.lines.some(({ message }) => message === "command not accepted"), {
      timeoutMs: 60_000,
    });
    expect(receiver.offeredKeys.length).toBeGreaterThan(1);
    expect(general.fromBot()).toEqual([notice]);
    expect(notice).toMatchObject({ isThinking: false, text: expect.stringContaining("send it again") });
  });

  for (const ending of ["fail", "finish"] as const)
    test(`a deferred command that ends in private after a restart leaves no "thinking…": ${ending}`, async () => {
      const { simulator, platform } = harness;
      const general = simulator.channel("general");
      simulator.person("Ada").usesCommand("ask", { prompt: "why?" }, { channel: general });
      const [event] = await received(1);
      await until(() => general.fromBot()[0]?.isThinking);
      // The rules exclude its caller by now, before anything of the answer was shown.
      const reply = platform.openReply(platform.toPrivateAddress(event!.address)!, {
        isResumed: true,
        isEndOnly: true,
        saveAddress: () => Promise.resolve(),
      });
      await reply.show();
      if (ending === "fail") await reply.fail({ text: "You are excluded." });
      else await reply.finish({ notices: ["You are excluded."] });
      expect(general.fromBot()).toMatchObject([
        { isThinking: false, isEphemeral: true, text: expect.stringContaining("You are excluded.") },
      ]);
    });

  test("a refusal that comes after those words takes their place", async () => {
    const { simulator, receiver } = harness;
    const general = simulator.channel("general");
    receiver.refusal = new ParleyError("store-unavailable", "down");
    simulator.person("Ada").usesCommand("ask", { prompt: "why?" }, { channel: general });
    await until(() => general.fromBot().length > 0);
    receiver.refusal = new ParleyError("stopping", "the process is stopping");
    await until(() => /Parley is restarting/.test(general.fromBot()[0]?.text ?? ""));
    expect(general.fromBot()).toMatchObject([{ isThinking: false }]);
  });

  test("a command that is known, such as from an attempt whose outcome was lost, is acknowledged", async () => {
    const { simulator, receiver } = harness;
    const general = simulator.channel("general");
    receiver.receive = () => Promise.resolve("duplicate");
    const use = simulator.person("Ada").usesCommand("ask", { prompt: "why?" }, { channel: general });
    await until(() => use.state() === "thinking");
  });

  test("an acknowledgement that fails is repeated within the deadline", async () => {
    const { simulator } = harness;
    simulator.fail({ method: "POST", route: "/callback", status: 502, times: 5 });
    const use = simulator
      .person("Ada")
      .usesCommand("ask", { prompt: "why?" }, { channel: simulator.channel("general") });
    await until(() => use.state() === "thinking");
  });

  test("a command that only another instance could acknowledge is answered where that has", async () => {
    const { simulator, platform } = harness;
    const other = await startInstance();
    other.receiver.receive = () => Promise.resolve("duplicate");
    const general = simulator.channel("general");
    simulator.fail({ method: "POST", route: "/callback", status: 502, times: 5 });
    const use = simulator.person("Ada").usesCommand("ask", { prompt: "why?" }, { channel: general });
    const [event] = await received(1);
    const reply = platform.openReply(event!.address, { saveAddress: () => Promise.resolve() });
    reply.write({ text: "Because." });
    await reply.finish();
    await clock.passing(clock.sleep(3000));
    expect(use.state()).not.toBe("thinking");
    expect(general.fromBot()).toMatchObject([{ text: "Because.", isThinking: false }]);
    await other.platform.stop();
  });

  test("a command that was accepted and never acknowledged is answered in the channel, a private one in a direct message", async () => {
    const { simulator, platform, receiver } = harness;
    const ada = simulator.person("Ada");
    const general = simulator.channel("general");
    for (const isPrivate of [false, true]) {
      // The acknowledgement of a killed process never arrives.
      simulator.fail({ method: "POST", route: "/callback", status: 502, times: 8 });
      const use = ada.usesCommand("ask", { prompt: "why?", private: isPrivate }, { channel: general });
      const event = await until(() => receiver.events.find(({ key }) => key === `discord:command/${use.id}`));
      const reply = platform.openReply(event.address, { saveAddress: () => Promise.resolve() });
      await reply.show();
      reply.write({ text: `Because, ${isPrivate}.` });
      await reply.finish();
      simulator.advance(3001);
      expect(use.state()).toBe("failed");
    }
    expect(general.fromBot()).toMatchObject([{ text: "Because, false.", isThinking: false }]);
    expect(simulator.directMessages(ada).fromBot()).toMatchObject([{ text: "Because, true." }]);
  });

  test("a command whose acknowledgement is late is answered in its place by the instance that took it over", async () => {
    const { simulator } = harness;
    const general = simulator.channel("general");
    simulator.fail({ method: "POST", route: "/callback", status: 502, times: 4 });
    const use = simulator.person("Ada").usesCommand("ask", { prompt: "why?" }, { channel: general });
    const [event] = await received(1);
    const other = await startInstance();
    const reply = other.platform.openReply(event!.address, { saveAddress: () => Promise.resolve() });
    reply.write({ text: "Because." });
    const finished = reply.finish();
    await until(() => use.state() !== "waiting");
    await clock.passing(finished);
    expect(use.state()).not.toBe("thinking");
    expect(general.fromBot()).toMatchObject([{ text: "Because.", isThinking: false }]);
    await other.platform.stop();
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

  test("a command that arrives without its channel gets words, not silence", async () => {
    const { simulator, receiver } = harness;
    const dispatch = simulator.gateway.dispatch.bind(simulator.gateway);
    simulator.gateway.dispatch = (event, data, intent) =>
      dispatch(
        event,
        event === "INTERACTION_CREATE" ? { ...(data as object), channel: undefined } : data,
        intent,
      );
    const ada = simulator.person("Ada");
    const general = simulator.channel("general");
    const use = ada.usesCommand("ask", { prompt: "why?" }, { channel: general });
    await until(() => use.state() === "answered", { explain: () => harness.lines });
    expect(general.fromBot()).toMatchObject([
      { isEphemeral: true, text: expect.stringContaining("Something went wrong") },
    ]);
    expect(receiver.events).toEqual([]);
  });
});
