import { saidApart } from "../../support/said-apart.ts";
import { describe, expect, test } from "vitest";
import { textOf, type SlackStory, type StoryOptions } from "../../e2e/slack/slack-story.ts";
import { createSlackStage } from "./stage.ts";

const stage = createSlackStage();

let story: SlackStory;

async function begin(options: StoryOptions = {}) {
  story = await stage.start({ chat: (_turns, index) => `answer ${index}`, ...options });
  const { slack } = story;
  const ana = slack.person("Ana");
  const bo = slack.person("Bo");
  const channel = slack.channel("ops", [ana, bo]);
  const root = ana.sends({ channel: channel.id, text: "Login is slow" });
  const says = (person: typeof ana, text: string, more: object = {}): string =>
    person.sends({ channel: channel.id, thread: root, text, ...more });
  return { slack, ana, bo, channel, root, says };
}
const asked = (index: number): string[] =>
  (story.asked()[index] ?? []).flatMap((turn) => saidApart(textOf(turn)));

describe("a thread below the bot's own answer", () => {
  test("is answered without a mention, like a reply to the bot, and with what the answer says", async () => {
    const { ana, bo, channel, slack } = await begin();
    await ana.usesCommand("/ask", "what is a larch?", { channel: channel.id });
    const answer = await story.answerTo(channel.id, undefined);
    expect(answer.text).toContain("answer 0");
    bo.sends({ channel: channel.id, thread: answer.ts, text: "and a fir?" });
    expect((await story.answerTo(channel.id, answer.ts)).text).toBe("answer 1");
    expect(asked(1)[0]).toMatch(/what is a larch\?[^]*answer 0/);
    expect(asked(1).at(-1)).toBe("Bo: and a fir?");
    ana.sends({ channel: channel.id, thread: answer.ts, text: "parley, and a pine?" });
    expect((await story.answerTo(channel.id, answer.ts, 1)).text).toBe("answer 2");
    expect(asked(2).join("\n")).toMatch(/and a fir\?[^]*answer 1[^]*and a pine\?/);
    // After `/dismiss` the bot waits for a mention.
    ana.sends({ channel: channel.id, thread: answer.ts, text: "/dismiss", mentionBot: true });
    await slack.waitFor("the goodbye", () => (channel.saidByBot().length > 3 ? true : undefined));
    await slack.waitFor("the end", () => story.parley.assistant.pending() === 0 || undefined);
    bo.sends({ channel: channel.id, thread: answer.ts, text: "thanks, all" });
    bo.sends({ channel: channel.id, thread: answer.ts, text: "one more", mentionBot: true });
    await slack.waitFor("the last question", () => (story.asked().length === 4 ? true : undefined));
    expect(asked(3).at(-1)).toBe("Bo: one more");
  });
});

describe("reading the room", () => {
  test("forwarded messages, previews of links and attachments of apps are content", async () => {
    const { slack, ana, channel, root, says } = await begin();
    slack.otherBotSends(channel, "", root, {
      name: "Jira",
      attachments: [
        { pretext: "New ticket", title: "OPS-7", fields: [{ title: "Priority", value: "High" }] },
      ],
    });
    says(ana, "see", {
      attachments: [
        { from_url: "https://example.com/a", title: "A page", text: "about &lt;b&gt;" },
        { is_share: true, author_name: "Cy", text: "the old plan" },
      ],
    });
    says(ana, "and this?", {
      mentionBot: true,
      attachments: [{ is_share: true, author_name: "Cy", text: "the new plan" }],
    });
    await story.answerTo(channel.id, root);
    const [room, question] = asked(0);
    for (const words of [
      "OPS-7",
      "Priority: High",
      "Preview of https://example.com/a",
      "about <b>",
      "the old plan",
    ])
      expect(room).toContain(words);
    expect(question).toContain("and this?\n> \n> > Forwarded message of Cy:\n> > the new plan");
  });

  test("long threads come in pages; of one that is too long the newest messages are read", async () => {
    const { slack, ana, bo, channel, root, says } = await begin({ settings: { ROOM_MESSAGES: "20" } });
    slack.capHistories(15);
    for (let index = 1; index <= 40; index += 1) says(bo, `number ${index}.`);
    says(ana, "sum", { mentionBot: true });
    const answer = await story.answerTo(channel.id, root);
    expect(asked(0)[0]).not.toContain("number 20.");
    for (const index of [21, 30, 40]) expect(asked(0)[0]).toContain(`number ${index}.`);
    expect(answer.smallPrint + answer.text).toContain("the last 20 messages were read");
  });

  test("where Slack lets an app read one page a minute, the answer says what it could not read, and comes", async () => {
    const { slack, ana, bo, channel, root, says } = await begin();
    slack.capHistories(15);
    slack.limit("conversations.replies", 1);
    for (let index = 1; index <= 20; index += 1) says(bo, `number ${index}.`);
    says(ana, "sum", { mentionBot: true });
    const answer = await story.answerTo(channel.id, root);
    expect(asked(0)[0]).toContain("number 14.");
    expect(asked(0)[0]).not.toContain("number 15.");
    expect(answer.smallPrint + answer.text).toContain("Only the first 15 messages");
  });

  test("without the history scope, and where it is not in the channel, the answer says what is missing, once", async () => {
    const { slack, ana, channel, root, says } = await begin();
    slack.revokeScope("channels:history");
    says(ana, "sum", { mentionBot: true });
    const answer = await story.answerTo(channel.id, root);
    expect(answer.smallPrint + answer.text).toContain("could not be read: I lack the scope channels:history");
    expect(asked(0)).toEqual(["sum"]);
    says(ana, "again", { mentionBot: true });
    const second = await story.answerTo(channel.id, root, 1);
    expect(second.smallPrint + second.text).not.toContain("could not be read");
  });
});

describe("/summarize", () => {
  test("written in a thread it sums up the thread, in the caller's direct messages; as a slash command the channel", async () => {
    const { slack, ana, bo, channel, says } = await begin({ chat: () => "It was the cache." });
    says(bo, "it was the cache");
    says(ana, "/summarize decisions", { mentionBot: true });
    const answer = await story.answerTo(ana.directMessages, undefined);
    expect(answer.text).toContain("It was the cache.");
    expect(answer.text + answer.smallPrint).toMatch(/Read: 2 messages of 2 people, from .* UTC\./);
    expect(asked(0)[0]).toMatch(
      /^\[Said in this thread\]\n\[1\] Ana, .*\n> Login is slow\n\n\[2\] Bo, .*\n> it was the cache$/,
    );
    slack.otherBotSends(channel, "deployed v3");
    await bo.usesCommand("/summarize", "since:1d", { channel: channel.id });
    const shown = await slack.waitFor("the summary", () =>
      channel.transcript().find(({ onlyFor, text }) => onlyFor === "Bo" && text.includes("cache")),
    );
    expect(shown.text).toBeDefined();
    expect(asked(1)[0]).toContain("otherbot (an app)");
    expect(asked(1)[0]).toContain("> deployed v3");
    expect(asked(1)[0]).not.toContain("it was the cache");
  });

  test("where it is not in the channel, the remedy is said", async () => {
    const { slack, ana } = await begin();
    const other = slack.channel("other", [ana], { withBot: false });
    await ana.usesCommand("/summarize", "", { channel: other.id });
    const said = await slack.waitFor("a refusal", () =>
      slack.everything().find(({ text }) => /invitation/.test(text)),
    );
    expect(said.text).toContain("it lacks an invitation to this channel");
    expect(story.asked()).toHaveLength(0);
  });
});
