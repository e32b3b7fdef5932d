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
    // On a loaded machine some are acknowledged too late for Discord: then nobody reads anything of them.
    const isOver = (state: string): boolean => state === "answered" || state === "failed";
    await until(() => uses.every((use) => isOver(use.state())), {
      timeoutMs: 40_000,
      explain: () => uses.map((use) => use.state()).join(" "),
    });
    await story.settled(general, 20);
    expect(story.chats()).toHaveLength(20);
    const shown = general.fromBot();
    expect(shown.filter(({ isEphemeral }) => !isEphemeral).length).toBeLessThanOrEqual(20);
    const words = /You can send 20 requests in a minute|requests that are not answered yet/;
    expect(shown.filter(({ text, isEphemeral }) => isEphemeral && !words.test(text))).toEqual([]);
  });
});
