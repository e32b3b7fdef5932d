import { describe, expect, test } from "vitest";
import { fixture } from "../../fixtures/fixtures.ts";
import type { SlackMode, StoryScript } from "../../e2e/slack/slack-story.ts";
import { createSlackStage } from "./stage.ts";

const stage = createSlackStage();

describe.each<SlackMode>(["socket", "http"])("what Slack delivers over %s", (mode) => {
  async function begin(script?: StoryScript) {
    const story = await stage.begin(script, mode);
    const { slack } = story;
    const ana = slack.person("Ana");
    const bo = slack.person("Bo");
    return { story, slack, ana, bo, channel: slack.channel("ideas", [ana, bo]) };
  }

  test.each(["app_mention", "message"] as const)(
    "a mention is answered once when %s comes first",
    async (first) => {
      const { story, slack, ana, channel } = await begin();
      const root = ana.sends({ channel: channel.id, text: "once", mentionBot: true, first });
      await story.answerTo(channel.id, root);
      await slack.waitFor("acknowledgements", () =>
        slack.deliveries.every(({ outcome }) => outcome === "acknowledged"),
      );
      expect(story.asked()).toHaveLength(1);
      expect(channel.saidByBot()).toHaveLength(1);
    },
  );

  test("other bots and messages between people are ignored", async () => {
    const { story, slack, ana, bo, channel } = await begin();
    const root = ana.sends({ channel: channel.id, text: "lunch?" });
    bo.sends({ channel: channel.id, thread: root, text: "yes" });
    slack.otherBotSends(channel, `<@${slack.botUserId}> hello`);
    const asked = ana.sends({ channel: channel.id, text: "are you there?", mentionBot: true });
    await story.answerTo(channel.id, asked);
    expect(story.asked()).toHaveLength(1);
  });

  test("a pasted table and a link whose label has special characters reach the model as they are read", async () => {
    const { story, ana } = await begin();
    const cell = (text: string) => ({ type: "raw_text", text });
    const root = ana.sends({
      channel: ana.directMessages,
      markup: "sum up <https://a.example|costs &gt; 5 &amp; more | 2026>",
      blocks: [
        {
          type: "table",
          rows: [
            [cell("what"), cell("cost")],
            [cell("tea"), cell("7")],
          ],
        },
      ],
    });
    await story.answerTo(ana.directMessages, root);
    const asked = JSON.stringify(story.asked().at(-1));
    expect(asked).toContain("sum up costs > 5 & more | 2026 (https://a.example)");
    expect(asked).toContain(String.raw`what | cost\ntea | 7`);
  });

  test("a canvas is named as what it is, and no permission is said to be missing", async () => {
    const { story, ana } = await begin();
    const canvas = {
      name: "Plan",
      mediaType: "application/vnd.slack-docs",
      bytes: new TextEncoder().encode("<p>the plan</p>"),
      extra: { mode: "quip", filetype: "quip" },
    };
    const root = ana.sends({ channel: ana.directMessages, text: "sum up", files: [canvas] });
    const { text } = await story.answerTo(ana.directMessages, root);
    expect(text).toContain("Plan (Slack canvas)");
    expect(text).not.toContain("files:read");
  });

  test("an audio clip labelled as video is transcribed, and the transcript is shown", async () => {
    const { story, ana } = await begin();
    const clip = {
      name: "audio_message.m4a",
      mediaType: "video/mp4",
      bytes: await fixture("voice.m4a"),
      extra: { subtype: "slack_audio", duration_ms: 2100 },
    };
    const root = ana.sends({ channel: ana.directMessages, files: [clip] });
    const answer = await story.answerTo(ana.directMessages, root);
    expect(answer.text).toContain("words that were spoken");
    const [request] = story.requestsTo("/v1/audio/transcriptions");
    expect(request?.body.toString("latin1")).toMatch(/filename="[^"]+\.(?:m4a|mp4)"/);
    expect(request?.body.includes(Buffer.from(clip.bytes))).toBe(true);
  });

  test("a missing files:read scope is named in the reply", async () => {
    const story = await stage.start({ mode });
    const ana = story.slack.person("Ana");
    story.slack.revokeScope("files:read");
    const file = { name: "picture.png", mediaType: "image/png", bytes: await fixture("picture.png") };
    const root = ana.sends({ channel: ana.directMessages, text: "what is this?", files: [file] });
    expect((await story.answerTo(ana.directMessages, root)).text).toContain("files:read");
  });
});
