import { afterEach, describe, expect, test } from "vitest";
import type { ScriptedAnswer } from "../../simulators/gateway/scripted-gateway.ts";
import type { SeenMessage } from "../../simulators/slack/transcript.ts";
import { startSlackStory, textOf, toStream, type SlackStory } from "../../e2e/slack/slack-story.ts";

let story: SlackStory;
afterEach(async () => {
  const { badAcks } = story.slack;
  await story.close();
  expect(badAcks).toEqual([]);
});

const labels = ({ buttons }: SeenMessage) => buttons.map(({ label }) => label);

/** An answer that begins and does not end. */
function hanging(text: string): ScriptedAnswer {
  return { body: toStream(text).body!.toString().split("\n\n")[0] + "\n\n", after: "hang" };
}

/** An answer that reached its length limit. */
function cut(text: string): ScriptedAnswer {
  return { body: toStream(text).body!.toString().replace('"stop"', '"length"') };
}

describe("steering an answer on Slack", () => {
  async function people() {
    const { slack } = story;
    const [ana, bo] = [slack.person("Ana"), slack.person("Bo")];
    const channel = slack.channel("ideas", [ana, bo]);
    return { ana, bo, channel };
  }

  test("Stop ends it; bystanders are refused alone; the words stay and say who stopped it", async () => {
    story = await startSlackStory({ chat: () => hanging("Half") });
    const { slack } = story;
    const { ana, bo, channel } = await people();
    const thread = ana.sends({ channel: channel.id, text: "tell me", mentionBot: true });
    const growing = await slack.waitFor("the first words", () =>
      channel.saidByBot().find(({ body, buttons }) => body.includes("Half") && buttons.length > 0),
    );
    expect(labels(growing)).toEqual(["Stop"]);
    await bo.clicks(growing, "Stop", { channel: channel.id });
    const told = await slack.waitFor("the refusal", () =>
      channel.transcript().find(({ onlyFor }) => onlyFor === "Bo"),
    );
    expect(told.text).toContain("Only the person who asked, or a moderator, can stop this.");
    await ana.clicks(growing, "Stop", { channel: channel.id });
    const answer = await story.answerTo(channel.id, thread);
    expect(answer).toMatchObject({ ts: growing.ts, body: "Half", smallPrint: "Stopped by Ana." });
    expect(labels(answer)).toEqual(["Regenerate", "Other model", "Details"]);
    expect(await story.requestsTo("/v1/chat/completions")[0]?.leftEarly).toBe(true);
  });

  test("Slack's own Stop ends a stream the same way", async () => {
    story = await startSlackStory({ chat: () => hanging("Half of it is here") });
    const { slack } = story;
    const { ana } = await people();
    const thread = ana.sends({ channel: ana.directMessages, text: "tell me" });
    await slack.waitFor("the stream", () =>
      slack
        .directMessages(ana)
        .saidByBot()
        .find(({ body }) => body.includes("Half")),
    );
    await slack.waitFor("Slack's Stop", () => slack.sessionIn(ana.directMessages, thread)?.hasStop);
    ana.pressesStop(ana.directMessages, thread);
    const answer = await story.answerTo(ana.directMessages, thread);
    expect(answer.body).toContain("Half of it is here");
    expect(answer.smallPrint).toContain("Stopped by Ana.");
  });

  test("Regenerate answers anew in the same message; the history has the last answer", async () => {
    story = await startSlackStory({ chat: (_turns, index) => `answer ${index + 1}` });
    const { slack } = story;
    const { ana, bo, channel } = await people();
    const thread = ana.sends({ channel: channel.id, text: "why?", mentionBot: true });
    const first = await story.answerTo(channel.id, thread);
    await bo.clicks(first, "Regenerate", { channel: channel.id });
    await slack.waitFor("the refusal", () => channel.transcript().find(({ onlyFor }) => onlyFor === "Bo"));
    await ana.clicks(first, "Regenerate", { channel: channel.id });
    const second = await slack.waitFor("the new answer", () =>
      channel.saidByBot().find(({ body }) => body === "answer 2"),
    );
    expect(second.ts).toBe(first.ts);
    await story.answerTo(channel.id, thread);
    ana.sends({ channel: channel.id, text: "and?", thread });
    // After the answer and what Bo was told.
    await story.answerTo(channel.id, thread, 2);
    expect(story.asked()[2]?.map(textOf)).toEqual(["why?", "answer 2", "and?"]);
  });

  test("Regenerate of a private answer replaces it where only its person sees it", async () => {
    story = await startSlackStory({ chat: (_turns, index) => `secret ${index + 1}` });
    const { slack } = story;
    const { ana, channel } = await people();
    await ana.usesCommand("/ask", "tell me private:yes", { channel: channel.id });
    const first = await slack.waitFor("the answer", () =>
      channel.transcript().find(({ text }) => text.includes("secret 1")),
    );
    await ana.clicks(first, "Regenerate", { channel: channel.id });
    const second = await slack.waitFor("the new answer", () =>
      channel.transcript().find(({ text }) => text.includes("secret 2")),
    );
    expect(second.onlyFor).toBe("Ana");
    expect(channel.transcript().some(({ text }) => text.includes("secret 1"))).toBe(false);
  });

  test("Continue joins the rest to the same message", async () => {
    const parts = ["One two thr", "ee four."];
    story = await startSlackStory({
      chat: (_turns, index) => (index === 0 ? cut(parts[0]!) : parts[1]!),
    });
    const { slack } = story;
    const { ana, channel } = await people();
    const thread = ana.sends({ channel: channel.id, text: "count", mentionBot: true });
    const first = await story.answerTo(channel.id, thread);
    expect(labels(first)).toEqual(["Regenerate", "Other model", "Continue", "Details"]);
    await ana.clicks(first, "Continue", { channel: channel.id });
    const whole = await slack.waitFor("the whole answer", () =>
      channel.saidByBot().find(({ body }) => body === "One two three four."),
    );
    expect(whole.ts).toBe(first.ts);
    const last = await story.answerTo(channel.id, thread);
    expect(labels(last)).toEqual(["Regenerate", "Other model", "Details"]);
    ana.sends({ channel: channel.id, text: "go on", thread });
    await story.answerTo(channel.id, thread, 1);
    expect(story.asked()[2]?.map(textOf)).toEqual(["count", "One two three four.", "go on"]);
  });
});
