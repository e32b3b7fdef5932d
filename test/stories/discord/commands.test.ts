import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { fixture } from "../../fixtures/fixtures.ts";
import { allCommands } from "../../support/commands.ts";
import { until } from "../../simulators/discord/until.ts";
import { startStory, type Story } from "../../e2e/discord/discord-story.ts";

describe("commands on Discord", () => {
  let story: Story;
  beforeEach(async () => {
    story = await startStory();
  });
  afterEach(() => story.close());

  it("are registered, message commands included", () => {
    const registered = story.discord.world.commands.map((command) => `${command.type} ${command.name}`);
    const declared = [...allCommands.values()].flatMap(({ name, messageCommand }) => [
      `1 ${name}`,
      ...(messageCommand === undefined ? [] : [`3 ${messageCommand.label}`]),
    ]);
    expect(new Set(registered)).toEqual(new Set(declared));
  });

  it("/ask replaces its placeholder with the answer", async () => {
    const { discord } = story;
    const general = discord.channel("general");
    const use = discord.person("Ada").usesCommand("ask", { prompt: "Why?" }, { channel: general });
    const [shown] = await story.settled(general);
    expect(use.state()).toBe("answered");
    expect(shown?.text).toContain("I heard: Why?");
    expect(story.said(0)).toEqual(["Why?"]);
  });

  it("/ask private:true is seen by its caller alone", async () => {
    const { discord } = story;
    const general = discord.channel("general");
    discord.person("Ada").usesCommand("ask", { prompt: "Why?", private: true }, { channel: general });
    const shown = await story.settled(general);
    expect(shown.every((message) => message.isEphemeral)).toBe(true);
    expect(shown[0]?.text).toContain("I heard: Why?");
  });

  it("/ask with a picture and a model sends both", async () => {
    const { discord, gateway } = story;
    const general = discord.channel("general");
    const bytes = await fixture("picture.png");
    discord
      .person("Ada")
      .usesCommand(
        "ask",
        { prompt: "What is it?", model: "story/chat-large" },
        { channel: general, attachments: { image: { name: "picture.png", bytes } } },
      );
    await story.settled(general);
    const request = gateway.requests.find((one) => one.path === "/v1/chat/completions");
    expect(JSON.parse(request?.body.toString() ?? "{}")).toMatchObject({ model: "story/chat-large" });
    expect(JSON.stringify(story.chats()[0])).toContain("data:image/png;base64,");
  });

  it("/chat opens a thread, answers there, and continues without mentions", async () => {
    const { discord } = story;
    const ada = discord.person("Ada");
    const general = discord.channel("general");
    ada.usesCommand("chat", { message: "Plan a trip to Oslo" }, { channel: general });
    const thread = await until(() => general.threads()[0]);
    await until(() =>
      thread.fromBot().some((message) => message.text.includes("I heard: Plan a trip to Oslo")),
    );
    await story.settled(general);
    ada.sends({ channel: thread, text: "By train" });
    await until(() => thread.fromBot().some((message) => message.text.includes("I heard: By train")));
    expect(story.said(1).join("\n")).toContain("Plan a trip to Oslo");
    expect(thread.name).toContain("Plan a trip to Oslo");
  });

  it("/imagine shows the picture with an alt text", async () => {
    const { discord } = story;
    const general = discord.channel("general");
    discord.person("Ada").usesCommand("imagine", { prompt: "a red house" }, { channel: general });
    const files = await until(() => {
      const all = general.fromBot().flatMap((message) => message.files);
      return all.length > 0 && all;
    });
    await story.settled(general);
    expect(files[0]?.altText).toContain("a red house");
    expect(files[0]?.mediaType).toBe("image/png");
    expect(general.fromBot().some((message) => message.isThinking)).toBe(false);
  });

  it("/imagine with an invalid size tells its caller alone how to write it", async () => {
    const { discord } = story;
    const general = discord.channel("general");
    discord.person("Ada").usesCommand("imagine", { prompt: "a house", size: "huge" }, { channel: general });
    const [shown] = await story.settled(general);
    expect(shown?.text).toContain("1024x1024");
    expect(shown?.isEphemeral).toBe(true);
  });

  it("/ask with a model that does not exist names it", async () => {
    const { discord } = story;
    const general = discord.channel("general");
    discord.person("Ada").usesCommand("ask", { prompt: "Why?", model: "story/chta" }, { channel: general });
    const [shown] = await story.settled(general);
    expect(shown?.text).toContain("story/chta");
    expect(shown?.text).toContain("story/chat");
  });

  it("/transcribe shows the transcript of a recording", async () => {
    const { discord } = story;
    const general = discord.channel("general");
    const bytes = await fixture("voice.m4a");
    discord
      .person("Ada")
      .usesCommand(
        "transcribe",
        {},
        { channel: general, attachments: { file: { name: "note.m4a", bytes } } },
      );
    const shown = await story.settled(general);
    expect(shown.map((message) => message.text).join("\n")).toContain("the words of the note");
  });

  it("Transcribe on a message shows the transcript of its voice note", async () => {
    const { discord } = story;
    const bob = discord.person("Bob");
    const general = discord.channel("general");
    const note = bob.sends({
      channel: general,
      files: [{ name: "voice-message.ogg", bytes: await fixture("voice.ogg"), voiceSecs: 2 }],
    });
    discord.person("Ada").usesMessageCommand("Transcribe", note, { channel: general });
    const shown = await story.settled(general);
    expect(shown.map((message) => message.text).join("\n")).toContain("the words of the note");
  });

  it("Ask about this sends the message to the model with the question", async () => {
    const { discord } = story;
    const ada = discord.person("Ada");
    const general = discord.channel("general");
    const note = discord.person("Bob").sends({ channel: general, text: "E = mc²" });
    const use = ada.usesMessageCommand("Ask about this", note, { channel: general });
    const modal = await until(() => use.interaction.modal);
    ada.submitsModal(use, { [modal.inputs[0]!.label]: "Explain" });
    await story.settled(general);
    expect(story.said(0).join("\n")).toContain("E = mc²");
    expect(story.said(0).join("\n")).toContain("Explain");
  });

  it("/models lists the models, and the model option is completed from them", async () => {
    const { discord } = story;
    const ada = discord.person("Ada");
    const general = discord.channel("general");
    ada.usesCommand("models", {}, { channel: general });
    const shown = await story.settled(general);
    expect(shown.map((message) => message.text).join("\n")).toContain("story/chat-large");
    const use = ada.types("ask", "model", "large", { channel: general });
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
