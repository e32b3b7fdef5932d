import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { fixture } from "../../fixtures/fixtures.ts";
import type { Person } from "../../simulators/discord/people.ts";
import { until } from "../../simulators/discord/until.ts";
import { startStory, type Story } from "../../e2e/discord/discord-story.ts";

let story: Story;
let ada: Person;
beforeEach(async () => {
  story = await startStory();
  ada = story.discord.person("Ada");
});
afterEach(async () => {
  await story.close();
});

const gone = (text: string) =>
  vi.waitFor(async () => expect(await story.isKept(text), text).toBe(false), { timeout: 5000, interval: 20 });
const shows = (channel: Parameters<Story["settled"]>[0], text: string) =>
  until(() => channel.fromBot().some((message) => message.text.includes(text)), {
    timeoutMs: 20_000,
    explain: () => ({ shown: channel.fromBot(), lines: story.lines }),
  });

describe("edited questions on Discord", () => {
  it("are answered anew in the same message, older ones change only; a secret leaves the store's files", async () => {
    const direct = story.discord.directMessages(ada);
    story.answers("Good to see you.");
    const first = ada.sends({ channel: direct, text: "hello" });
    await story.settled(direct, 1);
    story.answers();
    const files = ["plans.png", "kept.png"].map(async (name) => ({
      name,
      bytes: await fixture(name === "plans.png" ? "picture.png" : "picture.jpg"),
    }));
    const secret = ada.sends({
      channel: direct,
      text: "the vault code is 7319",
      files: await Promise.all(files),
    });
    const [, answer] = await story.settled(direct, 2);
    expect(await story.isKept("vault code is 7319")).toBe(true);

    ada.removesFile(secret, "plans.png");
    ada.edits(secret, "the vault has a code");
    await shows(direct, "I heard: the vault has a code");
    await story.settled(direct, 2);
    expect(
      direct
        .fromBot()
        .map(({ id }) => id)
        .at(-1),
    ).toBe(answer?.id);
    for (const text of ["code is 7319", "plans.png"]) await gone(text);
    expect(await story.isKept("kept.png")).toBe(true);

    const asked = story.chats().length;
    ada.edits(first, "good morning");
    await gone("hello");
    ada.sends({ channel: direct, text: "what did I say?" });
    await story.settled(direct, 3);
    expect(story.chats()).toHaveLength(asked + 1);
    expect(story.said(asked).join("\n")).toContain("good morning");
    expect(story.said(asked).join("\n")).not.toMatch(/7319|hello/);
  });

  it("stop the answer that is under way; many edits in a row are one request", async () => {
    const direct = story.discord.directMessages(ada);
    story.setStalled(true);
    const question = ada.sends({ channel: direct, text: "one" });
    await shows(direct, "Half");
    ada.edits(question, "two");
    expect(await story.gateway.requests.at(-1)?.leftEarly).toBe(true);
    story.setStalled(false);
    for (const text of ["three", "four", "five"]) ada.edits(question, text);
    await shows(direct, "I heard: five");
    await story.settled(direct, 1);
    expect(direct.fromBot()).toHaveLength(1);
    expect(story.chats()).toHaveLength(2);
  });

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

  it("by which somebody adds the mention are questions", async () => {
    const channel = story.discord.channel("general");
    const question = ada.sends({ channel, text: "what is this?" });
    ada.edits(question, `<@${story.discord.botId}> what is this?`);
    const thread = await until(() => channel.threads().find(({ id }) => id === question.id));
    await story.settled(thread);
    await shows(thread, "I heard: what is this?");
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

  it("with a long answer before lose what is left of it", async () => {
    const direct = story.discord.directMessages(ada);
    story.answers("A long line of words.\n\n".repeat(300), "Short.");
    const question = ada.sends({ channel: direct, text: "one" });
    await story.settled(direct, 2);
    ada.edits(question, "two");
    await shows(direct, "Short.");
    await until(() => direct.fromBot().every(({ text }) => !text.includes("long line")));
  });
});
