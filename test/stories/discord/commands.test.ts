import { beforeEach, describe, expect, it } from "vitest";
import { fixture } from "../../fixtures/fixtures.ts";
import { allCommands } from "../../support/commands.ts";
import { until } from "../../simulators/discord/until.ts";
import type { Story } from "../../e2e/discord/discord-story.ts";
import { createDiscordStage } from "./stage.ts";

const stage = createDiscordStage();

describe("commands on Discord", () => {
  let story: Story;
  beforeEach(async () => {
    story = await stage.begin();
  });

  it("are registered, message commands included", () => {
    const registered = story.discord.world.commands.map((command) => `${command.type} ${command.name}`);
    const declared = [...allCommands.values()].flatMap(({ name, messageCommand }) => [
      `1 ${name}`,
      ...(messageCommand === undefined ? [] : [`3 ${messageCommand.label}`]),
    ]);
    expect(new Set(registered)).toEqual(new Set(declared));
  });

  it("the model option of a command is completed from the models", async () => {
    const { discord } = story;
    const general = discord.channel("general");
    const use = discord.person("Ada").types("ask", "model", "large", { channel: general });
    const choices = await until(() => use.interaction.choices);
    expect(choices.map((choice) => choice.value)).toEqual(["story/chat-large"]);
  });

  it("a file that is not a picture is rejected in words", async () => {
    const { discord } = story;
    const general = discord.channel("general");
    const bytes = await fixture("notes.txt");
    discord
      .person("Ada")
      .usesCommand(
        "ask",
        { prompt: "What?" },
        { channel: general, attachments: { image: { name: "x.png", bytes } } },
      );
    const [shown] = await story.settled(general);
    expect(shown?.text).toContain("x.png");
  });
});
