import { afterEach, describe, expect, test } from "vitest";
import { fixture } from "../../fixtures/fixtures.ts";
import { startSlackStory, textOf, type SlackStory, type StoryOptions } from "../../e2e/slack/slack-story.ts";

let story: SlackStory;
afterEach(async () => {
  const { badAcks, lost, calls } = story.slack;
  const { logged } = story;
  const secrets = [story.slack.botToken, story.slack.appToken, "key-for-the-gateway"];
  await story.close();
  expect(badAcks).toEqual([]);
  expect(lost).toEqual([]);
  expect(calls.filter(({ outcome }) => outcome === "429")).toEqual([]);
  for (const secret of secrets) expect(logged.join("\n")).not.toContain(secret);
});

async function begin(options: StoryOptions = {}) {
  story = await startSlackStory(options);
  const ana = story.slack.person("Ana");
  const bo = story.slack.person("Bo");
  return { ana, bo, channel: story.slack.channel("ideas", [ana, bo]), slack: story.slack };
}

describe("talking", () => {
  test("a direct message is answered in its thread, where the conversation continues", async () => {
    const { ana } = await begin({ chat: (turns) => `answer ${turns.length}` });
    const root = ana.sends({ channel: ana.directMessages, text: "hello" });
    expect((await story.answerTo(ana.directMessages, root)).text).toBe("answer 1");
    ana.sends({ channel: ana.directMessages, thread: root, text: "and then?" });
    expect((await story.answerTo(ana.directMessages, root, 1)).text).toBe("answer 3");
    expect(story.asked().at(-1)?.map(textOf)).toEqual(["hello", "answer 1", "and then?"]);
  });

  test("a mention opens a thread; each of three turns has all previous ones as context", async () => {
    const { ana, channel } = await begin({ chat: (turns) => `reply to ${textOf(turns.at(-1)!)}` });
    const root = ana.sends({ channel: channel.id, text: "first", mentionBot: true });
    expect((await story.answerTo(channel.id, root, 0)).text).toBe("reply to first");
    ana.sends({ channel: channel.id, thread: root, text: "second" });
    expect((await story.answerTo(channel.id, root, 1)).text).toBe("reply to second");
    ana.sends({ channel: channel.id, thread: root, text: "third" });
    expect((await story.answerTo(channel.id, root, 2)).text).toBe("reply to third");
    expect(story.asked().map((turns) => turns.map(textOf))).toEqual([
      ["first"],
      ["first", "reply to first", "second"],
      ["first", "reply to first", "second", "reply to second", "third"],
    ]);
    expect(channel.transcript().filter(({ thread }) => thread === undefined)).toHaveLength(1);
  });

  test("with several participants the model knows who said what", async () => {
    const { ana, bo, channel } = await begin();
    const root = ana.sends({ channel: channel.id, text: "I like red", mentionBot: true });
    await story.answerTo(channel.id, root, 0);
    bo.sends({ channel: channel.id, thread: root, text: "I like blue" });
    await story.answerTo(channel.id, root, 1);
    const said = story.asked().at(-1)?.map(textOf) ?? [];
    expect(said[0]).toMatch(/Ana.*I like red/s);
    expect(said.at(-1)).toMatch(/Bo.*I like blue/s);
  });

  test("two messages at once are both answered, in order", async () => {
    const { ana } = await begin();
    const root = ana.sends({ channel: ana.directMessages, text: "hello" });
    await story.answerTo(ana.directMessages, root);
    ana.sends({ channel: ana.directMessages, thread: root, text: "question one" });
    ana.sends({ channel: ana.directMessages, thread: root, text: "question two" });
    await story.slack.waitFor("both in a request", () => {
      const said = story.asked().at(-1)?.map(textOf) ?? [];
      return said.some((text) => text.includes("question two"));
    });
    const last = story.asked().at(-1)?.map(textOf).join("\n") ?? "";
    expect(last.indexOf("question one")).toBeGreaterThan(-1);
    expect(last.indexOf("question one")).toBeLessThan(last.indexOf("question two"));
    await story.slack.waitFor("the end", () => story.parley.assistant.pending() === 0);
    const answers = story.slack
      .directMessages(ana)
      .saidByBot(root)
      .map(({ text }) => text);
    expect(answers.join("\n")).toMatch(/question two/);
  });

  test("other bots and messages between people are ignored", async () => {
    const { ana, bo, channel, slack } = await begin();
    const root = ana.sends({ channel: channel.id, text: "lunch?" });
    bo.sends({ channel: channel.id, thread: root, text: "yes" });
    slack.otherBotSends(channel, `<@${slack.botUserId}> hello`);
    const asked = ana.sends({ channel: channel.id, text: "are you there?", mentionBot: true });
    await story.answerTo(channel.id, asked);
    expect(story.asked()).toHaveLength(1);
  });
});

