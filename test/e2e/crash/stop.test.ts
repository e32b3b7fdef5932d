import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { soonAgain } from "../../simulators/discord/session-starts.ts";
import { createDiscordSimulator } from "../../simulators/discord/simulator.ts";
import { until } from "../../simulators/discord/until.ts";
import { startSlowGateway, answers, type SlowGateway } from "../../simulators/gateway/slow-gateway.ts";
import {
  createDiscordSurface,
  createPageSurface,
  createSlackSurface,
  type Surface,
} from "./crash-platforms.ts";
import { createLives, type Life, type Lives } from "./life.ts";

const surfaces: Readonly<Record<string, () => Surface | Promise<Surface>>> = {
  Discord: () => createDiscordSurface("direct"),
  Slack: () => createSlackSurface(),
  "the page": () => createPageSurface(),
};

for (const [name, createSurface] of Object.entries(surfaces)) {
  describe(`a bot that is stopped during an answer on ${name}`, () => {
    let lives: Lives;
    let surface: Surface;
    let gateway: SlowGateway;
    beforeEach(async () => {
      lives = createLives();
      [surface, gateway] = await Promise.all([createSurface(), startSlowGateway(300)]);
    });
    afterEach(async () => {
      await lives.bury();
      await Promise.all([surface.close(), gateway.close()]);
    });
    const start = async (shutdownMs: number): Promise<Life> => {
      const life = await lives.begin({
        GATEWAY_BASE_URL: gateway.baseUrl,
        CHAT_MODEL: "m",
        SHUTDOWN_TIMEOUT_MS: `${shutdownMs}`,
        ...surface.settings,
      });
      await surface.meet(life.lines);
      return life;
    };
    const untilSeen = async (isMet: (texts: readonly string[]) => boolean) => {
      try {
        return await vi.waitUntil(
          async () => {
            const seen = await surface.seen();
            return isMet(seen.map(({ text }) => text)) && seen;
          },
          { timeout: 20_000, interval: 10 },
        );
      } catch (error) {
        throw new Error(`${JSON.stringify(await surface.seen())}\n${lives.output()}`, { cause: error });
      }
    };

    it("finishes the answer within the deadline", async () => {
      const parley = await start(10_000);
      await surface.say("hello #a");
      await untilSeen(([text]) => text?.includes("#a") === true);
      await parley.stop();
      await start(10_000);
      const seen = await untilSeen((texts) => texts.some((text) => answers(text, "#a")));
      expect(seen).toHaveLength(1);
      expect(gateway.turns).toMatchObject([{ isWhole: true }]);
    });

    it("leaves it open at the deadline; the next start finishes it in the same message", async () => {
      gateway.setHanging(true);
      const parley = await start(200);
      await surface.say("hello #a");
      const [half] = await untilSeen(([text]) => text?.includes("#a") === true);
      const askedAt = performance.now();
      await parley.stop();
      // This is the deadline and a margin for aborting.
      expect(performance.now() - askedAt).toBeLessThan(200 + 5000);
      gateway.setHanging(false);
      await start(200);
      const seen = await untilSeen((texts) => texts.some((text) => answers(text, "#a")));
      expect(seen.map(({ id }) => id)).toEqual([half?.id]);
    });
  });
}

describe("a bot that stops on Discord", () => {
  it("leaves mentions and messages to the next start, and tells the caller of a command to use it again", async () => {
    const [discord, gateway] = await Promise.all([
      createDiscordSimulator({ sessionStarts: soonAgain }),
      startSlowGateway(60),
    ]);
    const lives = createLives();
    const begin = async (): Promise<Life> => {
      const life = await lives.begin({
        DISCORD_TOKEN: discord.token,
        DISCORD_API_URL: discord.apiUrl,
        GATEWAY_BASE_URL: gateway.baseUrl,
        GATEWAY_API_KEY: "any",
        CHAT_MODEL: "m",
        SHUTDOWN_TIMEOUT_MS: "30000",
      });
      await until(() => discord.world.commands.length > 0);
      return life;
    };
    const explain = () => lives.output();
    const ada = discord.person("Ada");
    const general = discord.channel("general");
    const direct = discord.directMessages(ada);
    const shown = () => [direct, general, ...general.threads()].flatMap((channel) => channel.fromBot());
    const answered = (label: string) =>
      until(() => shown().some(({ text }) => answers(text, label)), { timeoutMs: 20_000, explain });
    try {
      const life = await begin();
      ada.sends({ channel: general, text: "first #a", mentionBot: true });
      await answered("#a");
      gateway.setHanging(true);
      ada.sends({ channel: direct, text: "long #b" });
      await until(() => gateway.turns.length === 2, { explain });
      const stopping = life.stop();
      const told = () => general.fromBot().find(({ text }) => text.includes("restarting"));
      ada.usesCommand("ask", { prompt: "why #c" }, { channel: general });
      ada.sends({ channel: general, text: "a mention #d", mentionBot: true });
      ada.sends({ channel: general.threads()[0]!, text: "in the thread #e" });
      await until(told, { explain });
      expect(told()).toMatchObject({ isEphemeral: true });
      gateway.setHanging(false);
      await stopping;
      expect(shown().some(({ text }) => answers(text, "#b"))).toBe(true);
      // This mention comes while no process is connected.
      ada.sends({ channel: general, text: "another mention #f", mentionBot: true });
      await begin();
      for (const label of ["#d", "#e", "#f"]) await answered(label);
      expect(shown().filter(({ text }) => /#[a-f]/.test(text))).toHaveLength(5);
    } finally {
      await lives.bury();
      await Promise.all([discord.close(), gateway.close()]);
    }
  });
});
