import { afterEach, describe, expect, test } from "vitest";
import { startSlackStory, textOf, type SlackStory } from "../../e2e/slack/slack-story.ts";

let story: SlackStory;
afterEach(async () => {
  const { badAcks } = story.slack;
  await story.close();
  expect(badAcks).toEqual([]);
});

const modelsAsked = () =>
  story
    .requestsTo("/v1/chat/completions")
    .map(({ body }) => (JSON.parse(body.toString()) as { model: string }).model);

describe("Regenerate with another model on Slack", () => {
  async function people() {
    const { slack } = story;
    const [ana, bo] = [slack.person("Ana"), slack.person("Bo")];
    const channel = slack.channel("ideas", [ana, bo]);
    return { ana, bo, channel };
  }

  test("offers the others in a form and answers anew in the same message; Details names the model", async () => {
    story = await startSlackStory({
      moreModels: ["test/other-chat-model"],
      chat: (_turns, index) => `answer ${index + 1}`,
    });
    const { slack } = story;
    const { ana, bo, channel } = await people();
    const thread = ana.sends({ channel: channel.id, text: "why?", mentionBot: true });
    const first = await story.answerTo(channel.id, thread);
    await bo.clicks(first, "Other model", { channel: channel.id });
    const refused = await slack.waitFor("the refusal", () =>
      channel.transcript().find(({ onlyFor }) => onlyFor === "Bo"),
    );
    expect(refused.text).toContain("Only the person who asked, or a moderator, can do this.");
    await ana.clicks(first, "Other model", { channel: channel.id });
    const modal = await slack.waitFor("the form", () => ana.modal());
    const [input] = modal.inputs;
    expect(input).toMatchObject({ label: "Model", isOptional: false });
    expect(input?.choices).toContain("test/other-chat-model");
    expect(input?.choices).not.toContain("test/chat-model");
    expect(input?.choices).not.toContain("test/whisper");
    await ana.submitsModal({ Model: "test/other-chat-model" });
    const second = await slack.waitFor("the new answer", () =>
      channel.saidByBot().find(({ body }) => body === "answer 2"),
    );
    expect(second.ts).toBe(first.ts);
    expect(modelsAsked()).toEqual(["test/chat-model", "test/other-chat-model"]);
    const last = await story.answerTo(channel.id, thread);
    await ana.clicks(last, "Details", { channel: channel.id });
    await slack.waitFor("the receipt", () =>
      channel
        .transcript()
        .find(({ onlyFor, text }) => onlyFor === "Ana" && text.includes("test/other-chat-model")),
    );
    ana.sends({ channel: channel.id, text: "and?", thread });
    await slack.waitFor("the next question", () => (modelsAsked().length === 3 ? true : undefined));
    expect(modelsAsked().at(-1)).toBe("test/chat-model");
    expect(story.asked()[2]?.map(textOf)).toEqual(["why?", "answer 2", "and?"]);
  });

  test("submitted twice answers once: the second is told so at the field or alone", async () => {
    story = await startSlackStory({
      moreModels: ["test/other-chat-model"],
      chat: (_turns, index) => `answer ${index + 1}`,
    });
    const { slack } = story;
    const { ana, channel } = await people();
    const thread = ana.sends({ channel: channel.id, text: "why?", mentionBot: true });
    const first = await story.answerTo(channel.id, thread);
    await ana.clicks(first, "Other model", { channel: channel.id });
    await slack.waitFor("the form", () => ana.modal());
    const twice = [1, 2].map(() => ana.submitsModal({ Model: "test/other-chat-model" }));
    await Promise.all(twice);
    await slack.waitFor("the new answer", () => channel.saidByBot().find(({ body }) => body === "answer 2"));
    await slack.waitFor("why there is no third", () =>
      channel.transcript().find(({ onlyFor }) => onlyFor === "Ana"),
    );
    expect(modelsAsked()).toHaveLength(2);
  });

  test("of a private answer replaces it where only its person sees it", async () => {
    story = await startSlackStory({
      moreModels: ["test/other-chat-model"],
      chat: (_turns, index) => `secret ${index + 1}`,
    });
    const { slack } = story;
    const { ana, channel } = await people();
    await ana.usesCommand("/ask", "tell me private:yes", { channel: channel.id });
    const first = await slack.waitFor("the answer", () =>
      channel.transcript().find(({ text }) => text.includes("secret 1")),
    );
    await ana.clicks(first, "Other model", { channel: channel.id });
    await slack.waitFor("the form", () => ana.modal());
    await ana.submitsModal({ Model: "test/other-chat-model" });
    const second = await slack.waitFor("the new answer", () =>
      channel.transcript().find(({ text }) => text.includes("secret 2")),
    );
    expect(second.onlyFor).toBe("Ana");
    expect(channel.transcript().some(({ text }) => text.includes("secret 1"))).toBe(false);
  });
});
