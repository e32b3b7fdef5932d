import { describe, expect, onTestFinished, test } from "vitest";
import { createDiscordPlatform } from "../../../../src/platforms/discord/platform.ts";
import { createDiscordSimulator } from "../../../simulators/discord/simulator.ts";
import { allCommands } from "../../../support/commands.ts";
import { createRecordingReceiver } from "../../../support/recording-receiver.ts";
import { createListLog, startHarness, until, letIdentify } from "./harness.ts";

describe("connection", () => {
  describe("connecting", () => {
    test("a wrong token is an error that names the variable and does not contain the token", async () => {
      const simulator = await createDiscordSimulator();
      const { log, lines } = createListLog();
      const token = "wrong.token.value";
      const platform = createDiscordPlatform({ token, apiUrl: simulator.apiUrl, commands: allCommands, log });
      const failed = platform.start(createRecordingReceiver(), createRecordingReceiver());
      await expect(failed).rejects.toMatchObject({ code: "platform-unauthorized" });
      await expect(failed).rejects.toThrow("DISCORD_TOKEN");
      expect(platform.health()).toMatchObject({ state: "failed" });
      expect(JSON.stringify(lines)).not.toContain(token);
      await platform.stop();
      await simulator.close();
    });

    test("an address without a server is unreachable, not a crash", async () => {
      const simulator = await createDiscordSimulator();
      const { apiUrl, token } = simulator;
      await simulator.close();
      const { log } = createListLog();
      const platform = createDiscordPlatform({ token, apiUrl, commands: allCommands, log });
      await expect(
        platform.start(createRecordingReceiver(), createRecordingReceiver()),
      ).rejects.toMatchObject({
        code: "platform-unreachable",
      });
      await platform.stop();
    });

    test("start can be tried again after a failure", async () => {
      const simulator = await createDiscordSimulator();
      simulator.fail({ route: "/gateway/bot", status: 404, times: 1 });
      const { log } = createListLog();
      const platform = createDiscordPlatform({
        token: simulator.token,
        apiUrl: simulator.apiUrl,
        commands: allCommands,
        log,
      });
      const receiver = createRecordingReceiver();
      await expect(platform.start(receiver, receiver)).rejects.toMatchObject({
        code: "platform-unreachable",
      });
      await platform.start(receiver, receiver);
      expect(platform.health()).toEqual({ state: "ready" });
      await platform.stop();
      await simulator.close();
    });

    test("identifies with the intents for messages, direct messages and their contents only", async () => {
      const { simulator, close } = await startHarness();
      expect(simulator.gateway.identifiedIntents()).toBe((1 << 0) | (1 << 9) | (1 << 12) | (1 << 15));
      await close();
    });

    test("a lost connection is resumed, and messages sent meanwhile are received once", async () => {
      const { simulator, platform, receiver, close } = await startHarness();
      const ada = simulator.person("Ada");
      const direct = simulator.directMessages(ada);
      ada.sends({ channel: direct, text: "before" });
      await until(() => receiver.events.length === 1);
      simulator.gateway.drop();
      await until(() => !simulator.gateway.isConnected());
      ada.sends({ channel: direct, text: "meanwhile" });
      await until(() => platform.health().state === "connecting");
      await until(() => receiver.events.length === 2, { timeoutMs: 15_000 });
      expect(simulator.gateway.counts).toEqual({ identify: 1, resume: 1 });
      await until(() => platform.health().state === "ready");
      await close();
    });

    test("Discord's request to reconnect is followed", async () => {
      const { simulator, receiver, close } = await startHarness();
      simulator.gateway.askReconnect();
      await until(() => simulator.gateway.counts.resume === 1);
      const ada = simulator.person("Ada");
      ada.sends({ channel: simulator.directMessages(ada), text: "after" });
      await until(() => receiver.events.length === 1);
      await close();
    });

    test("a session that Discord invalidates is replaced by a new one", async () => {
      const { simulator, receiver, close } = await startHarness();
      letIdentify();
      simulator.gateway.invalidateSession(false);
      await until(() => simulator.gateway.counts.identify === 2 && simulator.gateway.isConnected(), {
        timeoutMs: 15_000,
      });
      const ada = simulator.person("Ada");
      ada.sends({ channel: simulator.directMessages(ada), text: "after" });
      await until(() => receiver.events.length === 1);
      await close();
    });

    test("a token that is reset while running fails the health, without a crash", async () => {
      const { simulator, platform, close } = await startHarness();
      simulator.gateway.closeWith(4004);
      await until(() => platform.health().state === "failed");
      expect(platform.health().detail).toContain("DISCORD_TOKEN");
      await close();
    });

    test("can be stopped while it is still connecting", async () => {
      const simulator = await createDiscordSimulator();
      simulator.gateway.holdHello();
      const { log } = createListLog();
      const platform = createDiscordPlatform({
        token: simulator.token,
        apiUrl: simulator.apiUrl,
        commands: allCommands,
        log,
      });
      const starting = platform
        .start(createRecordingReceiver(), createRecordingReceiver())
        .catch((error: unknown) => error);
      await until(() => simulator.gateway.connections() === 1);
      await platform.stop();
      await until(() => simulator.gateway.connections() === 0);
      await simulator.close();
      expect(platform.health().state).not.toBe("ready");
      void starting;
    });

    test("after stop no events are accepted", async () => {
      const { simulator, platform, receiver } = await startHarness();
      await platform.stop();
      const ada = simulator.person("Ada");
      ada.sends({ channel: simulator.directMessages(ada), text: "too late" });
      await until(() => !simulator.gateway.isConnected());
      expect(receiver.events).toEqual([]);
      await simulator.close();
    });
  });

  describe("registering commands", () => {
    test("takes away those that are no more", async () => {
      const { simulator, platform } = await startHarness();
      expect(simulator.world.commands.map((command) => `${command.type} ${command.name}`)).toEqual(
        [...allCommands.values()].flatMap(({ name, messageCommand }) => [
          `1 ${name}`,
          ...(messageCommand === undefined ? [] : [`3 ${messageCommand.label}`]),
        ]),
      );
      await platform.stop();
      const { log, lines } = createListLog();
      const again = createDiscordPlatform({
        token: simulator.token,
        apiUrl: simulator.apiUrl,
        commands: new Map([...allCommands].filter(([name]) => name !== "models")),
        log,
      });
      await again.start(createRecordingReceiver(), createRecordingReceiver());
      await until(() => lines.some(({ message }) => message === "commands registered"));
      await again.stop();
      expect(simulator.world.commands.some((command) => command.name === "models")).toBe(false);
      await simulator.close();
    });

    test("they work in servers and direct messages, and keep strangers out", async () => {
      const { simulator, close } = await startHarness();
      for (const command of simulator.world.commands) {
        expect(command["contexts"]).toEqual([0, 1]);
        expect(command["integration_types"]).toEqual([0]);
      }
      await close();
    });

    test("a failure is logged and the bot keeps running", async () => {
      const simulator = await createDiscordSimulator();
      simulator.fail({ method: "PUT", status: 400, code: 50035, times: 1 });
      const { log, lines } = createListLog();
      const receiver = createRecordingReceiver();
      const platform = createDiscordPlatform({
        token: simulator.token,
        apiUrl: simulator.apiUrl,
        commands: allCommands,
        log,
      });
      await platform.start(receiver, receiver);
      await until(() => lines.some((line) => line.message === "command registration failed"));
      const ada = simulator.person("Ada");
      ada.sends({ channel: simulator.directMessages(ada), text: "hello" });
      await until(() => receiver.events.length === 1);
      await platform.stop();
      await simulator.close();
    });
  });
});

