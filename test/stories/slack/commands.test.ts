import { describe, expect, test } from "vitest";
import { fixture } from "../../fixtures/fixtures.ts";
import type { SeenMessage } from "../../simulators/slack/transcript.ts";
import { textOf, type SlackStory, type StoryOptions } from "../../e2e/slack/slack-story.ts";
import { createSlackStage } from "./stage.ts";

const stage = createSlackStage();

let story: SlackStory;

async function begin(options: StoryOptions = {}) {
  story = await stage.start(options);
  const ana = story.slack.person("Ana");
  return { ana, channel: story.slack.channel("ideas", [ana]), slack: story.slack };
}

const json = { "content-type": "application/json" };

async function drawn(): Promise<string> {
  const picture = Buffer.from(await fixture("picture.png")).toString("base64");
  return JSON.stringify({ created: 1, data: [{ url: `data:image/png;base64,${picture}` }] });
}

describe("slash commands", () => {
  test("/ask is answered in the channel, with the question and who asked it above the answer", async () => {
    const { ana, channel } = await begin({ chat: () => "forty-two" });
    await ana.usesCommand("/ask", "what is the answer?", { channel: channel.id });
    const answer = await story.answerTo(channel.id, undefined);
    expect(answer.text).toMatch(/^Ana wrote:\n> what is the answer\?\n+forty-two/);
    expect(answer.onlyFor).toBeUndefined();
    await ana.usesCommand("/ask", "and here?", { channel: ana.directMessages });
    const direct = await story.answerTo(ana.directMessages, undefined);
    expect(direct.text).toMatch(/^> and here\?\n+forty-two/);
    expect(story.asked()[0]?.map(textOf)).toEqual(["what is the answer?"]);
  });

  test("a wrong option is shown to the caller alone, and nothing is requested", async () => {
    const { ana, channel } = await begin();
    await ana.usesCommand("/imagine", "a fox count:40", { channel: channel.id });
    expect(channel.transcript()[0]).toMatchObject({ onlyFor: "Ana" });
    expect(channel.transcript()[0]?.text).toMatch(/count/);
    expect(story.requestsTo("/v1/images/generations")).toEqual([]);
  });

  test("in a channel without the bot the answer comes through the command, for all to see", async () => {
    const { ana, slack } = await begin({ chat: () => "Forty-two." });
    for (const isPrivate of [false, true]) {
      const elsewhere = slack.channel("elsewhere", [ana], { withBot: false, isPrivate });
      await ana.usesCommand("/ask", "hello?", { channel: elsewhere.id });
      await slack.waitFor("the answer", () => elsewhere.transcript().some(({ text }) => /Forty/.test(text)));
      await slack.waitFor("the end", () => story.parley.assistant.pending() === 0);
      expect(elsewhere.transcript().map(({ onlyFor, body, text }) => [onlyFor, body || text])).toEqual([
        ["Ana", expect.stringContaining("Working on it")],
        [undefined, "Ana wrote:\n> hello?\n\nForty-two."],
      ]);
    }
  });

  test("of pictures in a channel without the bot: they are in the caller's direct messages, and /chat asks to invite it", async () => {
    const body = await drawn();
    const { ana, slack } = await begin({ images: () => ({ body, headers: json }) });
    const elsewhere = slack.channel("elsewhere", [ana], { withBot: false });
    await ana.usesCommand("/imagine", "a red fox", { channel: elsewhere.id });
    await slack.waitFor("the end", () => elsewhere.transcript().some(({ text }) => /a red fox/.test(text)));
    await slack.waitFor("the picture", () =>
      slack.transcriptOf(ana.directMessages).some(({ files }) => files.length === 1),
    );
    expect(elsewhere.transcript().at(-1)).toMatchObject({
      onlyFor: undefined,
      text: expect.stringMatching(/direct messages with the person who asked.*\/invite/),
    });
    await ana.usesCommand("/chat", "let us begin", { channel: elsewhere.id });
    await slack.waitFor("the request", () =>
      elsewhere.transcript().some(({ onlyFor, text }) => onlyFor === "Ana" && /cannot.*\/invite/.test(text)),
    );
    await slack.waitFor("the end", () => story.parley.assistant.pending() === 0);
    expect(elsewhere.transcript().filter(({ onlyFor }) => onlyFor === undefined)).toHaveLength(1);
  });
});

describe("private commands after a mention", () => {
  const markdownOf = (messages: readonly SeenMessage[]) =>
    messages.flatMap(({ files }) => files).find(({ name }) => name === "conversation.md");

  test("/export in a thread is answered in direct messages; others see nothing of it", async () => {
    const { ana, channel, slack } = await begin({ chat: () => "Noted." });
    const bo = slack.person("Bo");
    const shared = slack.channel("shared", [ana, bo]);
    const root = ana.sends({ channel: shared.id, text: "our secret plan", mentionBot: true });
    await story.answerTo(shared.id, root);
    const before = shared.transcript();
    const command = ana.sends({ channel: shared.id, thread: root, text: "/export", mentionBot: true });

    const direct = slack.directMessages(ana);
    const markdown = await slack.waitFor("the files", () => markdownOf(direct.saidByBot()));
    expect(Buffer.from(markdown.bytes).toString()).toContain("our secret plan");
    await slack.waitFor("the text", () =>
      direct.saidByBot().find(({ text }) => text.includes("Everything that is kept")),
    );
    await slack.waitFor("the end", () => story.parley.assistant.pending() === 0);

    const added = shared.transcript().slice(before.length);
    expect(added.filter(({ onlyFor }) => onlyFor === undefined).map(({ ts }) => ts)).toEqual([command]);
    expect(added.filter(({ onlyFor }) => onlyFor !== undefined)).toMatchObject([
      { onlyFor: "Ana", thread: root, text: expect.stringMatching(/direct messages/), files: [] },
    ]);
    expect(slack.directMessages(bo).saidByBot()).toEqual([]);
    expect(channel.saidByBot()).toEqual([]);
  });

  test("/export in direct messages is answered in its thread", async () => {
    const { ana, slack } = await begin({ chat: () => "Noted." });
    const root = ana.sends({ channel: ana.directMessages, text: "note to self" });
    await story.answerTo(ana.directMessages, root);
    ana.sends({ channel: ana.directMessages, thread: root, text: "/export" });
    const answers = () => slack.directMessages(ana).saidByBot(root);
    await slack.waitFor("the files", () => markdownOf(answers()));
    await slack.waitFor("the text", () =>
      answers().find(({ text }) => text.includes("Everything that is kept")),
    );
    expect(slack.directMessages(ana).saidByBot()).toEqual(answers());
  });
});

test("/help explains Slack, with names of admins", async () => {
  story = await stage.start({
    settings: (slack) => ({ ADMINS: `slack:user:${slack.person("Root").id}` }),
  });
  const { slack } = story;
  const ana = slack.person("Ana");
  const channel = slack.channel("ideas", [ana]);
  await ana.usesCommand("/help", "", { channel: channel.id });
  const help = await slack.waitFor("the help", () =>
    channel.transcript().find(({ text }) => text.includes("How to talk to me")),
  );
  expect(help.onlyFor).toBe("Ana");
  expect(help.text).toContain("Slack has no slash commands in threads");
  expect(help.text).toContain("Root.");
});
