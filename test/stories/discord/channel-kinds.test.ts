import { expect, it } from "vitest";
import type { Person } from "../../simulators/discord/people.ts";
import { until } from "../../simulators/discord/until.ts";
import type { Story } from "../../e2e/discord/discord-story.ts";
import { createDiscordStage } from "./stage.ts";

const stage = createDiscordStage();

let story: Story;
let ada: Person;

async function start(simulator: Parameters<typeof stage.start>[1] = {}): Promise<Story> {
  story = await stage.start({}, simulator);
  ada = story.discord.person("Ada");
  return story;
}

it.each(["voice", "stage"] as const)(
  "in a %s channel a chain of replies is one conversation",
  async (type) => {
    const { discord } = await start();
    const channel = discord.channelOfType(type, "talk");
    const long = Array.from({ length: 60 }, (_, n) => `Paragraph ${n}. ${"word ".repeat(10)}`).join("\n\n");
    story.answers(long, "Two.", "Three.", "Four.");
    ada.sends({ channel, text: "one", mentionBot: true });
    const pieces = await story.settled(channel, 2);
    // This replies to a later piece of the answer.
    ada.sends({ channel, text: "two", replyTo: pieces.at(-1)! });
    const [two] = (await story.settled(channel, pieces.length + 1)).slice(-1);
    ada.sends({ channel, text: "three", replyTo: two! });
    const [three] = (await story.settled(channel, pieces.length + 2)).slice(-1);
    await story.restart();
    ada.sends({ channel, text: "four", replyTo: three! });
    await story.settled(channel, pieces.length + 3);
    expect(story.said(3)).toEqual(["one", long, "two", "Two.", "three", "Three.", "four"]);
    expect(channel.threads()).toEqual([]);
  },
);

it.each(["forum", "media"] as const)(
  "in a post of a %s channel a mention is answered in the post",
  async (type) => {
    const { discord } = await start();
    const channel = discord.channelOfType(type, "questions");
    const post = discord.thread(channel, ada);
    ada.sends({ channel: post, text: "Why is it slow?", mentionBot: true });
    expect(await story.settled(post)).toMatchObject([
      { text: expect.stringMatching(/^I heard: [^]*Why is it slow\?$/) },
    ]);
    ada.sends({ channel: post, text: "between people" });
    ada.sends({ channel: post, text: "And now?", mentionBot: true });
    await story.settled(post, 2);
    const question = "> Title of the post:\n> thread\n\nWhy is it slow?";
    expect(story.said(1).slice(0, 2)).toEqual([question, `I heard: ${question}`]);
    const use = ada.usesCommand("chat", { message: "Hello" }, { channel });
    await until(() => use.state() === "answered" && !use.interaction.isPlaceholderOpen);
    await until(() => channel.fromBot().some(({ text }) => text.includes("open one, and mention me in it")), {
      explain: () => channel.fromBot(),
    });
  },
);

it("the title of a forum post is part of its question, also when its first message is edited", async () => {
  const { discord } = await start();
  const forum = discord.channelOfType("forum", "questions");
  const post = discord.thread(forum, ada, { title: "Login fails on Tuesdays" });
  const first = ada.sends({ channel: post, text: "Why?", mentionBot: true });
  await story.settled(post);
  const question = "> Title of the post:\n> Login fails on Tuesdays\n\n";
  expect(story.said(0)).toEqual([`${question}Why?`]);
  ada.edits(first, `<@${discord.botId}> Since when?`);
  await until(() => story.chats().length === 2);
  expect(story.said(1)).toEqual([`${question}Since when?`]);
});

it("a command on the first message of a forum post has its title too", async () => {
  const { discord } = await start();
  const post = discord.thread(discord.channelOfType("forum", "questions"), ada, { title: "Why no login?" });
  const first = ada.sends({ channel: post, text: "See the title." });
  const use = ada.usesMessageCommand("Ask about this", first, { channel: post });
  const { inputs } = await until(() => use.interaction.modal);
  ada.submitsModal(use, { [inputs[0]!.label]: "What does it say?" });
  await story.settled(post);
  expect(story.said(0).at(-1)).toContain("> Title of the post:\n");
  expect(story.said(0).at(-1)).toContain("> Why no login?");
});

it("in an announcement channel a mention and /chat open threads of its type", async () => {
  const { discord } = await start();
  const news = discord.channelOfType("announcement", "news");
  ada.sends({ channel: news, text: "What is new?", mentionBot: true });
  const thread = await until(() => news.threads()[0], { explain: () => story.lines });
  expect(await story.settled(thread)).toMatchObject([{ text: "I heard: What is new?" }]);
  ada.usesCommand("chat", { message: "Hello" }, { channel: news });
  const second = await until(() => news.threads()[1], { explain: () => story.lines });
  expect(await story.settled(second)).toMatchObject([{ text: "I heard: Hello" }]);
  expect(news.threads().map(({ id }) => discord.world.channels.get(id)?.type)).toEqual([10, 10]);
});

it("a thread is hidden after the time that its channel names, and the caller of /chat is in it", async () => {
  const { discord } = await start();
  const general = discord.channel("general");
  general.setArchiveMinutes(10_080);
  ada.sends({ channel: general, text: "one", mentionBot: true });
  await story.settled(await until(() => general.threads()[0]));
  ada.usesCommand("chat", {}, { channel: general });
  const thread = await until(() => general.threads()[1]);
  await until(() => thread.members().includes("Ada"), { explain: () => story.lines });
  expect(general.threads().map(({ id }) => discord.world.channels.get(id)?.archiveMinutes)).toEqual([
    10_080, 10_080,
  ]);
});

it("where a server has as many active threads as Discord allows, the answer comes in the channel and says so", async () => {
  const { discord } = await start({ maxActiveThreads: 1 });
  const general = discord.channel("general");
  discord.thread(general, ada);
  ada.sends({ channel: general, text: "one", mentionBot: true });
  const [one] = await story.settled(general);
  expect(one?.text).toMatch(/^I heard: one\n-# .*missing: .*as many active ones as Discord allows/);
  ada.sends({ channel: general, text: "two", replyTo: one! });
  await story.settled(general, 2);
  expect(story.said(1)).toEqual(["one", "I heard: one", "two"]);
  ada.usesCommand("chat", { message: "Hello" }, { channel: general });
  await until(
    () => general.fromBot().some(({ text }) => text.includes("as many active ones as Discord allows")),
    {
      explain: () => general.fromBot(),
    },
  );
});
