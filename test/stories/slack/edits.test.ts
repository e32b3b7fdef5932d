import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { startSlackStory, textOf, toStream, type SlackStory } from "../../e2e/slack/slack-story.ts";

let story: SlackStory;
let isStalled = false;
beforeEach(async () => {
  isStalled = false;
  story = await startSlackStory({
    chat(turns) {
      const answer = `You said: ${textOf(turns.at(-1) ?? { role: "", content: "" })}`;
      return isStalled ? { ...toStream("Half of an answer"), body: toHalf(), after: "hang" } : answer;
    },
  });
});
afterEach(async () => {
  expect(story.slack.badAcks).toEqual([]);
  await story.close();
});

/** The first words of an answer, without its end. */
function toHalf(): string {
  const { body } = toStream("Half of an answer");
  return String(body).split("\n\n")[0] + "\n\n";
}

const gone = (text: string) =>
  vi.waitFor(async () => expect(await story.isKept(text), text).toBe(false), { timeout: 5000, interval: 20 });
const shows = (channel: string, text: string) =>
  story.slack.waitFor(`an answer with ${text}`, () =>
    story.parley.assistant.pending() === 0
      ? story.slack
          .transcriptOf(channel)
          .find(({ author, body }) => author === "Parley" && body.includes(text))
      : undefined,
  );

test("the last question is answered anew in the same message, an older one changes only", async () => {
  const ana = story.slack.person("Ana");
  const channel = story.slack.channel("general", [ana]);
  const root = ana.sends({ channel: channel.id, text: "the vault code is 7319", mentionBot: true });
  const first = await story.answerTo(channel.id, root);
  ana.edits(root, "the vault has a code", { channel: channel.id, mentionBot: true });
  const anew = await shows(channel.id, "You said: the vault has a code");
  expect(anew.ts).toBe(first.ts);
  expect(channel.saidByBot()).toHaveLength(1);
  await gone("code is 7319");

  const second = ana.sends({ channel: channel.id, thread: root, text: "the pin is 4471" });
  await story.answerTo(channel.id, root, 1);
  const asked = story.asked().length;
  ana.edits(root, "hello", { channel: channel.id, mentionBot: true });
  await expect.poll(() => story.isKept("vault has a code")).toBe(true);
  ana.edits(second, "there is a pin", { channel: channel.id });
  await shows(channel.id, "You said: there is a pin");
  await gone("pin is 4471");
  expect(story.asked()).toHaveLength(asked + 1);
  expect(story.asked().at(-1)?.map(textOf)).toEqual([
    "hello",
    "You said: the vault has a code",
    "there is a pin",
  ]);
});

test("an answer that is under way is stopped; previews change nothing", async () => {
  const ana = story.slack.person("Ana");
  const direct = ana.directMessages;
  isStalled = true;
  const root = ana.sends({ channel: direct, text: "see https://example.com" });
  await story.slack.waitFor("half an answer", () =>
    story.slack.transcriptOf(direct).some(({ author, body }) => author === "Parley" && body.includes("Half")),
  );
  isStalled = false;
  ana.getsPreview(root, { channel: direct });
  for (const text of ["one", "two", "three"]) ana.edits(root, text, { channel: direct });
  await shows(direct, "You said: three");
  ana.getsPreview(root, { channel: direct });
  const answers = story.slack.transcriptOf(direct).filter(({ author }) => author === "Parley");
  expect(answers.map(({ body }) => body)).toEqual(["You said: three"]);
  expect(story.asked()).toHaveLength(2);
});

test("a mention that was forgotten makes the message a question", async () => {
  const ana = story.slack.person("Ana");
  const channel = story.slack.channel("general", [ana]);
  const root = ana.sends({ channel: channel.id, text: "what is this?" });
  ana.edits(root, "what is this?", { channel: channel.id, mentionBot: true });
  const answer = await story.answerTo(channel.id, root);
  expect(answer.body).toBe("You said: what is this?");
  expect(channel.saidByBot()).toHaveLength(1);
});
