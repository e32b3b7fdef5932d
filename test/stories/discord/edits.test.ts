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

  it("replace an answer of more than eight messages whole: its file goes too", async () => {
    const direct = story.discord.directMessages(ada);
    story.answers("A long line of words. ".repeat(1046), "A short one.");
    const question = ada.sends({ channel: direct, text: "Why?" });
    await until(() => direct.fromBot().at(-1)?.files[0]?.name === "answer.md" && story.isIdle(), {
      timeoutMs: 20_000,
      explain: () => direct.fromBot(),
    });
    expect(direct.fromBot()).toHaveLength(9);
    ada.edits(question, "What?");
    await shows(direct, "A short one.");
    await story.settled(direct);
    expect(direct.fromBot().map(({ text, files }) => [text, files])).toEqual([["A short one.", []]]);
    await until(() => story.isIdle());
    // The file was removed, but the answer must not count as deleted.
    ada.sends({ channel: direct, text: "And?" });
    await until(() => story.chats().length === 3);
    expect(story.said(2)).toEqual(["What?", "A short one.", "And?"]);
  });
});
