import { describe, expect, it } from "vitest";
import type { ServerHandle } from "../../simulators/discord/simulator.ts";
import { until } from "../../simulators/discord/until.ts";
import type { Story } from "../../e2e/discord/discord-story.ts";
import { createDiscordStage } from "./stage.ts";

const stage = createDiscordStage();

let story: Story;

describe("the words of Parley on Discord", () => {
  it("take the server's language for a message, and the person's once it is known", async () => {
    const servers: ServerHandle[] = [];
    story = await stage.start((discord) => {
      servers.push(discord.server("Québec", { preferredLocale: "fr" }));
      return {};
    });
    const { discord } = story;
    const quebec = servers[0]!;
    const channel = quebec.channel("général");
    const luz = discord.person("Luz", { locale: "es-419" });
    quebec.join(luz);
    luz.sends({ channel, text: "/reset", mentionBot: true });
    const thread = await until(() => channel.threads()[0]);
    expect((await story.settled(thread))[0]?.text).toBe("Rien n’a encore été dit ici.");

    luz.usesCommand("usage", {}, { channel });
    await story.settled(channel);
    luz.sends({ channel: thread, text: "/reset" });
    const shown = await story.settled(thread, 2);
    expect(shown.at(-1)?.text).toBe("Se ha empezado de nuevo. El modelo ya no ve lo que se dijo antes.");
  });

  it("tell an error in the language of the person who asked, also after a restart", async () => {
    story = await stage.begin();
    const { discord } = story;
    const general = discord.channel("general");
    const greta = discord.person("Greta", { locale: "de" });
    story.setStalled(true);
    greta.usesCommand("ask", { prompt: "Hallo" }, { channel: general });
    await until(() => general.fromBot().some(({ text }) => text.includes("Half")));
    await story.restart(() => {
      story.setStalled(false);
      story.setGatewayUp(false);
    });
    const [failed] = await until(
      () => {
        const all = general.fromBot();
        return all[0]?.text.includes("⚠️") === true && all;
      },
      { timeoutMs: 60_000, explain: () => general.fromBot() },
    );
    expect(failed?.text).toContain("⚠️ Das Modell-Gateway ist nicht erreichbar.");
    expect(failed?.buttons.map(({ label }) => label)).toContain("Noch einmal versuchen");
  });

  it("describe the commands in the languages of Discord's clients; English names stay the default", async () => {
    story = await stage.begin();
    const { commands } = story.discord.world;
    const ask = commands.find(({ name, type }) => name === "ask" && type === 1);
    expect(ask).toMatchObject({
      description: "Ask the model one question, with a picture if you like",
      name_localizations: {
        de: "fragen",
        fr: "demander",
        "es-ES": "preguntar",
        "es-419": "preguntar",
        ja: "質問",
      },
      description_localizations: { de: "Stelle dem Modell eine Frage, auf Wunsch mit einem Bild" },
    });
    const menu = commands.find(({ name, type }) => name === "Ask about this" && type === 3);
    expect(menu?.["name_localizations"]).toMatchObject({ de: "Danach fragen", ja: "これについて質問" });
    const usage = commands.find(({ name }) => name === "usage");
    expect(usage?.["options"]).toContainEqual(
      expect.objectContaining({
        name: "period",
        name_localizations: expect.objectContaining({ ja: "期間" }) as unknown,
        choices: expect.arrayContaining([
          expect.objectContaining({
            name: "today",
            value: "today",
            name_localizations: expect.objectContaining({ de: "heute" }) as unknown,
          }),
        ]) as unknown,
      }),
    );
  });
});
