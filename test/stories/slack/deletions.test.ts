import { beforeEach, expect, test, vi } from "vitest";
import type { SlackStory } from "../../e2e/slack/slack-story.ts";
import { createSlackStage } from "./stage.ts";

const stage = createSlackStage();

let story: SlackStory;
beforeEach(async () => {
  story = await stage.begin({ chat: (turns) => (turns.length > 1 ? "Yes." : "Noted.") });
});

const gone = (text: string) =>
  vi.waitFor(async () => expect(await story.isKept(text), text).toBe(false), { timeout: 5000, interval: 20 });

test("/forget after a mention in a thread asks in direct messages, with a button that removes", async () => {
  const [ada, bo] = [story.slack.person("Ada"), story.slack.person("Bo")];
  const channel = story.slack.channel("general", [ada, bo]);
  const root = ada.sends({ channel: channel.id, text: "Ada's secret", mentionBot: true });
  await story.answerTo(channel.id, root);
  bo.sends({ channel: channel.id, thread: root, text: "Bo's words", mentionBot: true });
  await story.answerTo(channel.id, root, 1);
  ada.sends({ channel: channel.id, thread: root, text: "/forget", mentionBot: true });
  const direct = story.slack.directMessages(ada);
  const question = await story.slack.waitFor("the question", () =>
    direct.saidByBot().find(({ buttons }) => buttons.some(({ label }) => label.startsWith("Remove"))),
  );
  expect(question.text).toContain("1 message in this conversation");
  expect(question.buttons).toMatchObject([{ label: "Remove 1 message" }]);
  expect(await story.isKept("Ada's secret")).toBe(true);

  await ada.clicks(question, "Remove 1 message", { channel: ada.directMessages });
  const result = await story.slack.waitFor("the result", () =>
    direct.saidByBot().find(({ text }) => text.startsWith("Removed in this conversation: 1 message.")),
  );
  expect(result).toMatchObject({ ts: question.ts, buttons: [] });
  await gone("Ada's secret");
  expect(await story.isKept("Bo's words")).toBe(true);
});

test("/forget in a channel says how to use it in a thread", async () => {
  const ada = story.slack.person("Ada");
  const channel = story.slack.channel("general", [ada]);
  await ada.usesCommand("/forget", "", { channel: channel.id });
  const notice = await story.slack.waitFor("the notice", () =>
    channel.transcript().find(({ text }) => text.includes("mention me there")),
  );
  expect(notice).toMatchObject({ onlyFor: "Ada" });
  expect(notice.text).toContain("/forget");
});
