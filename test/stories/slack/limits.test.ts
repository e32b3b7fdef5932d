import { afterEach, describe, expect, it } from "vitest";
import { fixture } from "../../fixtures/fixtures.ts";
import type { Person } from "../../simulators/slack/person.ts";
import type { SimulatedChannel } from "../../simulators/slack/simulator.ts";
import { startSlackStory, type SlackStory, type StoryOptions } from "../../e2e/slack/slack-story.ts";

let story: SlackStory;
let ana: Person;
let mia: Person;
let channel: SimulatedChannel;

async function start(options: StoryOptions = {}): Promise<void> {
  story = await startSlackStory(options);
  ana = story.slack.person("Ana");
  mia = story.slack.person("Mia", { isAdmin: true });
  channel = story.slack.channel("ideas", [ana, mia]);
}
afterEach(async () => {
  expect(story.slack.badAcks).toEqual([]);
  expect(story.slack.lost).toEqual([]);
  await story.close();
});

/** Resolves to the last message that only this person sees, once it has these words. */
const readsAlone = async (person: Person, words: RegExp): Promise<string> => {
  const found = await story.slack.waitFor(`words for ${person.name}`, () =>
    channel.saidByBot().findLast(({ onlyFor, text }) => onlyFor === person.name && words.test(text)),
  );
  return found.text;
};
const mentions = (person: Person, text: string): string =>
  person.sends({ channel: channel.id, text, mentionBot: true });
/** What everybody sees of the bot at the channel's top level and in threads. */
const publicly = () => channel.transcript().filter(({ author, onlyFor }) => author === "Parley" && !onlyFor);

const prices = {
  MODEL_PRICES: JSON.stringify({
    "test/chat-model": { inputPerMillionUsd: 2000, outputPerMillionUsd: 8000 },
    "test/whisper": { perAudioMinuteUsd: 100 },
  }),
};

describe("TURNS_PERSON_MINUTE on Slack", () => {
  it("answers 20 mentions of a minute; the next is refused in private, with the time, and others go on", async () => {
    await start();
    // Slack takes about one message a second and channel.
    const asked = Array.from({ length: 20 }, (_, n) => {
      const { id } = story.slack.channel(`ideas-${n}`, [ana]);
      return { id, root: ana.sends({ channel: id, text: `question ${n}`, mentionBot: true }) };
    });
    await Promise.all(asked.map(({ id, root }) => story.answerTo(id, root)));
    mentions(ana, "one more");
    const told = await readsAlone(ana, /requests in a minute/);
    expect(told).toMatch(
      /You can send 20 requests in a minute, and have\. Try again in \d+ (second|minute)s?/,
    );
    await story.answerTo(channel.id, mentions(mia, "and me?"));
    expect(story.asked()).toHaveLength(21);
    expect(JSON.stringify(story.asked())).not.toContain("one more");
    expect(await story.isKept("one more")).toBe(false);
    expect(story.slack.deliveries.some(({ attempt }) => attempt > 0)).toBe(false);
  });

  it("counts a Retry for who clicks", async () => {
    let isUp = false;
    await start({
      settings: { TURNS_PERSON_MINUTE: "2" },
      chat: () => (isUp ? "here you are" : { status: 500, body: "{}" }),
    });
    const root = mentions(ana, "hello");
    const failed = await story.slack.waitFor(
      "a Retry button",
      () => channel.saidByBot(root).find(({ buttons }) => buttons.some(({ label }) => label === "Retry")),
      20_000,
    );
    const asked = story.asked().length;
    isUp = true;
    const other = mentions(ana, "the second");
    await story.answerTo(channel.id, other);
    await ana.clicks(failed, "Retry", { channel: channel.id });
    await readsAlone(ana, /You can send 2 requests in a minute/);
    expect(story.asked()).toHaveLength(asked + 1);
    await mia.clicks(failed, "Retry", { channel: channel.id });
    await story.slack.waitFor("the answer", () => story.asked().length === asked + 2);
    expect((await story.answerTo(channel.id, root)).body).toContain("here you are");
  });
});

describe("budgets on Slack", () => {
  it("of a person are told in private with the time; words and recordings count, and no thread is opened", async () => {
    await start({ settings: { ...prices, BUDGET_PERSON_DAY_USD: "0.001" } });
    const root = mentions(ana, "one");
    await story.answerTo(channel.id, root);
    const before = publicly().length;
    mentions(ana, "two");
    const told = await readsAlone(ana, /Nothing is left of your budget for a day \(\$0\.001\)/);
    expect(told).toMatch(/It is free again at midnight UTC, in \d/);
    await ana.usesCommand("/ask", "why?", { channel: channel.id });
    expect(publicly()).toHaveLength(before);

    const files = [{ name: "note.ogg", bytes: await fixture("voice.ogg"), mediaType: "audio/ogg" }];
    mia.sends({ channel: channel.id, text: "/transcribe", files, mentionBot: true });
    await story.slack.waitFor(
      "the transcript",
      () => publicly().some(({ text }) => text.includes("words that were spoken")),
      20_000,
    );
    mentions(mia, "and words?");
    await readsAlone(mia, /Nothing is left of your budget/);
    expect(story.asked()).toHaveLength(1);
  });

  it("of a channel are set with /settings, and others read in private that it is spent", async () => {
    await start({ settings: prices });
    await mia.usesCommand("/settings", "name:place-budget value:0 for:channel", { channel: channel.id });
    await readsAlone(mia, /Saved for this channel/);
    mentions(ana, "one");
    await readsAlone(ana, /Nothing is left of the budget of this place for a day \(\$0\.00\)/);
    expect(publicly()).toEqual([]);
    expect(story.asked()).toEqual([]);
  });
});

describe("MODELS_ALLOWED on Slack", () => {
  it("a model that is not allowed is refused with those that are, and /models does not list it", async () => {
    await start({ settings: { MODELS_ALLOWED: "test/chat-*, test/whisper", IMAGE_MODEL: "" } });
    await ana.usesCommand("/ask", "why? model:test/image-model", { channel: channel.id });
    const answer = await story.answerTo(channel.id, undefined);
    expect(answer.text).toContain("The model test/image-model is not allowed here. Allowed: test/chat-model");
    await ana.usesCommand("/models", "", { channel: channel.id });
    expect(await readsAlone(ana, /test\/whisper/)).not.toContain("test/image-model");
    expect(story.asked()).toEqual([]);
  });
});
