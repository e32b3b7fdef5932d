import { describe, expect, it } from "vitest";
import { until } from "../../simulators/discord/until.ts";
import { createDiscordStage } from "./stage.ts";

const stage = createDiscordStage();

describe("TURNS_PERSON_MINUTE on Discord", () => {
  it("of 100 commands in a burst at most 20 ask the gateway, and the rest is told to the caller alone", async () => {
    const story = await stage.start({}, {}, undefined, 1);
    const general = story.discord.channel("general");
    const ada = story.discord.person("Ada");
    const uses = Array.from({ length: 100 }, (_, n) =>
      ada.usesCommand("ask", { prompt: `question ${n}` }, { channel: general }),
    );
    // On a loaded machine some commands are acknowledged too late for Discord. Nobody reads their answers.
    const isOver = (state: string): boolean => state === "answered" || state === "failed";
    await until(() => uses.every((use) => isOver(use.state())), {
      timeoutMs: 40_000,
      explain: () => uses.map((use) => use.state()).join(" "),
    });
    await story.settled(general, 20);
    expect(story.chats()).toHaveLength(20);
    const shown = general.fromBot();
    expect(shown.filter(({ isEphemeral }) => !isEphemeral).length).toBeLessThanOrEqual(20);
    const words = /You have sent 20 requests within a minute|requests that are not answered yet/;
    expect(shown.filter(({ text, isEphemeral }) => isEphemeral && !words.test(text))).toEqual([]);
  });

  it("what was refused stays refused: the look-ups of later starts do not refuse it again", async () => {
    const story = await stage.start({ TURNS_PERSON_MINUTE: "1" }, {}, undefined, 1);
    const { discord, lines } = story;
    const general = discord.channel("general");
    const [ada, mia] = [discord.person("Ada"), discord.person("Mia")];
    const refusals = () => lines.filter(({ message }) => message === "message refused").length;
    ada.sends({ channel: general, text: "one", mentionBot: true });
    await until(() => story.chats().length === 1 && story.isIdle());
    const [thread] = general.threads();
    ada.sends({ channel: thread!, text: "one more" });
    const told = () => discord.directMessages(ada).fromBot();
    await until(() => told().length === 1);
    // Mia's message is found although it comes after the refused one.
    await story.restart(() => void mia.sends({ channel: thread!, text: "and me?", mentionBot: true }));
    await until(() => story.chats().length === 2 && story.isIdle());
    expect(refusals()).toBe(1);
    expect(told()).toHaveLength(1);
  });
});
