import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { Person } from "../../simulators/slack/person.ts";
import type { SimulatedChannel } from "../../simulators/slack/simulator.ts";
import type { SeenMessage } from "../../simulators/slack/transcript.ts";
import { startSlackStory, type SlackStory } from "../../e2e/slack/slack-story.ts";

let story: SlackStory;
let mia: Person;
let ana: Person;
let channel: SimulatedChannel;

beforeEach(async () => {
  story = await startSlackStory();
  mia = story.slack.person("Mia", { isAdmin: true });
  ana = story.slack.person("Ana");
  channel = story.slack.channel("ideas", [mia, ana]);
});
afterEach(async () => {
  expect(story.slack.badAcks).toEqual([]);
  expect(story.slack.lost).toEqual([]);
  await story.close();
});

/** Uses `/settings` in the channel and resolves to the private answer. */
async function settings(person: Person, text: string): Promise<SeenMessage> {
  const before = channel.saidByBot().length;
  await person.usesCommand("/settings", text, { channel: channel.id });
  const answer = await story.slack.waitFor("the settings", () =>
    channel
      .saidByBot()
      .slice(before)
      .find((message) => !message.text.startsWith("Working on it")),
  );
  expect(answer.onlyFor).toBe(person.name);
  return answer;
}

async function mention(person: Person, text: string): Promise<SeenMessage> {
  const root = person.sends({ channel: channel.id, text, mentionBot: true });
  return await story.answerTo(channel.id, root);
}

function lastRequest() {
  const { body } = story.requestsTo("/v1/chat/completions").at(-1)!;
  return JSON.parse(body.toString("utf8")) as { model: string; messages: { content: string }[] };
}

describe("/settings on Slack", () => {
  it("an admin's choice is in force for a person in the channel, and the person's own wins over it", async () => {
    const saved = await settings(mia, "name:chat-model value:test/image-model for:channel");
    expect(saved.text).toContain("Saved for this channel");
    await mention(ana, "one");
    expect(lastRequest().model).toBe("test/image-model");
    expect((await settings(ana, "")).text).toContain("`test/image-model` (from this channel)");
    const refused = await settings(ana, "name:chat-model value:test/whisper for:workspace");
    expect(refused.text).toContain(
      "Only those who manage this workspace, and Parley's admins, can change the settings of this workspace.",
    );
    await settings(ana, "name:chat-model value:test/whisper for:me");
    await mention(ana, "two");
    expect(lastRequest().model).toBe("test/whisper");
    const root = ana.sends({ channel: channel.id, text: "three", mentionBot: true });
    await story.answerTo(channel.id, root);
    ana.sends({
      channel: channel.id,
      thread: root,
      text: "/settings name:chat-model value:test/chat-model for:here",
      mentionBot: true,
    });
    await story.slack.waitFor("the answer", () =>
      story.slack
        .transcriptOf(ana.directMessages)
        .concat(channel.saidByBot())
        .find(({ text }) => text.includes("Saved for this conversation")),
    );
    ana.sends({ channel: channel.id, thread: root, text: "four" });
    await story.slack.waitFor("the fourth request", () => story.asked().length === 4);
    expect(lastRequest().model).toBe("test/chat-model");
    await story.slack.waitFor("the fourth answer", () =>
      channel.saidByBot(root).find(({ text }) => text === "You said: four"),
    );
    await settings(ana, "name:chat-model value:default for:me");
    await mention(ana, "five");
    expect(lastRequest().model).toBe("test/image-model");
  });

  it("calm: one post, complete; in the channel itself; every message; in a language", async () => {
    await settings(mia, "name:calm value:on for:workspace");
    await settings(mia, "name:answer-to value:every-message for:channel");
    await settings(mia, "name:answer-in value:channel for:channel");
    await settings(mia, "name:language value:Deutsch for:channel");
    ana.sends({ channel: channel.id, text: "good day, everybody" });
    const shown = () => channel.saidByBot().filter(({ onlyFor }) => onlyFor === undefined);
    const first = await story.slack.waitFor("an answer", () => shown()[0]);
    expect(first).toMatchObject({ text: "You said: good day, everybody", edits: 0, thread: undefined });
    expect(lastRequest().messages[0]?.content).toContain("Always answer in German");
    ana.sends({ channel: channel.id, text: "what did I say?" });
    await story.slack.waitFor("a second answer", () => shown()[1]);
    expect(
      lastRequest()
        .messages.slice(1)
        .map(({ content }) => content),
    ).toEqual(["good day, everybody", "You said: good day, everybody", "what did I say?"]);
  });

  it("as a form: an admin opens it, sees what is wrong at its field, and saves", async () => {
    const answer = await settings(mia, "");
    await mia.chooses(answer, "This channel: answers", { channel: channel.id });
    expect(mia.modal()).toMatchObject({ title: "Answers" });
    expect(mia.modal()?.inputs.map(({ label, type }) => [label, type])).toEqual([
      ["System prompt", "plain_text_input"],
      ["Language", "plain_text_input"],
      ["Answer length", "static_select"],
      ["Temperature", "plain_text_input"],
      ["Calm", "static_select"],
    ]);
    expect(await mia.submitsModal({ Temperature: "abc", Language: "Klingonese" })).toEqual({
      errors: {
        temperature: "Temperature is a number from 0 to 2.",
        language: "Language is automatic or a language, such as German, Deutsch or de.",
      },
    });
    await mia.submitsModal({ Temperature: "0.5", Language: "Dutch", Calm: "on" });
    const saved = await story.slack.waitFor("the notice", () =>
      channel.saidByBot().find(({ text }) => text.includes("Saved for this channel.")),
    );
    expect(saved.onlyFor).toBe("Mia");
    await mention(ana, "hello");
    expect(lastRequest()).toMatchObject({ temperature: 0.5 });
    expect(lastRequest().messages[0]?.content).toContain("Always answer in Dutch");
  });

  it("a member is offered no forms of places", async () => {
    const answer = await settings(ana, "");
    expect(answer.choices.map(({ label }) => label)).toEqual(["For me: models", "For me: answers"]);
    await ana.chooses(answer, "For me: answers", { channel: channel.id });
    await ana.submitsModal({ Language: "French", "Answer length": "short" });
    await story.slack.waitFor("the notice", () =>
      channel.saidByBot().find(({ text }) => text.includes("Saved for yourself.")),
    );
    await mention(ana, "hello");
    expect(lastRequest().messages[0]?.content).toContain("Keep every answer short");
    expect(lastRequest().messages[0]?.content).toContain("Always answer in French");
  });
});
