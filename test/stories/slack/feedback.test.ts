import { describe, expect, test } from "vitest";
import { type SlackMode, type SlackStory } from "../../e2e/slack/slack-story.ts";
import { createSlackStage } from "./stage.ts";
import type { SimulatedWorkspace } from "../../simulators/slack/simulated-workspace.ts";

const stage = createSlackStage();

let story: SlackStory;

/** Returns the ratings as the metrics count them, such as `good 1`. */
async function counted(): Promise<string[]> {
  const metrics = await (await fetch(`${story.parley.url}/metrics`)).text();
  return Array.from(
    metrics.matchAll(/^parley_ratings_total\{.*rating="(\w+)".*\} (\d+)$/gm),
    ([, rating = "", count = ""]) => `${rating} ${count}`,
  ).toSorted();
}

describe.each<SlackMode>(["socket", "http"])("feedback below an answer, over %s", (mode) => {
  test("is kept once for each person, and can be changed; each alone is thanked", async () => {
    story = await stage.start({ mode });
    const { slack } = story;
    const [ana, bo] = [slack.person("Ana"), slack.person("Bo", { locale: "de-DE" })];
    const ideas = slack.channel("ideas", [ana, bo]);
    const where = { channel: ideas.id };
    const thread = ana.sends({ channel: ideas.id, text: "hello", mentionBot: true });
    const answer = await story.answerTo(ideas.id, thread);
    expect(answer.feedback).toMatchObject({ good: { label: "Good answer" }, bad: { label: "Bad answer" } });
    for (const rating of ["good", "good", "bad"] as const)
      expect(await ana.rates(answer, rating, where)).toMatchObject({ kind: "acknowledged" });
    await bo.rates(answer, "good", where);
    const notices = await slack.waitFor("four notices", () => {
      const found = ideas.transcript().filter(({ onlyFor }) => onlyFor !== undefined);
      return found.length === 4 && found;
    });
    expect(notices.map(({ onlyFor }) => onlyFor)).toEqual(["Ana", "Ana", "Ana", "Bo"]);
    expect(notices[0]?.text).toContain("Thank you");
    expect(notices[3]?.text).toContain("Danke");
    expect(await counted()).toEqual(["bad 1", "good 2"]);
  });

  test("of an answer that was forgotten is refused in words, and so is that of who may not use Parley", async () => {
    let eveId = "";
    story = await stage.start({
      mode,
      settings: (slack) => {
        eveId = slack.person("Eve").id;
        return { DENY: `slack:user:${eveId}` };
      },
    });
    const { slack } = story;
    const ana = slack.person("Ana");
    const eve = slack.person("Eve", { id: eveId });
    const ideas = slack.channel("ideas", [ana, eve]);
    const where = { channel: ideas.id };
    const thread = ana.sends({ ...where, text: "hello", mentionBot: true });
    const answer = await story.answerTo(ideas.id, thread);
    await eve.rates(answer, "bad", where);
    const toldTo = (name: string, words: string) =>
      slack.waitFor(`"${words}" to ${name}`, () =>
        ideas.transcript().find(({ onlyFor, text }) => onlyFor === name && text.includes(words)),
      );
    await toldTo("Eve", "access rules exclude you");
    ana.sends({ ...where, thread, text: "/forget where:here", mentionBot: true });
    const asked = await slack.waitFor("the question", () =>
      slack
        .directMessages(ana)
        .saidByBot()
        .find(({ buttons }) => buttons.length > 0),
    );
    await ana.clicks(asked, asked.buttons[0]!.label, { channel: ana.directMessages });
    await slack.waitFor("the end", () =>
      slack.everything().some(({ text }) => text.includes("Removed in this")),
    );
    await ana.rates(answer, "good", where);
    await toldTo("Ana", "no longer stored");
    expect(await counted()).toEqual([]);
  });
});

describe("feedback buttons", () => {
  test("that Slack refuses leave the answer as it is", async () => {
    story = await stage.start({ chat: () => "A table:\n\n| a | b |\n| --- | --- |\n| 1 | 2 |" });
    const { slack } = story;
    const ana = slack.person("Ana");
    slack.fail("chat.stopStream", { error: "invalid_blocks" });
    slack.fail("chat.postMessage", { error: "invalid_blocks" });
    slack.fail("chat.update", { error: "invalid_blocks" });
    const ideas = slack.channel("ideas", [ana]);
    const thread = ana.sends({ channel: ideas.id, text: "hello", mentionBot: true });
    const answer = await story.answerTo(ideas.id, thread);
    expect(answer.body).toContain("| a | b |");
  });

  test("are not below a failure", async () => {
    story = await stage.start({ chat: () => ({ status: 400, body: "{}" }) });
    const ana = story.slack.person("Ana");
    const thread = ana.sends({ channel: ana.directMessages, text: "hello" });
    expect((await story.answerTo(ana.directMessages, thread)).feedback).toBeUndefined();
  });
});

test("people of two workspaces rate answers of their own, and nobody those of the other", async () => {
  const two = await stage.startInTwo();
  story = two;
  const { workspace } = two;
  const { slack } = story;
  const answers = [];
  for (const place of [slack, workspace] as SimulatedWorkspace[]) {
    const person = place.person("Ana");
    const where = { channel: person.directMessages };
    const thread = person.sends({ ...where, text: "hello" });
    const answer = await slack.waitFor("the answer", () =>
      place
        .directMessages(person)
        .saidByBot(thread)
        .find(({ feedback }) => feedback !== undefined),
    );
    answers.push({ place, person, where, answer });
    await person.rates(answer, "good", where);
  }
  expect(await counted()).toEqual(["good 2"]);
  const [one, other] = answers as [(typeof answers)[number], (typeof answers)[number]];
  // The press carries the value of the other workspace's answer.
  await one.person.rates({ ...one.answer, feedback: other.answer.feedback }, "bad", one.where);
  expect(await counted()).toEqual(["good 2"]);
});
