import { afterEach, expect, test } from "vitest";
import { fixture } from "../../fixtures/fixtures.ts";
import { startSlackStory, textOf, type SlackStory } from "../../e2e/slack/slack-story.ts";

let story: SlackStory;
afterEach(() => story.close());

const json = { "content-type": "application/json" };

test("Fix transcript takes better words and answers anew in the same message; a bystander is refused", async () => {
  story = await startSlackStory({
    transcription: () => ({ body: JSON.stringify({ text: "the meeting moves to Tuesday" }), headers: json }),
  });
  const ana = story.slack.person("Ana");
  const eve = story.slack.person("Eve");
  const channel = story.slack.channel("general", [ana, eve]);
  const clip = { name: "clip.m4a", mediaType: "audio/mp4", bytes: await fixture("voice.m4a") };
  const root = ana.sends({ channel: channel.id, text: "listen", mentionBot: true, files: [clip] });
  const answer = await story.answerTo(channel.id, root);
  expect(answer.text).toContain("the meeting moves to Tuesday");
  await eve.clicks(answer, "Fix transcript", { channel: channel.id });
  const refused = await story.slack.waitFor("the refusal", () =>
    channel.transcript().find(({ onlyFor }) => onlyFor === "Eve"),
  );
  expect(refused.text).toContain("Only the person who asked, or a moderator, can do this.");
  await ana.clicks(answer, "Fix transcript", { channel: channel.id });
  const modal = await story.slack.waitFor("the form", () => ana.modal());
  expect(modal.inputs.map(({ label, isOptional }) => [label, isOptional])).toEqual([["clip.m4a", false]]);
  await ana.submitsModal({ "clip.m4a": "the meeting moves to Thursday" });
  const again = await story.slack.waitFor("the new answer", () =>
    channel.transcript().find(({ text }) => text.includes("Thursday") && text.includes("You said")),
  );
  expect(again.ts).toBe(answer.ts);
  expect(again.text).not.toContain("Tuesday");
  expect(textOf(story.asked()[1]!.at(-1)!)).toContain("the meeting moves to Thursday");
  await story.slack.waitFor("the end of the turn", () => story.parley.assistant.pending() === 0 || undefined);
  expect(await story.isKept("moves to Tuesday")).toBe(false);
});

test("Fix transcript of /transcribe replaces the transcript, in the same message", async () => {
  story = await startSlackStory({
    transcription: () => ({ body: JSON.stringify({ text: "the meeting moves to Tuesday" }), headers: json }),
  });
  const ana = story.slack.person("Ana");
  const channel = story.slack.channel("general", [ana]);
  const clip = { name: "clip.m4a", mediaType: "audio/mp4", bytes: await fixture("voice.m4a") };
  await ana.usesCommand("/transcribe", "", { channel: channel.id });
  await ana.submitsModal({}, { File: clip });
  const answer = await story.answerTo(channel.id, undefined);
  expect(answer.text).toContain("the meeting moves to Tuesday");
  await ana.clicks(answer, "Fix transcript", { channel: channel.id });
  await story.slack.waitFor("the form", () => ana.modal());
  await ana.submitsModal({ "clip.m4a": "the meeting moves to Thursday" });
  const again = await story.slack.waitFor("the right words", () =>
    channel.transcript().find(({ text }) => text.includes("Thursday")),
  );
  expect(again.ts).toBe(answer.ts);
  expect(again.text).not.toContain("Tuesday");
  await story.slack.waitFor("the end of the turn", () => story.parley.assistant.pending() === 0 || undefined);
  expect(story.asked()).toHaveLength(0);
  expect(await story.isKept("moves to Tuesday")).toBe(false);
});
