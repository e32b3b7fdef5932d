import { beforeEach, describe, expect, it } from "vitest";
import type { Person } from "../../simulators/discord/people.ts";
import { until } from "../../simulators/discord/until.ts";
import type { Story } from "../../e2e/discord/discord-story.ts";
import { createDiscordStage } from "./stage.ts";

const stage = createDiscordStage();

let story: Story;
let ada: Person;
beforeEach(async () => {
  story = await stage.begin();
  ada = story.discord.person("Ada");
});

const shows = (channel: Parameters<Story["settled"]>[0], text: string) =>
  until(() => channel.fromBot().some((message) => message.text.includes(text)), {
    timeoutMs: 20_000,
    explain: () => ({ shown: channel.fromBot(), lines: story.lines }),
  });

describe("edited questions on Discord", () => {
  it("in a channel are answered in their thread; previews and pins are no edits", async () => {
    const channel = story.discord.channel("general");
    const question = ada.sends({ channel, text: "see https://example.com", mentionBot: true });
    const thread = await until(() => channel.threads().find(({ id }) => id === question.id));
    const [answer] = await story.settled(thread);
    ada.getsPreview(question);
    ada.pins(question);
    ada.edits(question, `<@${story.discord.botId}> see nothing`);
    ada.getsPreview(question);
    await shows(thread, "I heard: see nothing");
    await story.settled(thread);
    expect(thread.fromBot().map(({ id }) => id)).toEqual([answer?.id]);
    expect(story.chats()).toHaveLength(2);
    expect(channel.threads()).toHaveLength(1);
  });

  it("while the bot is offline are found where the question is the last one", async () => {
    const direct = story.discord.directMessages(ada);
    const question = ada.sends({ channel: direct, text: "one" });
    const [answer] = await story.settled(direct, 1);
    await story.restart(() => ada.edits(question, "two"));
    await shows(direct, "I heard: two");
    await story.settled(direct, 1);
    expect(direct.fromBot().map(({ id }) => id)).toEqual([answer?.id]);
  });
});