describe("files", () => {
  test("a picture reaches the model with the question", async () => {
    const { ana } = await begin({ chat: () => "a picture" });
    const file = { name: "picture.png", mediaType: "image/png", bytes: await fixture("picture.png") };
    const root = ana.sends({ channel: ana.directMessages, text: "what is this?", files: [file] });
    expect((await story.answerTo(ana.directMessages, root)).body).toBe("a picture");
    const parts = story.asked()[0]?.[0]?.content;
    const image = Array.isArray(parts) ? parts.find((part) => part.type === "image_url") : undefined;
    const [head, data = ""] = image?.image_url?.url.split(",") ?? [];
    expect(head).toBe("data:image/png;base64");
    expect(Buffer.from(data, "base64").equals(file.bytes)).toBe(true);
  });

  test("a mention with a picture is answered with it, although app_mention has no files", async () => {
    const { ana, channel } = await begin({ chat: () => "seen" });
    const file = { name: "picture.jpg", mediaType: "image/jpeg", bytes: await fixture("picture.jpg") };
    const root = ana.sends({ channel: channel.id, text: "look", files: [file], mentionBot: true });
    await story.answerTo(channel.id, root);
    expect(JSON.stringify(story.asked()[0])).toContain("data:image/jpeg;base64");
    expect(story.asked()).toHaveLength(1);
  });

  test("an audio clip labelled as video is transcribed, and the transcript is shown", async () => {
    const { ana } = await begin({ chat: (turns) => `heard: ${textOf(turns.at(-1)!)}` });
    const clip = {
      name: "audio_message.m4a",
      mediaType: "video/mp4",
      bytes: await fixture("voice.m4a"),
      extra: { subtype: "slack_audio", duration_ms: 2100 },
    };
    const root = ana.sends({ channel: ana.directMessages, files: [clip] });
    const answer = await story.answerTo(ana.directMessages, root);
    expect(answer.text).toContain("words that were spoken");
    expect(answer.text).toContain("heard:");
    const [request] = story.requestsTo("/v1/audio/transcriptions");
    const form = request?.body.toString("latin1") ?? "";
    expect(form).toMatch(/filename="[^"]+\.(?:m4a|mp4)"/);
    expect(request?.body.includes(Buffer.from(clip.bytes))).toBe(true);
  });

  test("an unreadable file is named in the reply", async () => {
    const { ana } = await begin();
    const file = { name: "clip.mp4", mediaType: "video/mp4", bytes: await fixture("video.mp4") };
    const root = ana.sends({ channel: ana.directMessages, text: "watch this", files: [file] });
    const answer = await story.answerTo(ana.directMessages, root);
    expect(answer.smallPrint).toContain("clip.mp4");
  });

  test("a missing files:read scope is named in the reply", async () => {
    const { ana, slack } = await begin();
    slack.revokeScope("files:read");
    const file = { name: "picture.png", mediaType: "image/png", bytes: await fixture("picture.png") };
    const root = ana.sends({ channel: ana.directMessages, text: "what is this?", files: [file] });
    const answer = await story.answerTo(ana.directMessages, root);
    expect(answer.text).toContain("files:read");
  });
});

