import { PermissionFlagsBits } from "discord.js";
import { beforeEach, describe, expect, it } from "vitest";
import type { Person } from "../../simulators/discord/people.ts";
import type { ChannelHandle } from "../../simulators/discord/simulator.ts";
import { until } from "../../simulators/discord/until.ts";
import type { Story } from "../../e2e/discord/discord-story.ts";
import { createDiscordStage } from "./stage.ts";

const stage = createDiscordStage();

let story: Story;
let mia: Person;
let ada: Person;
let general: ChannelHandle;

beforeEach(async () => {
  story = await stage.begin();
  mia = story.discord.person("Mia");
  story.discord.give(mia, story.discord.role("managers", PermissionFlagsBits.ManageGuild));
  ada = story.discord.person("Ada");
  general = story.discord.channel("general");
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

function lastRequest() {
  const chats = story.gateway.requests.filter(({ path }) => path === "/v1/chat/completions");
  return JSON.parse(chats.at(-1)!.body.toString()) as {
    model: string;
    temperature: number;
    messages: { content: string }[];
  };
}

describe("/settings on Discord", () => {
  it("as a form: a manager opens it, reads what is wrong, opens it again with what is in force, and saves", async () => {
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
      "",
      "Not set: normal (default)",
      "",
      "Not set: off (default)",
    ]);
    mia.submitsModal(again, {
      Temperature: "0,5",
      Language: "Dutch",
      "Answer length": "Long: in detail",
    });
    const [, , saved] = await story.settled(general, 3);
    expect(saved?.text).toContain("Saved for this channel.");
    expect(saved?.text).toContain("Temperature: 0.5 (from this channel)");
    await mention(ada, "hello");
    expect(lastRequest()).toMatchObject({ temperature: 0.5 });
    expect((await settings(mia, { name: "answer-length" })).text).toContain("`long` (from this channel)");
  });
});
