import { PermissionFlagsBits } from "discord.js";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { Person } from "../../simulators/discord/people.ts";
import type { ChannelHandle } from "../../simulators/discord/simulator.ts";
import { until } from "../../simulators/discord/until.ts";
import { startStory, type Story } from "../../e2e/discord/discord-story.ts";

let story: Story;
let mia: Person;
let ada: Person;
let general: ChannelHandle;

beforeEach(async () => {
  story = await startStory();
  mia = story.discord.person("Mia");
  story.discord.give(mia, story.discord.role("managers", PermissionFlagsBits.ManageGuild));
  ada = story.discord.person("Ada");
  general = story.discord.channel("general");
});
afterEach(async () => {
  await story.close();
});

/** Uses `/settings` and resolves to the private answer. */
async function settings(person: Person, options: Record<string, string>, channel = general) {
  const before = channel.fromBot().length;
  person.usesCommand("settings", options, { channel });
  const shown = await story.settled(channel, before + 1);
  const answer = shown.at(-1)!;
  expect(answer.isEphemeral).toBe(true);
  return answer;
}

/** Mentions the bot and resolves to the thread with the answer. */
async function mention(person: Person, text: string): Promise<ChannelHandle> {
  const { id } = person.sends({ channel: general, text, mentionBot: true });
  const thread = await until(() => general.threads().find((one) => one.id === id), {
    explain: () => story.lines,
  });
  await story.settled(thread);
  return thread;
}

const lastModel = () => lastRequest().model;
function lastRequest() {
  const chats = story.gateway.requests.filter(({ path }) => path === "/v1/chat/completions");
  return JSON.parse(chats.at(-1)!.body.toString()) as {
    model: string;
    temperature: number;
    messages: { content: string }[];
  };
}

describe("/settings on Discord", () => {
  it("a manager's choice is in force for a person in the channel; a person's own and a thread's win over it", async () => {
    const saved = await settings(mia, { name: "chat-model", value: "story/chat-large", for: "channel" });
    expect(saved.text).toContain("Saved for this channel");
    const thread = await mention(ada, "one");
    expect(lastModel()).toBe("story/chat-large");
    expect((await settings(ada, {})).text).toContain("`chat-model`: `story/chat-large` (from this channel)");

    const refused = await settings(ada, { name: "chat-model", value: "story/chat", for: "channel" });
    expect(refused.text).toContain("Only those who manage this server, and Parley's admins");

    await settings(ada, { name: "chat-model", value: "story/draw", for: "me" });
    await mention(ada, "two");
    expect(lastModel()).toBe("story/draw");
    await mention(mia, "three");
    expect(lastModel()).toBe("story/chat-large");

    await settings(ada, { name: "chat-model", value: "story/chat", for: "here" }, thread);
    ada.sends({ channel: thread, text: "four" });
    await until(() => story.chats().length === 4);
    expect(lastModel()).toBe("story/chat");
    await settings(ada, { name: "chat-model", value: "default", for: "me" });
    await mention(ada, "five");
    expect(lastModel()).toBe("story/chat-large");
  });

  it("calm: one post, complete; in the channel itself: one conversation; every message; in a language", async () => {
    await settings(mia, { name: "calm", value: "on", for: "server" });
    await settings(mia, { name: "answer-to", value: "every-message", for: "channel" });
    await settings(mia, { name: "answer-in", value: "channel", for: "channel" });
    await settings(mia, { name: "language", value: "Deutsch", for: "channel" });
    const before = general.fromBot().length;
    story.answers("Guten Tag");
    ada.sends({ channel: general, text: "good day, everybody" });
    const shown = await story.settled(general, before + 1);
    expect(shown.at(-1)).toMatchObject({ text: "Guten Tag", edits: 0 });
    expect(lastRequest().messages[0]?.content).toContain("Always answer in German");
    ada.sends({ channel: general, text: "what did I say?" });
    await story.settled(general, before + 2);
    expect(story.said(1)).toEqual(["good day, everybody", "Guten Tag", "what did I say?"]);
    expect(general.threads()).toEqual([]);
  });

  it("who may use it: others are refused in private, and the gateway gets nothing", async () => {
    await settings(mia, { name: "who-may-use", value: `discord:user:${mia.id}`, for: "channel" });
    const before = general.fromBot().length;
    ada.usesCommand("ask", { prompt: "why?" }, { channel: general });
    const shown = await story.settled(general, before + 1);
    expect(shown.at(-1)).toMatchObject({ isEphemeral: true });
    expect(shown.at(-1)?.text).toContain("only some people may use Parley");
    expect(story.chats()).toEqual([]);
  });

  it("as a form: a manager opens it, corrects what is wrong with all that was typed, and saves", async () => {
    const answer = await settings(mia, {});
    const opened = mia.selects("This channel: answers", answer, { channel: general });
    const modal = await until(() => opened.interaction.modal);
    expect(modal.inputs.map(({ label, kind }) => [label, kind])).toEqual([
      ["System prompt", "paragraph"],
      ["Language", "short-text"],
      ["Answer length", "select"],
      ["Temperature", "short-text"],
      ["Calm", "select"],
    ]);
    mia.submitsModal(opened, {
      Temperature: "abc",
      Language: "Klingonese",
      "Answer length": "Long: in detail",
    });
    const [, wrong] = await story.settled(general, 2);
    expect(wrong).toMatchObject({ isEphemeral: true });
    expect(wrong?.text).toContain("Nothing was saved.");
    expect(wrong?.text).toContain("Temperature is a number from 0 to 2.");
    expect(wrong?.text).toContain("Language is automatic or a language, such as German, Deutsch or de.");

    const again = mia.clicks("Correct it", wrong!, { channel: general });
    const filled = await until(() => again.interaction.modal);
    expect(filled.inputs.map(({ initial }) => initial)).toEqual([
      "",
      "Klingonese",
      "Long: in detail",
      "abc",
      "Not set: off (default)",
    ]);
    mia.submitsModal(again, { Temperature: "0,5", Language: "Dutch" });
    const [, , saved] = await story.settled(general, 3);
    expect(saved?.text).toContain("Saved for this channel.");
    expect(saved?.text).toContain("Temperature: 0.5 (from this channel)");
    await mention(ada, "hello");
    expect(lastRequest()).toMatchObject({ temperature: 0.5 });
    expect((await settings(mia, { name: "answer-length" })).text).toContain("`long` (from this channel)");
  });

  it("a member is offered no forms of places", async () => {
    const answer = await settings(ada, {});
    expect(() => ada.selects("This channel: answers", answer, { channel: general })).toThrow("no choice");
    const opened = ada.selects("For me: models", answer, { channel: general });
    const modal = await until(() => opened.interaction.modal);
    ada.submitsModal(opened, { "Chat model": "story/chat-large" });
    await story.settled(general, 2);
    expect(modal.title).toBe("Models");
    await mention(ada, "hello");
    expect(lastModel()).toBe("story/chat-large");
  });
});
