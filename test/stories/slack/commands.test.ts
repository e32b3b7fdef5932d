import { afterEach, describe, expect, test } from "vitest";
import { fixture } from "../../fixtures/fixtures.ts";
import type { SeenMessage } from "../../simulators/slack/transcript.ts";
import { startSlackStory, textOf, type SlackStory, type StoryOptions } from "../../e2e/slack/slack-story.ts";

let story: SlackStory;
afterEach(async () => {
  const { badAcks } = story.slack;
  await story.close();
  expect(badAcks).toEqual([]);
});

async function begin(options: StoryOptions = {}) {
  story = await startSlackStory(options);
  const ana = story.slack.person("Ana");
  return { ana, channel: story.slack.channel("ideas", [ana]), slack: story.slack };
}

const json = { "content-type": "application/json" };

async function drawn(): Promise<string> {
  const picture = Buffer.from(await fixture("picture.png")).toString("base64");
  return JSON.stringify({ created: 1, data: [{ url: `data:image/png;base64,${picture}` }] });
}

describe("slash commands", () => {
  test("/ask is answered in the channel, with the question and who asked it above the answer", async () => {
    const { ana, channel } = await begin({ chat: () => "forty-two" });
    await ana.usesCommand("/ask", "what is the answer?", { channel: channel.id });
    const answer = await story.answerTo(channel.id, undefined);
    expect(answer.text).toMatch(/^Ana wrote:\n> what is the answer\?\n+forty-two/);
    expect(answer.onlyFor).toBeUndefined();
    await ana.usesCommand("/ask", "and here?", { channel: ana.directMessages });
    const direct = await story.answerTo(ana.directMessages, undefined);
    expect(direct.text).toMatch(/^> and here\?\n+forty-two/);
    expect(story.asked()[0]?.map(textOf)).toEqual(["what is the answer?"]);
  });

  test("/ask private:yes is seen by the caller alone", async () => {
    const { ana, channel } = await begin({ chat: () => "just for you" });
    await ana.usesCommand("/ask", "tell me private:yes", { channel: channel.id });
    const answer = await story.slack.waitFor("the answer", () =>
      channel.transcript().find(({ text }) => text.includes("just for you")),
    );
    expect(answer.onlyFor).toBe("Ana");
    expect(channel.transcript().filter(({ onlyFor }) => onlyFor === undefined)).toEqual([]);
  });

  test("/models answers its caller alone", async () => {
    const { ana, channel } = await begin();
    await ana.usesCommand("/models", "", { channel: channel.id });
    const answer = await story.slack.waitFor("the list", () =>
      channel.transcript().find(({ text }) => text.includes("test/whisper")),
    );
    expect(answer.onlyFor).toBe("Ana");
  });

  test("/imagine posts the picture as a file with alt text", async () => {
    const body = await drawn();
    const { ana, channel } = await begin({ images: () => ({ body, headers: json }) });
    await ana.usesCommand("/imagine", "a red fox size:256x256", { channel: channel.id });
    const shown = await story.slack.waitFor("the picture", () =>
      channel.transcript().find(({ files }) => files.length > 0),
    );
    expect(shown.files[0]).toMatchObject({ mediaType: "image/png", altText: "a red fox" });
    expect(Buffer.from(shown.files[0]!.bytes).equals(await fixture("picture.png"))).toBe(true);
    expect(JSON.parse(story.requestsTo("/v1/images/generations")[0]!.body.toString())).toMatchObject({
      prompt: "a red fox",
      size: "256x256",
    });
  });

  test("/chat opens a thread below its own message, where the conversation continues", async () => {
    const { ana, channel } = await begin({ chat: (turns) => `turn ${turns.length}` });
    await ana.usesCommand("/chat", "let us begin", { channel: channel.id });
    const root = await story.answerTo(channel.id, undefined);
    expect((await story.answerTo(channel.id, root.ts)).text).toContain("turn 1");
    ana.sends({ channel: channel.id, thread: root.ts, text: "go on" });
    expect((await story.answerTo(channel.id, root.ts, 1)).text).toBe("turn 3");
    expect(story.asked().at(-1)?.map(textOf)).toEqual(["let us begin", "turn 1", "go on"]);
    expect(channel.transcript().filter(({ thread }) => thread === undefined)).toHaveLength(1);
  });

  test("a wrong option is shown to the caller alone, and nothing is requested", async () => {
    const { ana, channel } = await begin();
    await ana.usesCommand("/imagine", "a fox count:40", { channel: channel.id });
    expect(channel.transcript()[0]).toMatchObject({ onlyFor: "Ana" });
    expect(channel.transcript()[0]?.text).toMatch(/count/);
    expect(story.requestsTo("/v1/images/generations")).toEqual([]);
  });

  test("in a channel without the bot the answer comes through the command, for all to see", async () => {
    const { ana, slack } = await begin({ chat: () => "Forty-two." });
    for (const isPrivate of [false, true]) {
      const elsewhere = slack.channel("elsewhere", [ana], { withBot: false, isPrivate });
      await ana.usesCommand("/ask", "hello?", { channel: elsewhere.id });
      await slack.waitFor("the answer", () => elsewhere.transcript().some(({ text }) => /Forty/.test(text)));
      await slack.waitFor("the end", () => story.parley.assistant.pending() === 0);
      expect(elsewhere.transcript().map(({ onlyFor, body, text }) => [onlyFor, body || text])).toEqual([
        ["Ana", expect.stringContaining("Working on it")],
        [undefined, "Ana wrote:\n> hello?\n\nForty-two."],
      ]);
    }
  });

  test("of pictures in a channel without the bot: they are in the caller's direct messages, and /chat asks to invite it", async () => {
    const body = await drawn();
    const { ana, slack } = await begin({ images: () => ({ body, headers: json }) });
    const elsewhere = slack.channel("elsewhere", [ana], { withBot: false });
    await ana.usesCommand("/imagine", "a red fox", { channel: elsewhere.id });
    await slack.waitFor("the end", () => elsewhere.transcript().some(({ text }) => /a red fox/.test(text)));
    await slack.waitFor("the picture", () =>
      slack.transcriptOf(ana.directMessages).some(({ files }) => files.length === 1),
    );
    expect(elsewhere.transcript().at(-1)).toMatchObject({
      onlyFor: undefined,
      text: expect.stringMatching(/direct messages with the person who asked.*\/invite/),
    });
    await ana.usesCommand("/chat", "let us begin", { channel: elsewhere.id });
    await slack.waitFor("the request", () =>
      elsewhere.transcript().some(({ onlyFor, text }) => onlyFor === "Ana" && /cannot.*\/invite/.test(text)),
    );
    await slack.waitFor("the end", () => story.parley.assistant.pending() === 0);
    expect(elsewhere.transcript().filter(({ onlyFor }) => onlyFor === undefined)).toHaveLength(1);
  });
});

