import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { until } from "../../simulators/discord/until.ts";
import { startStory, type Story } from "../../e2e/discord/discord-story.ts";

describe("Details on Discord", () => {
  let story: Story;
  beforeEach(async () => {
    story = await startStory({
      MODEL_PRICES: '{"story/chat": {"inputPerMillionUsd": 2, "outputPerMillionUsd": 8}}',
    });
  });
  afterEach(() => story.close());

  const buttonsOf = ({ buttons }: { readonly buttons: readonly { readonly label: string }[] }) =>
    buttons.map(({ label }) => label);

  it("of an answer in a thread are shown to whoever clicks, alone", async () => {
    const { discord } = story;
    const general = discord.channel("general");
    discord.person("Ada").sends({ channel: general, text: "Why?", mentionBot: true });
    const thread = await until(() => general.threads()[0]);
    const [answer] = await story.settled(thread);
    expect(buttonsOf(answer!)).toEqual(["Regenerate", "Other model", "Details"]);
    const use = discord.person("Bo").clicks("Details", answer!, { channel: thread });
    const [shown, told] = await story.settled(thread, 2);
    expect(use.state()).toBe("answered");
    expect(told).toMatchObject({ isEphemeral: true, buttons: [] });
    expect(told?.text).toContain("Model: `story/chat`");
    expect(told?.text).toContain("10 tokens in the prompt, 5 in the answer");
    expect(told?.text).toContain("Cost: $0.00006");
    expect(told?.text).toContain("Context: 1 message");
    expect(shown?.edits).toBe(answer?.edits);
    expect(buttonsOf(shown!)).toEqual(["Regenerate", "Other model", "Details"]);
  });

  it("of a private and of a long answer are there after a restart", async () => {
    const { discord } = story;
    const general = discord.channel("general");
    const ada = discord.person("Ada");
    story.answers("A long line of words. ".repeat(200));
    ada.usesCommand("ask", { prompt: "Why?", private: true }, { channel: general });
    const shown = await story.settled(general, 2);
    expect(shown.map(buttonsOf).filter((labels) => labels.length > 0)).toEqual([
      ["Regenerate", "Other model", "Details"],
    ]);
    await story.restart();
    const last = general.fromBot().at(-1)!;
    ada.clicks("Details", last, { channel: general });
    const told = await until(() => general.fromBot()[shown.length]);
    expect(told.text).toContain("Model: `story/chat`");
    expect(told.isEphemeral).toBe(true);
  });

  it("of a picture say who drew it", async () => {
    const { discord } = story;
    const general = discord.channel("general");
    const ada = discord.person("Ada");
    ada.usesCommand("imagine", { prompt: "a red house" }, { channel: general });
    const shown = await story.settled(general, 2);
    const answer = shown.find(({ buttons }) => buttons.length > 0);
    ada.clicks("Details", answer!, { channel: general });
    const told = await until(() => general.fromBot()[shown.length]);
    expect(told.text).toContain("Drawn by: `story/draw`");
  });

  it("are gone when the answer was erased", async () => {
    const { discord } = story;
    const ada = discord.person("Ada");
    const direct = discord.directMessages(ada);
    ada.sends({ channel: direct, text: "Why?" });
    const [answer] = await story.settled(direct);
    ada.usesCommand("forget", { where: "here", confirm: true }, { channel: direct });
    const shown = await story.settled(direct, 2);
    ada.clicks("Details", answer!, { channel: direct });
    const told = await until(() => direct.fromBot()[shown.length]);
    expect(told.text).toBe("This answer is no longer stored.");
  });
});
