import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { startScriptedGateway, type ScriptedGateway } from "../../simulators/gateway/scripted-gateway.ts";
import { answers, startSlowGateway, type SlowGateway } from "../../simulators/gateway/slow-gateway.ts";
import { soonAgain } from "../../simulators/discord/session-starts.ts";
import { createDiscordSimulator, type DiscordSimulator } from "../../simulators/discord/simulator.ts";
import { until } from "../../simulators/discord/until.ts";
import { runParley, type RunningParley } from "../process/run-parley.ts";

const chunk = (content: string, finish: string | null = null): string =>
  `data: ${JSON.stringify({ model: "m", choices: [{ index: 0, delta: { content }, finish_reason: finish }] })}\n\n`;

describe("a process that is killed while it answers", () => {
  let discord: DiscordSimulator;
  let gateway: ScriptedGateway;
  let parley: RunningParley | undefined;
  let isHanging = true;
  beforeEach(async () => {
    isHanging = true;
    discord = await createDiscordSimulator({ sessionStarts: soonAgain });
    gateway = await startScriptedGateway((request) => {
      if (request.path === "/v1/models") {
        return {
          headers: { "content-type": "application/json" },
          body: JSON.stringify({ object: "list", data: [{ id: "m" }] }),
        };
      }
      if (isHanging) return { body: chunk("Half of"), after: "hang" };
      return { body: `${chunk("The whole answer.")}${chunk("", "stop")}data: [DONE]\n\n` };
    });
  });
  afterEach(async () => {
    await parley?.remove();
    await gateway.close();
    await discord.close();
  });

  const start = async (folder?: string): Promise<RunningParley> => {
    const started = await runParley({
      settings: {
        DISCORD_TOKEN: discord.token,
        DISCORD_API_URL: discord.apiUrl,
        GATEWAY_BASE_URL: gateway.baseUrl,
        GATEWAY_API_KEY: "any",
        CHAT_MODEL: "m",
      },
      ...(folder === undefined ? {} : { folder }),
    });
    await started.says(/Ready\./);
    return started;
  };

  for (const how of ["a direct message", "a mention", "a command"] as const) {
    it(`finishes the same message at the next start: ${how}`, async () => {
      parley = await start();
      const ada = discord.person("Ada");
      const general = discord.channel("general");
      const direct = discord.directMessages(ada);
      if (how === "a direct message") ada.sends({ channel: direct, text: "Hello" });
      if (how === "a mention") ada.sends({ channel: general, text: "Hello", mentionBot: true });
      if (how === "a command") {
        await until(() => discord.world.commands.length > 0);
        ada.usesCommand("ask", { prompt: "Hello" }, { channel: general });
      }
      const shown = () => [direct, general, ...general.threads()].flatMap((channel) => channel.fromBot());
      const half = await until(() => shown().find((message) => message.text.includes("Half of")), {
        explain: () => ({ shown: shown(), output: parley?.output() }),
      });
      parley.process.kill("SIGKILL");
      await parley.ended;
      isHanging = false;
      const { folder } = parley;
      parley = await start(folder);
      const whole = await until(() => shown().find((message) => message.text.includes("The whole answer.")), {
        timeoutMs: 20_000,
        explain: () => ({ shown: shown(), output: parley?.output() }),
      });
      expect(whole.id).toBe(half.id);
      expect(whole.text).not.toContain("Half of");
      expect(shown()).toHaveLength(1);
    });
  }
});

describe("a process that stops", () => {
  let discord: DiscordSimulator;
  let gateway: SlowGateway;
  const started: RunningParley[] = [];
  beforeEach(async () => {
    [discord, gateway] = await Promise.all([
      createDiscordSimulator({ sessionStarts: soonAgain }),
      startSlowGateway(100),
    ]);
  });
  afterEach(async () => {
    for (const parley of started.splice(0)) await parley.remove();
    await Promise.all([discord.close(), gateway.close()]);
  });
  const start = async (folder?: string): Promise<RunningParley> => {
    const parley = await runParley({
      settings: {
        DISCORD_TOKEN: discord.token,
        DISCORD_API_URL: discord.apiUrl,
        GATEWAY_BASE_URL: gateway.baseUrl,
        GATEWAY_API_KEY: "any",
        CHAT_MODEL: "m",
      },
      ...(folder === undefined ? {} : { folder }),
    });
    started.push(parley);
    await parley.says(/Ready\./);
    await until(() => discord.world.commands.length > 0);
    return parley;
  };
  const explain = () => started.map((parley) => parley.output());

  it("leaves mentions and messages to the next start, and tells the caller of a command to use it again", async () => {
    const parley = await start();
    const ada = discord.person("Ada");
    const general = discord.channel("general");
    const direct = discord.directMessages(ada);
    const shown = () => [direct, general, ...general.threads()].flatMap((channel) => channel.fromBot());
    const answered = (label: string) =>
      until(() => shown().some(({ text }) => answers(text, label)), { timeoutMs: 20_000, explain });
    ada.sends({ channel: general, text: "first #a", mentionBot: true });
    await answered("#a");
    gateway.setDuration(6000);
    ada.sends({ channel: direct, text: "long #b" });
    await until(() => gateway.turns.length === 2, { explain });
    gateway.setDuration(100);
    parley.process.kill("SIGTERM");
    await parley.says(/Stopping:/);
    const told = () => general.fromBot().find(({ text }) => text.includes("restarting"));
    ada.usesCommand("ask", { prompt: "why #c" }, { channel: general });
    ada.sends({ channel: general, text: "a mention #d", mentionBot: true });
    ada.sends({ channel: general.threads()[0]!, text: "in the thread #e" });
    await until(told, { explain });
    expect(told()).toMatchObject({ isEphemeral: true });
    expect(await parley.ended).toBe(0);
    expect(shown().some(({ text }) => answers(text, "#b"))).toBe(true);
    // Nobody runs: a mention while no process is connected.
    ada.sends({ channel: general, text: "another mention #f", mentionBot: true });
    await start(parley.folder);
    for (const label of ["#d", "#e", "#f"]) await answered(label);
    expect(shown().filter(({ text }) => /#[a-f]/.test(text))).toHaveLength(5);
  });
});

describe("npm start with a wrong token", () => {
  it("ends with a message that names the variable and not the token", async () => {
    const discord = await createDiscordSimulator({ sessionStarts: soonAgain });
    const parley = await runParley({
      settings: { DISCORD_TOKEN: "not.the.token", DISCORD_API_URL: discord.apiUrl },
    });
    try {
      expect(await parley.ended).toBe(1);
      expect(parley.output()).toContain("DISCORD_TOKEN");
      expect(parley.output()).not.toContain("not.the.token");
      expect(parley.output()).not.toContain("    at ");
    } finally {
      await parley.remove();
      await discord.close();
    }
  });
});
