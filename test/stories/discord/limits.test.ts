import { PermissionFlagsBits } from "discord.js";
import { describe, expect, it } from "vitest";
import { fixture } from "../../fixtures/fixtures.ts";
import type { Person } from "../../simulators/discord/people.ts";
import type { ChannelHandle } from "../../simulators/discord/simulator.ts";
import { until } from "../../simulators/discord/until.ts";
import type { Story } from "../../e2e/discord/discord-story.ts";
import { createDiscordStage } from "./stage.ts";

const stage = createDiscordStage();

let story: Story;
let general: ChannelHandle;

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
  it("of 300 commands in a burst at most 20 ask the gateway, and the rest is told to the caller alone", async () => {
    story = await stage.begin();
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
