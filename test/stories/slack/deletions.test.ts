import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { fixture } from "../../fixtures/fixtures.ts";
import { startSlackStory, textOf, type SlackStory } from "../../e2e/slack/slack-story.ts";

let story: SlackStory;
beforeEach(async () => {
  story = await startSlackStory({ chat: (turns) => (turns.length > 1 ? "Yes." : "Noted.") });
});
afterEach(async () => {
  expect(story.slack.badAcks).toEqual([]);
  await story.close();
});

const gone = (text: string) =>
  vi.waitFor(async () => expect(await story.isKept(text), text).toBe(false), { timeout: 5000, interval: 20 });
const lastAsked = () => (story.asked().at(-1) ?? []).map(textOf).join("\n");

test("a deleted message, and a deleted root, are not sent again and leave the store's files", async () => {
  const ada = story.slack.person("Ada");
  const channel = story.slack.channel("general", [ada]);
  const root = ada.sends({ channel: channel.id, text: "the vault code is 7319", mentionBot: true });
  await story.answerTo(channel.id, root);
  const files = [{ name: "plans.png", bytes: await fixture("picture.png"), mediaType: "image/png" }];
  const second = ada.sends({ channel: channel.id, thread: root, text: "the pin is 4471", files });
  await story.answerTo(channel.id, root, 1);
  ada.sends({ channel: channel.id, thread: root, text: "this stays" });
  await story.answerTo(channel.id, root, 2);

  channel.deleteMessage(second);
  await gone("the pin is 4471");
  await gone("plans.png");
  channel.deleteMessage(root);
  await gone("the vault code is 7319");
  ada.sends({ channel: channel.id, thread: root, text: "what did I say?" });
  await story.answerTo(channel.id, root, 3);
  expect(lastAsked()).toContain("this stays");
  expect(lastAsked()).not.toMatch(/7319|4471/);
});

test("a deleted answer of the bot leaves the store's files too", async () => {
  const ada = story.slack.person("Ada");
  const direct = ada.directMessages;
  const root = ada.sends({ channel: direct, text: "hello" });
  const answer = await story.answerTo(direct, root);
  expect(await story.isKept("Noted.")).toBe(true);
  story.slack.directMessages(ada).deleteMessage(answer.ts);
  await gone("Noted.");
  ada.sends({ channel: direct, thread: root, text: "and now?" });
  await story.answerTo(direct, root, 0);
  expect(story.asked().at(-1)?.map(textOf)).toEqual(["hello", "and now?"]);
});

test("deleting a channel deletes all its conversations", async () => {
  const ada = story.slack.person("Ada");
  const channel = story.slack.channel("secret", [ada], { isPrivate: true });
  for (const text of ["the first secret", "the second secret"]) {
    const root = ada.sends({ channel: channel.id, text, mentionBot: true });
    await story.answerTo(channel.id, root);
  }
  const direct = ada.sends({ channel: ada.directMessages, text: "between us" });
  await story.answerTo(ada.directMessages, direct);
  channel.delete();
  await gone("the first secret");
  await gone("the second secret");
  expect(await story.isKept("between us")).toBe(true);
});

test("/forget after a mention in a thread asks in direct messages, with a button that removes", async () => {
  const [ada, bo] = [story.slack.person("Ada"), story.slack.person("Bo")];
  const channel = story.slack.channel("general", [ada, bo]);
  const root = ada.sends({ channel: channel.id, text: "Ada's secret", mentionBot: true });
  await story.answerTo(channel.id, root);
  bo.sends({ channel: channel.id, thread: root, text: "Bo's words" });
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

test("/forget where:everywhere asks the caller alone; the result replaces the question", async () => {
  const ada = story.slack.person("Ada");
  const channel = story.slack.channel("general", [ada]);
  const root = ada.sends({ channel: channel.id, text: "a secret", mentionBot: true });
  await story.answerTo(channel.id, root);
  await ada.usesCommand("/forget", "where:everywhere", { channel: channel.id });
  const asked = await story.slack.waitFor("the question", () =>
    channel.transcript().find(({ buttons }) => buttons.some(({ label }) => label.startsWith("Remove"))),
  );
  expect(asked).toMatchObject({ onlyFor: "Ada", buttons: [{ label: "Remove 2 messages" }] });
  await ada.clicks(asked, "Remove 2 messages", { channel: channel.id });
  const done = await story.slack.waitFor("the end", () =>
    channel.transcript().find(({ text }) => text.startsWith("Removed in all your conversations")),
  );
  expect(done).toMatchObject({ ts: asked.ts, onlyFor: "Ada", buttons: [] });
  expect(done.text).toContain("2 messages (1 whole conversation)");
  await gone("a secret");
});

test("/reset works after a mention in a thread", async () => {
  const ada = story.slack.person("Ada");
  const channel = story.slack.channel("general", [ada]);
  const root = ada.sends({ channel: channel.id, text: "before the reset", mentionBot: true });
  await story.answerTo(channel.id, root);
  ada.sends({ channel: channel.id, thread: root, text: "/reset", mentionBot: true });
  expect((await story.answerTo(channel.id, root, 1)).text).toContain("Started over.");
  ada.sends({ channel: channel.id, thread: root, text: "anew" });
  await story.answerTo(channel.id, root, 2);
  expect(lastAsked()).toBe("anew");
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
