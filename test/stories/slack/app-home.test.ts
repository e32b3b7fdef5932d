import { afterEach, describe, expect, test } from "vitest";
import type { Person } from "../../simulators/slack/person.ts";
import { type SlackMode, type SlackStory } from "../../e2e/slack/slack-story.ts";
import { createSlackStage } from "./stage.ts";

const stage = createSlackStage();

let story: SlackStory;
afterEach(() => {
  const { calls } = story.slack;
  expect(calls.filter(({ method, outcome }) => method === "views.publish" && outcome !== "ok")).toEqual([]);
});

/** Resolves to the text of a person's Home tab when it contains the words. */
function shows(person: Person, words: string): Promise<string> {
  return story.slack.waitFor(`"${words}" at home`, () => {
    const text = person.home()?.text ?? "";
    return text.includes(words) && text;
  });
}

describe.each<SlackMode>(["socket", "http"])("the Home tab, over %s", (mode) => {
  test("says how Parley is used, what is set and what was used, in the person's language", async () => {
    story = await stage.start({ mode, settings: { BUDGET_PERSON_DAY_USD: "1" } });
    const [ana, uwe] = [story.slack.person("Ana"), story.slack.person("Uwe", { locale: "de-DE" })];
    const thread = ana.sends({ channel: ana.directMessages, text: "hello" });
    await story.answerTo(ana.directMessages, thread);
    for (const person of [ana, uwe]) person.opensHome();
    const english = await shows(ana, "Your usage");
    expect(english).toContain("In a channel, mention me");
    expect(english).toContain("`/ask`");
    expect(english).toContain("Chat model: `test/chat-model`");
    expect(english).toMatch(/\*Today\*\nCalls: 1/);
    expect(english).not.toContain("**");
    expect(english).toMatch(/Your budget today: \*~\$[\d.]+\* left/);
    const german = await shows(uwe, "Dein Verbrauch");
    expect(german).toContain("So verwendest du Parley");
    expect(german).not.toContain("Calls");
  });

  test("opens the form of my settings, and shows at once what I have changed in it", async () => {
    story = await stage.start({ mode });
    const ana = story.slack.person("Ana");
    ana.opensHome();
    await shows(ana, "Your settings");
    expect(await ana.choosesAtHome("For me: answers")).toMatchObject({ kind: "acknowledged" });
    await story.slack.waitFor("the form", () => ana.modal());
    expect(await ana.submitsModal({ Language: "German" })).toMatchObject({ kind: "acknowledged" });
    await shows(ana, "Deine Einstellungen");
  });

  test("says why, to who may not use Parley", async () => {
    story = await stage.start({ mode, settings: { ALLOW: "slack:channel:C0ELSEWHERE" } });
    const ana = story.slack.person("Ana");
    ana.opensHome();
    const text = await shows(ana, ":warning:");
    expect(text).toContain("How to use Parley");
    expect(text).not.toContain("Your usage");
    expect(ana.home()?.choices).toEqual([]);
  });
});

test("each workspace has Home tabs of its own; what a person sets in one is not set in the other", async () => {
  const two = await stage.startInTwo();
  story = two;
  const { workspace } = two;
  const [ana, other] = [story.slack.person("Ana"), workspace.person("Ana")];
  const thread = ana.sends({ channel: ana.directMessages, text: "hello" });
  await story.answerTo(ana.directMessages, thread);
  for (const person of [ana, other]) person.opensHome();
  expect(await shows(ana, "Your usage")).toContain("Calls: 1");
  expect(await shows(other, "Your usage")).toContain("Calls: 0");
  const tokens = story.slack.calls
    .filter(({ method }) => method === "views.publish")
    .map(({ token }) => token);
  expect(new Set(tokens)).toEqual(new Set([story.slack.botToken, workspace.botToken]));
});
