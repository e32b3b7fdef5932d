import { PermissionFlagsBits } from "discord.js";
import { afterEach, describe, expect, it } from "vitest";
import { fixture } from "../../fixtures/fixtures.ts";
import type { Person } from "../../simulators/discord/people.ts";
import type { ChannelHandle } from "../../simulators/discord/simulator.ts";
import { until } from "../../simulators/discord/until.ts";
import { startStory, type Story } from "../../e2e/discord/discord-story.ts";

let story: Story;
let general: ChannelHandle;
afterEach(() => story.close());

/** Mentions the bot in the channel and resolves to the thread with the answer. */
async function mention(person: Person, text: string): Promise<ChannelHandle> {
  const { id } = person.sends({ channel: general, text, mentionBot: true });
  const thread = await until(() => general.threads().find((one) => one.id === id), {
    explain: () => story.lines,
  });
  await story.settled(thread);
  return thread;
}

/** Mentions the bot and resolves to what the person reads in direct messages, when they have `count` of them. */
async function refused(person: Person, text: string, count = 1): Promise<string> {
  person.sends({ channel: general, text, mentionBot: true });
  const direct = story.discord.directMessages(person);
  const told = await until(() => direct.fromBot().length >= count && direct.fromBot(), {
    explain: () => ({ lines: story.lines, shown: general.fromBot() }),
  });
  return told.at(-1)?.text ?? "";
}

/** Uses a command and resolves to what only the person sees of it. */
async function usesPrivately(
  person: Person,
  name: string,
  options: Readonly<Record<string, string | number>>,
): Promise<string> {
  const before = general.fromBot().length;
  person.usesCommand(name, options, { channel: general });
  const shown = await story.settled(general, before + 1);
  expect(shown.at(-1)).toMatchObject({ isEphemeral: true });
  return shown.at(-1)?.text ?? "";
}

const requestsTo = (path: string) => story.gateway.requests.filter((request) => request.path === path);
const prices = {
  MODEL_PRICES: JSON.stringify({
    "story/chat": { inputPerMillionUsd: 2000, outputPerMillionUsd: 8000 },
    "story/draw": { perImageUsd: 0.05 },
    "story/whisper": { perAudioMinuteUsd: 100 },
  }),
};

describe("TURNS_PERSON_MINUTE on Discord", () => {
  it("answers 20 mentions of a minute; the next is refused in private, with the time, and others go on", async () => {
    story = await startStory();
    general = story.discord.channel("general");
    const ada = story.discord.person("Ada");
    for (let n = 1; n <= 20; n++) ada.sends({ channel: general, text: `question ${n}`, mentionBot: true });
    const told = await refused(ada, "one more");
    expect(told).toMatch(
      /You can send 20 requests in a minute, and have\. Try again in \d+ (second|minute)s?/,
    );
    story.discord.person("Bo").sends({ channel: general, text: "and me?", mentionBot: true });
    // So many threads at once are too many for Discord: some answers are in the channel.
    const answers = () => [general, ...general.threads()].flatMap((channel) => channel.fromBot());
    await until(() => answers().length === 21, { timeoutMs: 30_000 });
    await Promise.all(general.threads().map((thread) => story.settled(thread)));
    const asked = general.transcript().filter(({ author }) => author !== "parley");
    const answered = asked.filter(
      ({ id, hasThread }) => hasThread || general.fromBot().some(({ replyTo }) => replyTo === id),
    );
    expect(answered).toHaveLength(21);
    expect(story.chats()).toHaveLength(21);
    expect(JSON.stringify(story.chats())).not.toContain("one more");
    expect(await story.isKept("one more")).toBe(false);
  });

  it("of 300 commands in a burst at most 20 ask the gateway, and the rest is told to the caller alone", async () => {
    story = await startStory();
    general = story.discord.channel("general");
    const ada = story.discord.person("Ada");
    const uses = Array.from({ length: 300 }, (_, n) =>
      ada.usesCommand("ask", { prompt: `question ${n}` }, { channel: general }),
    );
    // On a loaded machine some are acknowledged too late for Discord: then nobody reads anything of them.
    const isOver = (state: string): boolean => state === "answered" || state === "failed";
    await until(() => uses.every((use) => isOver(use.state())), {
      timeoutMs: 40_000,
      explain: () => uses.map((use) => use.state()).join(" "),
    });
    await story.settled(general, 20);
    expect(story.chats()).toHaveLength(20);
    const shown = general.fromBot();
    expect(shown.filter(({ isEphemeral }) => !isEphemeral).length).toBeLessThanOrEqual(20);
    const words = /You can send 20 requests in a minute|requests that are not answered yet/;
    expect(shown.filter(({ text, isEphemeral }) => isEphemeral && !words.test(text))).toEqual([]);
  });
});

