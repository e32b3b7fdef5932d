import { afterEach, describe, expect, test } from "vitest";
import { startSlackStory, type SlackStory } from "../../e2e/slack/slack-story.ts";

let story: SlackStory;
afterEach(async () => {
  const { badAcks } = story.slack;
  await story.close();
  expect(badAcks).toEqual([]);
});

describe("Details on Slack", () => {
  test("of an answer in a thread are shown there, to whoever clicks, alone", async () => {
    story = await startSlackStory({ chat: () => "forty-two" });
    const { slack } = story;
    const [ana, bo] = [slack.person("Ana"), slack.person("Bo")];
    const channel = slack.channel("ideas", [ana, bo]);
    const thread = ana.sends({ channel: channel.id, text: "what is it?", mentionBot: true });
    const answer = await story.answerTo(channel.id, thread);
    expect(answer.buttons.map(({ label }) => label)).toEqual(["Regenerate", "Other model", "Details"]);
    await bo.clicks(answer, "Details", { channel: channel.id });
    const told = await slack.waitFor("the details", () =>
      channel.transcript().find(({ onlyFor }) => onlyFor === "Bo"),
    );
    expect(told.text).toContain("Model: `test/chat-model`");
    expect(told.text).toContain("Cost: unknown: the model has no price");
    expect(told.text).toContain("Context: 1 message");
    expect(told.thread).toBe(thread);
    expect(channel.saidByBot().find(({ ts }) => ts === answer.ts)?.edits).toBe(answer.edits);
  });

  test("of a private answer cost no further post until they are asked for", async () => {
    story = await startSlackStory({ chat: () => "just for you" });
    const { slack } = story;
    const ana = slack.person("Ana");
    const channel = slack.channel("ideas", [ana]);
    await ana.usesCommand("/ask", "tell me private:yes", { channel: channel.id });
    const answer = await slack.waitFor("the answer", () =>
      channel.transcript().find(({ text }) => text.includes("just for you")),
    );
    const posts = channel.transcript().length;
    await ana.clicks(answer, "Details", { channel: channel.id });
    const told = await slack.waitFor("the details", () => channel.transcript()[posts]);
    expect(told).toMatchObject({ onlyFor: "Ana" });
    expect(told.text).toContain("Model: `test/chat-model`");
  });
});
