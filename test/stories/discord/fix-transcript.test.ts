import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { fixture } from "../../fixtures/fixtures.ts";
import { until } from "../../simulators/discord/until.ts";
import { startStory, type Story } from "../../e2e/discord/discord-story.ts";

describe("Fix transcript on Discord", () => {
  let story: Story;
  beforeEach(async () => {
    story = await startStory();
  });
  afterEach(() => story.close());

  async function spoken() {
    const ada = story.discord.person("Ada");
    const general = story.discord.channel("general");
    const direct = story.discord.directMessages(ada);
    const bytes = await fixture("voice.ogg");
    story.hears("the meeting moves to Tuesday");
    ada.sends({ channel: direct, files: [{ name: "voice-message.ogg", bytes, voiceSecs: 2 }] });
    const shown = await story.settled(direct);
    const answer = shown.find(({ buttons }) => buttons.some(({ label }) => label === "Fix transcript"))!;
    return { ada, direct, general, answer };
  }

  it("shows the words, takes better ones, and answers anew in the same message, also after a restart", async () => {
    const { ada, direct, answer } = await spoken();
    expect(answer.text).toContain("> Heard: the meeting moves to Tuesday");
    await story.restart();
    const use = ada.clicks("Fix transcript", answer, { channel: direct });
    await until(() => use.interaction.modal);
    expect(use.interaction.modal?.inputs.map(({ label, required }) => [label, required])).toEqual([
      ["voice-message.ogg", true],
    ]);
    ada.submitsModal(use, { "voice-message.ogg": "the meeting moves to Thursday" });
    await until(() => story.chats().length === 2);
    const [again] = await story.settled(direct);
    expect(again?.id).toBe(answer.id);
    expect(again?.text).toContain("> Heard: the meeting moves to Thursday");
    expect(again?.text).not.toContain("Tuesday");
    expect(story.said(1).join(" ")).toContain("Thursday");
    expect(direct.fromBot()).toHaveLength(1);
    expect(await story.isKept("moves to Tuesday")).toBe(false);
  });

  it("replaces the transcript that /transcribe shows, in the same message, also after a restart", async () => {
    const ada = story.discord.person("Ada");
    const general = story.discord.channel("general");
    story.hears("the meeting moves to Tuesday");
    const file = { name: "note.m4a", bytes: await fixture("voice.m4a") };
    ada.usesCommand("transcribe", {}, { channel: general, attachments: { file } });
    const shown = await story.settled(general);
    const answer = shown.find(({ buttons }) => buttons.some(({ label }) => label === "Fix transcript"))!;
    await story.restart();
    const use = ada.clicks("Fix transcript", answer, { channel: general });
    await until(() => use.interaction.modal);
    ada.submitsModal(use, { "note.m4a": "the meeting moves to Thursday" });
    const fixed = await until(() => general.fromBot().find(({ text }) => text.includes("Thursday")));
    expect(fixed.id).toBe(answer.id);
    expect(fixed.text).not.toContain("Tuesday");
    await story.settled(general);
    expect(general.fromBot()).toHaveLength(shown.length);
    expect(story.chats()).toHaveLength(0);
    expect(await story.isKept("moves to Tuesday")).toBe(false);
    expect(await story.isKept("moves to Thursday")).toBe(true);
  });

  it("is refused to a bystander, in private", async () => {
    const ada = story.discord.person("Ada");
    const bo = story.discord.person("Bo");
    const general = story.discord.channel("general");
    const bytes = await fixture("voice.ogg");
    ada.sends({ channel: general, text: "listen", mentionBot: true, files: [{ name: "note.ogg", bytes }] });
    const thread = await until(() => general.threads()[0]);
    const shown = await story.settled(thread);
    const answer = shown.find(({ buttons }) => buttons.some(({ label }) => label === "Fix transcript"))!;
    bo.clicks("Fix transcript", answer, { channel: thread });
    const told = await until(() => thread.fromBot()[shown.length]);
    expect(told).toMatchObject({ isEphemeral: true });
    expect(told.text).toBe("Only the person who asked, or a moderator, can do this.");
    expect(story.chats()).toHaveLength(1);
  });
});
