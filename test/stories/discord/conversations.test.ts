import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { fixture } from "../../fixtures/fixtures.ts";
import { until } from "../../simulators/discord/until.ts";
import { startStory, type Story } from "../../e2e/discord/discord-story.ts";

describe("a conversation on Discord", () => {
  let story: Story;
  beforeEach(async () => {
    story = await startStory();
  });
  afterEach(() => story.close());

  it("begins with a mention, continues in a thread, and sends its earlier turns to the gateway in order", async () => {
    const { discord } = story;
    const ada = discord.person("Ada");
    const general = discord.channel("general");
    story.answers("Hello Ada.", "Your parrot is called Juniper.", "You are welcome.");
    ada.sends({ channel: general, text: "Hi, my parrot is called Juniper.", mentionBot: true });
    const thread = await until(() => general.threads()[0]);
    expect(await story.settled(thread, 1)).toMatchObject([{ text: "Hello Ada." }]);
    ada.sends({ channel: thread, text: "What is my parrot called?" });
    await story.settled(thread, 2);
    ada.sends({ channel: thread, text: "Thank you." });
    expect((await story.settled(thread, 3)).map((message) => message.text)).toEqual([
      "Hello Ada.",
      "Your parrot is called Juniper.",
      "You are welcome.",
    ]);
    expect(story.said(2)).toEqual([
      "Hi, my parrot is called Juniper.",
      "Hello Ada.",
      "What is my parrot called?",
      "Your parrot is called Juniper.",
      "Thank you.",
    ]);
    expect(general.fromBot()).toEqual([]);
  });

  it("survives a restart", async () => {
    const { discord } = story;
    const ada = discord.person("Ada");
    const direct = discord.directMessages(ada);
    ada.sends({ channel: direct, text: "My parrot is called Juniper." });
    await story.settled(direct, 1);
    await story.restart();
    ada.sends({ channel: direct, text: "And now?" });
    await story.settled(direct, 2);
    expect(story.said(1)).toEqual([
      "My parrot is called Juniper.",
      "I heard: My parrot is called Juniper.",
      "And now?",
    ]);
  });

  it("answers a direct message without a mention", async () => {
    const { discord } = story;
    const ada = discord.person("Ada");
    const direct = discord.directMessages(ada);
    ada.sends({ channel: direct, text: "Hello" });
    expect(await story.settled(direct)).toMatchObject([{ text: "I heard: Hello" }]);
  });

  it("sends an uploaded picture to the model", async () => {
    const { discord } = story;
    const ada = discord.person("Ada");
    const direct = discord.directMessages(ada);
    const bytes = await fixture("picture.jpg");
    ada.sends({ channel: direct, text: "What is this?", files: [{ name: "picture.jpg", bytes }] });
    await story.settled(direct);
    const content = story.chats()[0]?.at(-1)?.content;
    expect(content).toContainEqual({ type: "text", text: expect.stringContaining("What is this?") });
    expect(content).toContainEqual({
      type: "image_url",
      image_url: { url: expect.stringMatching(/^data:image\/jpeg;base64,/) },
    });
  });

  it("transcribes a voice message and shows the transcript", async () => {
    const { discord, gateway } = story;
    const ada = discord.person("Ada");
    const direct = discord.directMessages(ada);
    const bytes = await fixture("voice.ogg");
    ada.sends({ channel: direct, files: [{ name: "voice-message.ogg", bytes, voiceSecs: 2 }] });
    const shown = await story.settled(direct);
    expect(shown.map((message) => message.text).join("\n")).toContain("the words of the note");
    const upload = gateway.requests.find((request) => request.path === "/v1/audio/transcriptions");
    expect(upload?.body.includes(Buffer.from(bytes))).toBe(true);
    expect(story.said(0).join(" ")).toContain("the words of the note");
  });

  it("answers two simultaneous messages, in order, once each", async () => {
    const { discord } = story;
    const ada = discord.person("Ada");
    const direct = discord.directMessages(ada);
    const first = ada.sends({ channel: direct, text: "one" });
    ada.sends({ channel: direct, text: "two" });
    discord.redeliver(first);
    await until(() => story.chats().some((chat) => JSON.stringify(chat).includes("two")));
    await story.settled(direct);
    const last = story.chats().length - 1;
    const asked = story.said(last).filter((text) => !text.startsWith("I heard"));
    expect(asked.join(" ").match(/one|two/g)).toEqual(["one", "two"]);
    discord.redeliver(first);
    ada.sends({ channel: direct, text: "three" });
    await until(() => story.chats().some((chat) => JSON.stringify(chat).includes("three")));
    await story.settled(direct);
    expect(
      story
        .said(story.chats().length - 1)
        .join(" ")
        .match(/one/g)?.length,
    ).toBeLessThanOrEqual(2);
    expect(story.chats().filter((chat) => JSON.stringify(chat.at(-1)).includes("one")).length).toBe(1);
  });

  it("names the speakers when there are several", async () => {
    const { discord } = story;
    const ada = discord.person("Ada");
    const bob = discord.person("Bob");
    const general = discord.channel("general");
    ada.sends({ channel: general, text: "I like tea.", mentionBot: true });
    const thread = await until(() => general.threads()[0]);
    await story.settled(thread, 1);
    bob.sends({ channel: thread, text: "I like coffee." });
    await story.settled(thread, 2);
    const said = story.said(1).join("\n");
    expect(said).toContain("Ada");
    expect(said).toContain("Bob");
  });

  it("pings nobody and shows no previews, whatever the model writes", async () => {
    const { discord } = story;
    const ada = discord.person("Ada");
    const direct = discord.directMessages(ada);
    story.answers(`@everyone <@${ada.id}> look: https://evil.example/?leak=1`);
    ada.sends({ channel: direct, text: "Hello" });
    const [shown] = await story.settled(direct);
    expect(shown?.text).toContain("@everyone");
    expect(shown).toMatchObject({ pings: [], previews: [] });
  });

  it("shows an answer of 9,000 characters whole, code fences intact", async () => {
    const { discord } = story;
    const ada = discord.person("Ada");
    const direct = discord.directMessages(ada);
    const code = Array.from({ length: 150 }, (_, index) => `const line${index} = ${"x".repeat(20)};`).join(
      "\n",
    );
    const words = Array.from({ length: 600 }, (_, index) => `word${index}`).join(" ");
    const answer = `# Long\n\n${words}\n\n\`\`\`ts\n${code}\n\`\`\`\n\nThe end.`;
    expect(answer.length).toBeGreaterThan(9000);
    story.answers(answer);
    ada.sends({ channel: direct, text: "Tell me everything" });
    await until(() => direct.fromBot().some((message) => message.text.includes("The end.")), {
      timeoutMs: 40_000,
    });
    const shown = await story.settled(direct, 2);
    for (const { text } of shown) {
      expect(text.length).toBeLessThanOrEqual(2000);
      expect((text.match(/^```/gm) ?? []).length % 2).toBe(0);
    }
    const whole = shown.map((message) => message.text).join("\n");
    for (let index = 0; index < 150; index += 1) expect(whole).toContain(`const line${index} = `);
    for (let index = 0; index < 600; index += 1) expect(whole).toMatch(new RegExp(`\\bword${index}\\b`));
    expect(shown.every((message) => message.files.length === 0)).toBe(true);
  });

  it("says that the gateway is down, and Retry answers in the same message", async () => {
    const { discord } = story;
    const ada = discord.person("Ada");
    const direct = discord.directMessages(ada);
    story.setGatewayUp(false);
    ada.sends({ channel: direct, text: "Hello" });
    const failed = await until(
      () => direct.fromBot().find((message) => message.buttons.some(({ label }) => label === "Retry")),
      {
        timeoutMs: 40_000,
        explain: () => ({ shown: direct.fromBot(), lines: story.lines }),
      },
    );
    expect(failed.text).toMatch(/gateway/i);
    story.setGatewayUp(true);
    ada.clicks("Retry", failed, { channel: direct });
    const answered = await until(
      () =>
        direct
          .fromBot()
          .find(
            ({ text, buttons }) =>
              text === "I heard: Hello" && buttons.some(({ label }) => label === "Details"),
          ),
      {
        timeoutMs: 20_000,
        explain: () => ({ shown: direct.fromBot(), lines: story.lines }),
      },
    );
    expect(answered).toMatchObject({
      id: failed.id,
      buttons: [{ label: "Regenerate" }, { label: "Other model" }, { label: "Details" }],
    });
    expect(direct.fromBot()).toHaveLength(1);
  });
});
