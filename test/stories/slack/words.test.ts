import { afterEach, describe, expect, test } from "vitest";
import { startSlackStory, type SlackStory } from "../../e2e/slack/slack-story.ts";

let story: SlackStory;
afterEach(async () => {
  const { badAcks } = story.slack;
  await story.close();
  expect(badAcks).toEqual([]);
});

describe("the words of Parley on Slack", () => {
  test("are in the language of the person's client: private answers, refusals and messages", async () => {
    story = await startSlackStory({ chat: () => "四十二" });
    const { slack } = story;
    const yuki = slack.person("Yuki", { locale: "ja-JP" });
    const ana = slack.person("Ana");
    const channel = slack.channel("ideas", [yuki, ana]);
    const last = (name: string, words: RegExp) =>
      slack.waitFor(`words for ${name}`, () =>
        channel.transcript().findLast(({ onlyFor, text }) => onlyFor === name && words.test(text)),
      );
    await yuki.usesCommand("/usage", "", { channel: channel.id });
    expect((await last("Yuki", /使用量/)).text).toContain("あなたに適用される予算はありません。");
    await ana.usesCommand("/usage", "", { channel: channel.id });
    expect((await last("Ana", /Your usage/)).text).toContain("No budget limits you.");

    await yuki.usesCommand("/imagine", "fox size:big", { channel: channel.id });
    await slack.waitFor("the refusal", () =>
      channel.transcript().find(({ text }) => text.includes("<幅>x<高さ> をピクセルで指定してください")),
    );

    const ts = yuki.sends({ channel: channel.id, text: "/reset", mentionBot: true });
    const answer = await story.answerTo(channel.id, ts);
    expect(answer.text).toContain("まだ何もありませんでした。");
  });
});