describe("modals and shortcuts", () => {
  const clip = async () => ({
    name: "memo.m4a",
    mediaType: "audio/mp4",
    bytes: await fixture("voice.m4a"),
  });

  test("/transcribe asks for the recording in a modal and shows the transcript", async () => {
    const { ana, channel } = await begin();
    await ana.usesCommand("/transcribe", "", { channel: channel.id });
    await ana.submitsModal({ Language: "en", Hint: "Parley" }, { File: await clip() });
    const answer = await story.answerTo(channel.id, undefined);
    expect(answer.text).toContain("words that were spoken");
    const form = story.requestsTo("/v1/audio/transcriptions")[0]?.body.toString("latin1") ?? "";
    expect(form).toMatch(/name="language"\r\n\r\nen/);
    expect(form).toMatch(/name="prompt"\r\n\r\nParley/);
  });

  test("Transcribe on a message answers in its thread", async () => {
    const { ana, channel } = await begin();
    const ts = ana.sends({ channel: channel.id, files: [await clip()] });
    await ana.usesShortcut("Transcribe", ts, { channel: channel.id });
    expect((await story.answerTo(channel.id, ts)).text).toContain("words that were spoken");
    // Transcribing in a thread does not start a conversation there.
    ana.sends({ channel: channel.id, thread: ts, text: "thanks" });
    const asked = ana.sends({ channel: channel.id, text: "done?", mentionBot: true });
    await story.answerTo(channel.id, asked);
    expect(story.asked()).toHaveLength(1);
  });

  test("Ask about this quotes the message", async () => {
    const { ana, channel, slack } = await begin({ chat: () => "far" });
    const ts = ana.sends({ channel: channel.id, text: "the moon" });
    await ana.usesShortcut("Ask about this", ts, { channel: channel.id });
    await slack.waitFor("the modal", () => ana.modal());
    await ana.submitsModal({ Prompt: "how far is it?" });
    expect((await story.answerTo(channel.id, ts)).text).toContain("far");
    const asked = story.asked()[0]?.map(textOf).join("\n") ?? "";
    expect(asked).toContain("the moon");
    expect(asked).toContain("how far is it?");
  });
});

describe("private commands after a mention", () => {
  const markdownOf = (messages: readonly SeenMessage[]) =>
    messages.flatMap(({ files }) => files).find(({ name }) => name === "conversation.md");

  test("/export in a thread is answered in direct messages; others see nothing of it", async () => {
    const { ana, channel, slack } = await begin({ chat: () => "Noted." });
    const bo = slack.person("Bo");
    const shared = slack.channel("shared", [ana, bo]);
    const root = ana.sends({ channel: shared.id, text: "our secret plan", mentionBot: true });
    await story.answerTo(shared.id, root);
    const before = shared.transcript();
    const command = ana.sends({ channel: shared.id, thread: root, text: "/export", mentionBot: true });

    const direct = slack.directMessages(ana);
    const markdown = await slack.waitFor("the files", () => markdownOf(direct.saidByBot()));
    expect(Buffer.from(markdown.bytes).toString()).toContain("our secret plan");
    await slack.waitFor("the text", () =>
      direct.saidByBot().find(({ text }) => text.includes("Everything that is kept")),
    );
    await slack.waitFor("the end", () => story.parley.assistant.pending() === 0);

    const added = shared.transcript().slice(before.length);
    expect(added.filter(({ onlyFor }) => onlyFor === undefined).map(({ ts }) => ts)).toEqual([command]);
    expect(added.filter(({ onlyFor }) => onlyFor !== undefined)).toMatchObject([
      { onlyFor: "Ana", thread: root, text: expect.stringMatching(/direct messages/), files: [] },
    ]);
    expect(slack.directMessages(bo).saidByBot()).toEqual([]);
    expect(channel.saidByBot()).toEqual([]);
  });

  test("/export in direct messages is answered in its thread", async () => {
    const { ana, slack } = await begin({ chat: () => "Noted." });
    const root = ana.sends({ channel: ana.directMessages, text: "note to self" });
    await story.answerTo(ana.directMessages, root);
    ana.sends({ channel: ana.directMessages, thread: root, text: "/export" });
    const answers = () => slack.directMessages(ana).saidByBot(root);
    await slack.waitFor("the files", () => markdownOf(answers()));
    await slack.waitFor("the text", () =>
      answers().find(({ text }) => text.includes("Everything that is kept")),
    );
    expect(slack.directMessages(ana).saidByBot()).toEqual(answers());
  });
});
