import { beforeEach, describe, expect, it } from "vitest";
import type { Person } from "../../simulators/slack/person.ts";
import type { SimulatedChannel } from "../../simulators/slack/simulator.ts";
import type { SeenMessage } from "../../simulators/slack/transcript.ts";
import type { SlackStory } from "../../e2e/slack/slack-story.ts";
import { createSlackStage } from "./stage.ts";

const stage = createSlackStage();

let story: SlackStory;
let mia: Person;
let ana: Person;
let channel: SimulatedChannel;

beforeEach(async () => {
  story = await stage.begin();
  mia = story.slack.person("Mia", { isAdmin: true });
  ana = story.slack.person("Ana");
  channel = story.slack.channel("ideas", [mia, ana]);
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
    for (const metadata of ["", "x", "null", "{}", '{"channel":"C1"}', '{"channel":"C1","action":7}'])
      expect(await mia.submitsModal({ Language: "Dutch" }, {}, metadata)).toEqual({
        errors: { "system-prompt": expect.stringMatching(/\w+ \w+ .*\./) },
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
});
