import { expect, it } from "vitest";
import { soonAgain } from "../../simulators/discord/session-starts.ts";
import { createDiscordSimulator } from "../../simulators/discord/simulator.ts";
import { until } from "../../simulators/discord/until.ts";
import { startSlowGateway } from "../../simulators/gateway/slow-gateway.ts";
import { createLives } from "./life.ts";

it("a dead life reaches nobody, is reached by nobody, and answers no call of its store", async () => {
  const [discord, gateway] = await Promise.all([
    createDiscordSimulator({ sessionStarts: soonAgain }),
    startSlowGateway(60),
  ]);
  const lives = createLives();
  try {
    const life = await lives.begin({
      DISCORD_TOKEN: discord.token,
      DISCORD_API_URL: discord.apiUrl,
      GATEWAY_BASE_URL: gateway.baseUrl,
      CHAT_MODEL: "m",
      PAGE: "on",
    });
    const [url = ""] = /http:\/\/127\.0\.0\.1:\d+/.exec(life.lines) ?? [];
    expect((await fetch(`${url}/healthz`)).status).toBe(200);
    gateway.setHanging(true);
    const ada = discord.person("Ada");
    ada.sends({ channel: discord.directMessages(ada), text: "hello #a" });
    const shown = () => discord.directMessages(ada).fromBot();
    await until(() => shown().some(({ text }) => text.includes("re #a")));
    life.kill();
    const [requests, turns, texts, steps] = [
      discord.requests.length,
      gateway.turns.length,
      shown().map(({ text }) => text),
      life.steps.length,
    ];
    await life.died;
    await expect(fetch(`${url}/healthz`)).rejects.toThrow("fetch failed");
    ada.sends({ channel: discord.directMessages(ada), text: "hello #b" });
    // Its answer was cut off.
    await until(() => gateway.turns[0]?.endedAt !== undefined, { explain: () => life.output() });
    // It does what it can when it is stopped.
    await lives.bury();
    expect(life.output()).not.toContain("#b");
    expect(discord.requests).toHaveLength(requests);
    expect(gateway.turns).toHaveLength(turns);
    expect(shown().map(({ text }) => text)).toEqual(texts);
    expect(life.steps).toHaveLength(steps);
  } finally {
    await Promise.all([discord.close(), gateway.close()]);
  }
});
