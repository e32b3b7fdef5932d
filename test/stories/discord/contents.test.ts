import { expect, it } from "vitest";
import { fixture } from "../../fixtures/fixtures.ts";
import { until } from "../../simulators/discord/until.ts";
import type { Story } from "../../e2e/discord/discord-story.ts";
import { createDiscordStage } from "./stage.ts";

const stage = createDiscordStage();

let story: Story;

it("a poll, an embed, a sticker and a forwarded message reach the model as what they are", async () => {
  story = await stage.begin();
  const { discord } = story;
  const ada = discord.person("Ada");
  const ben = discord.person("Ben");
  const direct = discord.directMessages(ada);
  const forwards = ben.sends({
    channel: discord.channel("general"),
    text: "the plan",
    extras: { embeds: [{ type: "rich", title: "Oslo", description: "Three days" }] },
  });
  const shares = [
    { extras: { poll: { question: "Tea?", answers: ["Yes", "No"] } }, says: ["Poll:", "Tea?", "2. No"] },
    { extras: { stickers: ["Wave"] }, says: ["Sticker:", "Wave"] },
    { text: "and?", extras: { forwards }, says: ["and?", "Forwarded message:", "the plan", "Three days"] },
    {
      extras: { components: [{ type: 10, id: 1, content: "Deployed version 3" }] },
      says: ["Components:", "Deployed version 3"],
    },
  ];
  for (const [index, { says, ...message }] of shares.entries()) {
    ada.sends({ channel: direct, ...message });
    await story.settled(direct, index + 1);
    for (const words of says) expect(story.said(index).at(-1)).toContain(words);
  }
});

it("a picture's alt text reaches the model with the picture", async () => {
  story = await stage.begin();
  const { discord } = story;
  const ada = discord.person("Ada");
  const direct = discord.directMessages(ada);
  const bytes = await fixture("picture.jpg");
  ada.sends({ channel: direct, files: [{ name: "house.jpg", bytes, altText: "A red house by the sea" }] });
  await story.settled(direct);
  expect(story.said(0).at(-1)).toContain('[picture house.jpg: "A red house by the sea"]');
});

it("without the Message Content Intent a thread needs mentions: that is said once, and no turn is made of silence", async () => {
  story = await stage.start({}, { messageContentAllowed: false });
  const { discord } = story;
  const ada = discord.person("Ada");
  const general = discord.channel("general");
  ada.sends({ channel: general, text: "begin", mentionBot: true });
  const thread = await until(() => general.threads()[0]);
  await story.settled(thread, 1);
  ada.sends({ channel: thread, text: "one" });
  await until(() => thread.fromBot().length === 2);
  ada.sends({ channel: thread, text: "two" });
  await story.restart();
  ada.sends({ channel: thread, text: "three" });
  ada.sends({ channel: thread, text: "four", mentionBot: true });
  const shown = await story.settled(thread, 3);
  expect(shown.map(({ text }) => text)).toEqual([
    "I heard: begin",
    expect.stringContaining("Message Content Intent"),
    "I heard: four",
  ]);
  expect(story.said(1)).toEqual(["begin", "I heard: begin", "four"]);
});