describe("answers", () => {
  test("9,000 characters are shown complete, in order, with closed code fences", async () => {
    const code = Array.from({ length: 150 }, (_, i) => `  if (a < ${i} && b > ${i}) return "line ${i}";`);
    const prose = Array.from({ length: 60 }, (_, i) => `Sentence ${i} is here to be read & understood.`);
    const whole = `${prose.join(" ")}\n\n\`\`\`ts\n${code.join("\n")}\n\`\`\`\n\nThe end.`;
    expect(whole.length).toBeGreaterThan(9000);
    const { ana } = await begin({ chat: () => whole });
    const root = ana.sends({ channel: ana.directMessages, text: "tell me all" });
    await story.slack.waitFor("the end", () =>
      story.slack
        .directMessages(ana)
        .saidByBot(root)
        .some(({ text }) => text.includes("The end.")),
    );
    await story.slack.waitFor("no more work", () => story.parley.assistant.pending() === 0);
    const said = story.slack.directMessages(ana).saidByBot(root);
    expect(said.length).toBeGreaterThan(2);
    for (const { body } of said)
      expect(body.split("\n").filter((line) => line.startsWith("```")).length % 2).toBe(0);
    const all = said.map(({ body }) => body).join("\n");
    const at = [...code, ...prose].map((line) => all.indexOf(line.trim()));
    expect(at.filter((index) => index === -1)).toEqual([]);
    for (const lines of [code, prose]) {
      const order = lines.map((line) => all.indexOf(line.trim()));
      expect(order).toEqual([...order].sort((a, b) => a - b));
    }
  });

  test("model output notifies nobody and previews nothing", async () => {
    const { ana, bo, channel } = await begin({
      chat: () =>
        `<!here> <!channel> <@U000> hey @here, see <https://evil.example/?q=secret|this> https://evil.example`,
    });
    const root = ana.sends({ channel: channel.id, text: `say hi to <@${bo.id}>`, mentionBot: true });
    const answer = await story.answerTo(channel.id, root);
    expect(answer.pings).toEqual([]);
    expect(answer.previewsLinks).toBe(false);
    expect(answer.text).toContain("<!here> <!channel> <@U000>");
    expect(channel.transcript().flatMap(({ pings }) => pings)).toEqual([]);
  });

  test("an unreachable gateway is shown, and Retry answers in the same message", async () => {
    let isDown = true;
    const { ana } = await begin({
      chat: () =>
        isDown ? { status: 503, body: "{}", headers: { "content-type": "application/json" } } : "back",
      settings: { GATEWAY_FIRST_EVENT_TIMEOUT_MS: "1500", GATEWAY_TOTAL_TIMEOUT_MS: "3000" },
    });
    const root = ana.sends({ channel: ana.directMessages, text: "hello" });
    const failed = await story.slack.waitFor(
      "the failure",
      () =>
        story.slack
          .directMessages(ana)
          .saidByBot(root)
          .find(({ buttons }) => buttons.some(({ label }) => label === "Retry")),
      30_000,
    );
    expect(failed.text).toMatch(/gateway/i);
    expect(failed.buttons.map(({ label }) => label)).toEqual(["Retry"]);
    isDown = false;
    await ana.clicks(failed, "Retry", { channel: ana.directMessages });
    const answer = await story.slack.waitFor("the answer", () =>
      story.slack
        .directMessages(ana)
        .saidByBot(root)
        .find(({ body, buttons }) => body === "back" && buttons.some(({ label }) => label === "Details")),
    );
    expect(answer.ts).toBe(failed.ts);
    expect(answer.buttons.map(({ label }) => label)).toEqual(["Regenerate", "Other model", "Details"]);
    expect(story.slack.directMessages(ana).saidByBot(root)).toHaveLength(1);
  });
});

describe("deliveries", () => {
  test("an event delivered twice is answered once", async () => {
    const { ana, slack } = await begin();
    const root = ana.sends({ channel: ana.directMessages, text: "once" });
    await story.answerTo(ana.directMessages, root);
    slack.redeliver("message");
    await slack.waitFor("acknowledgements", () =>
      slack.deliveries.every(({ outcome }) => outcome === "acknowledged"),
    );
    expect(story.parley.assistant.pending()).toBe(0);
    expect(story.asked()).toHaveLength(1);
  });

  test.each(["app_mention", "message"] as const)(
    "a mention is answered once when %s comes first",
    async (first) => {
      const { ana, channel, slack } = await begin();
      const root = ana.sends({ channel: channel.id, text: "once", mentionBot: true, first });
      await story.answerTo(channel.id, root);
      await slack.waitFor("acknowledgements", () =>
        slack.deliveries.every(({ outcome }) => outcome === "acknowledged"),
      );
      expect(story.asked()).toHaveLength(1);
      expect(channel.saidByBot()).toHaveLength(1);
    },
  );
});