describe("close codes", () => {
  test.each([
    [4004, /DISCORD_TOKEN.*reset it/],
    [4010, /DISCORD_SHARD_IDS/],
    [4011, /DISCORD_SHARDS=auto/],
    [4012, /update Parley/],
    [4013, /update Parley/],
  ])("after close code %i it says how to mend that, and does not identify again", async (code, remedy) => {
    const { simulator, platform, lines, close } = await startHarness();
    simulator.gateway.closeWith(code);
    await until(() => platform.health().state === "failed");
    expect(platform.health().detail).toMatch(remedy);
    expect(lines.filter(({ level, message }) => level === "error" && remedy.test(message))).toHaveLength(1);
    await until(() => simulator.gateway.connections() === 0);
    await close();
    expect(simulator.gateway.counts).toEqual({ identify: 1, resume: 0 });
  });

  test("an intent that is turned off in the portal while it runs is said, and a restart mends it", async () => {
    const harness = await startHarness();
    onTestFinished(harness.close);
    const { simulator, lines } = harness;
    simulator.world.messageContentAllowed = false;
    simulator.gateway.closeWith(4014);
    await until(() => harness.platform.health().state === "failed");
    expect(harness.platform.health().detail).toContain("restart to go on without it (4014)");
    expect(lines.filter(({ level }) => level === "error")).toHaveLength(1);
    await harness.restart();
    expect(harness.platform.health()).toMatchObject({
      state: "ready",
      detail: expect.stringContaining("without message contents") as string,
    });
    const ada = simulator.person("Ada");
    ada.sends({ channel: simulator.channel("general"), text: "do you hear me?", mentionBot: true });
    await until(() => harness.receiver.events.length === 1, { explain: () => lines });
    expect(harness.receiver.events[0]).toMatchObject({ text: "do you hear me?" });
  });
});