describe("budgets on Discord", () => {
  it("of a person and of all are told in private with the time; chats, pictures and words count", async () => {
    story = await startStory({ ...prices, BUDGET_PERSON_DAY_USD: "0.05", BUDGET_DAY_USD: "0.15" });
    const { discord } = story;
    general = discord.channel("general");
    const ada = discord.person("Ada");
    const bo = discord.person("Bo");
    const cy = discord.person("Cy");
    await mention(ada, "one");
    const told = await refused(ada, "two");
    expect(told).toContain("Nothing is left of your budget for a day ($0.05).");
    expect(told).toMatch(/It is free again at midnight UTC, in \d/);
    expect(general.threads()).toHaveLength(1);
    expect(general.fromBot()).toEqual([]);
    expect(await usesPrivately(ada, "usage", {})).toContain("**$0** left of $0.05");
    expect(await usesPrivately(ada, "imagine", { prompt: "a fox" })).toContain(
      "Nothing is left of your budget",
    );

    bo.usesCommand("imagine", { prompt: "a fox" }, { channel: general });
    await until(() => requestsTo("/v1/images/generations").length === 1);
    await story.settled(general, 4);
    expect(await refused(bo, "and words?")).toContain("Nothing is left of your budget");

    const file = { name: "note.m4a", bytes: await fixture("voice.m4a") };
    cy.usesCommand("transcribe", {}, { channel: general, attachments: { file } });
    await until(() => requestsTo("/v1/audio/transcriptions").length === 1);
    await story.settled(general, 5);
    expect(await refused(cy, "and words?")).toContain("Nothing is left of your budget");
    expect(await refused(discord.person("Dee"), "and I?")).toContain(
      "Nothing is left of the budget of all of Parley for a day ($0.15).",
    );
    expect(story.chats()).toHaveLength(1);
    expect(general.threads()).toHaveLength(1);
  });

  it("of a place is set with /settings, and counts there until it is changed", async () => {
    story = await startStory(prices);
    const { discord } = story;
    general = discord.channel("general");
    const ada = discord.person("Ada");
    const mia = discord.person("Mia");
    discord.give(mia, discord.role("managers", PermissionFlagsBits.ManageGuild));
    await mention(ada, "one");
    const budget = { name: "place-budget", for: "channel" };
    expect(await usesPrivately(ada, "settings", { ...budget, value: "9" })).toContain(
      "Only those who manage",
    );
    expect(await usesPrivately(mia, "settings", { ...budget, value: "abc" })).toContain("US dollars");
    await usesPrivately(mia, "settings", { ...budget, value: "0.05" });
    // What was spent before it was set counts.
    expect(await refused(ada, "two")).toContain(
      "Nothing is left of the budget of this place for a day ($0.05).",
    );
    await usesPrivately(mia, "settings", { ...budget, value: "5" });
    await mention(ada, "three");
    expect(story.chats()).toHaveLength(2);
  });
});

describe("MODELS_ALLOWED on Discord", () => {
  it("holds for choice, completion and /models; a picture goes to an allowed model that sees, which is said", async () => {
    const of = (id: string, ...input: string[]) => ({
      id,
      architecture: { input_modalities: input, output_modalities: ["text"] },
    });
    story = await startStory({ MODELS_ALLOWED: "story/chat, story/eyes, story/draw, story/whisper" }, {}, [
      of("story/chat", "text"),
      of("story/chat-large", "text", "image"),
      of("story/eyes", "text", "image"),
      { id: "story/draw" },
      { id: "story/whisper" },
    ]);
    const { discord } = story;
    general = discord.channel("general");
    const ada = discord.person("Ada");
    const refusal = await usesPrivately(ada, "ask", { prompt: "why?", model: "story/chat-large" });
    expect(refusal).toContain("The model story/chat-large is not allowed here. Allowed: story/chat");
    const typed = ada.types("ask", "model", "chat", { channel: general });
    const choices = await until(() => typed.interaction.choices);
    expect(JSON.stringify(choices)).toContain("story/chat");
    expect(JSON.stringify(choices)).not.toContain("story/chat-large");
    const listed = await usesPrivately(ada, "models", {});
    expect(listed).toContain("story/eyes");
    expect(listed).not.toContain("story/chat-large");

    const files = [{ name: "picture.png", bytes: await fixture("picture.png") }];
    const { id } = ada.sends({ channel: general, text: "what is it?", files, mentionBot: true });
    const thread = await until(() => general.threads().find((one) => one.id === id));
    const [answer] = await story.settled(thread);
    expect(answer?.text).toContain("The model story/chat reads only text, so story/eyes answered");
    const [request] = requestsTo("/v1/chat/completions");
    expect(JSON.parse(request?.body.toString() ?? "{}")).toMatchObject({ model: "story/eyes" });
    expect(story.chats()).toHaveLength(1);
  });
});
