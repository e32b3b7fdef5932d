import { describe, expect, test } from "vitest";
import { toStream, type SlackMode, type SlackStory } from "../../e2e/slack/slack-story.ts";
import { createSlackStage } from "./stage.ts";

const stage = createSlackStage();

let story: SlackStory;

describe.each<SlackMode>(["socket", "http"])("Slack's view of an agent, over %s", (mode) => {
  test("suggests prompts in the person's language, and a chosen one is answered at work first", async () => {
    // The model thinks for more than a second before its first word.
    const body = `${": thinking\n\n".repeat(3)}${toStream("gladly", 2).body as string}`;
    story = await stage.begin({ chat: () => ({ body, eventEveryMs: 100 }) }, mode);
    const { slack } = story;
    const [ana, uwe] = [slack.person("Ana"), slack.person("Uwe", { locale: "de-DE" })];
    for (const person of [ana, uwe]) person.opensMessagesTab();
    const titles = await Promise.all(
      [ana, uwe].map(async ({ directMessages }) => {
        const prompts = await slack.waitFor("prompts", () => slack.suggestedPrompts.get(directMessages));
        expect(prompts.length).toBeLessThanOrEqual(4);
        return prompts.map(({ title }) => title);
      }),
    );
    expect(titles[0]?.[0]).toBe("What can you do?");
    expect(titles[1]?.[0]).toBe("Was kannst du?");
    const [prompt] = slack.suggestedPrompts.get(uwe.directMessages) ?? [];
    const thread = uwe.sends({ channel: uwe.directMessages, text: prompt?.["message"] as string });
    await slack.waitFor("a sign of work", () => slack.sessionIn(uwe.directMessages, thread)?.hasStop);
    expect((await story.answerTo(uwe.directMessages, thread)).body).toBe("gladly");
    await slack.waitFor("its end", () => slack.sessionIn(uwe.directMessages, thread)?.status === "active");
    expect(slack.sessionIn(uwe.directMessages, thread)?.title).toBe(prompt?.["message"]);
  });
});

test("two workspaces have prompts of their own, each with its token", async () => {
  const two = await stage.startInTwo();
  story = two;
  const { workspace } = two;
  const { slack } = story;
  for (const place of [slack, workspace]) {
    const person = place.person("Ana");
    person.opensMessagesTab();
    await slack.waitFor("prompts", () => place.suggestedPrompts.get(person.directMessages));
  }
  const tokens = slack.calls
    .filter(({ method }) => method === "assistant.threads.setSuggestedPrompts")
    .map(({ token }) => token);
  expect(tokens).toEqual([slack.botToken, workspace.botToken]);
});
