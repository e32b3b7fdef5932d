import { expect, it } from "vitest";
import { textOf, type SentTurn } from "../../e2e/slack/slack-story.ts";
import { createSlackStage } from "./stage.ts";

const stage = createSlackStage();
const minuteMs = 60_000;
const lastOf = (turns: readonly SentTurn[]): string => textOf(turns.at(-1) ?? { role: "", content: "" });

it("what people wrote in ten minutes without Parley is answered, each once and in order, and not again", async () => {
  const story = await stage.start();
  const { slack } = story;
  const ana = slack.person("Ana");
  const bo = slack.person("Bo");
  const ideas = slack.channel("ideas", [ana, bo]);
  const root = ana.sends({ channel: ana.directMessages, text: "before #a" });
  await story.answerTo(ana.directMessages, root);
  const thread = bo.sends({ channel: ideas.id, text: "before #b", mentionBot: true });
  await story.answerTo(ideas.id, thread);
  let mention = "";
  await story.restart(() => {
    ana.sends({ channel: ana.directMessages, thread: root, text: "offline #c" });
    bo.sends({ channel: ideas.id, thread, text: "offline #d" });
    mention = ana.sends({ channel: ideas.id, text: "offline #e", mentionBot: true });
    bo.sends({ channel: ideas.id, text: "among people" });
    ana.sends({ channel: ana.directMessages, thread: root, text: "offline #f" });
  }, 10 * minuteMs);
  await story.answerTo(ideas.id, mention);
  await story.answerTo(ideas.id, thread, 1);
  const [one, two] = [1, 2].map((index) => story.answerTo(ana.directMessages, root, index));
  expect((await one)?.body).toContain("#c");
  expect((await two)?.body).toContain("#f");
  const said = (): string[] => story.asked().map((turns) => /#\w$/.exec(lastOf(turns))?.[0] ?? "");
  expect(said().toSorted((a, b) => a.localeCompare(b))).toEqual(["#a", "#b", "#c", "#d", "#e", "#f"]);
  await story.restart(() => undefined, 10 * minuteMs);
  const next = ana.sends({ channel: ana.directMessages, text: "online #g" });
  await story.answerTo(ana.directMessages, next);
  await slack.waitFor(
    "the end of the look-up",
    () => story.logged.filter((line) => line.includes("missed messages looked up")).length === 2,
  );
  expect(said()).toHaveLength(7);
});

it("of what is a day old people are told, and the last is answered when they ask for it", async () => {
  const story = await stage.start();
  const { slack } = story;
  const ana = slack.person("Ana");
  const root = ana.sends({ channel: ana.directMessages, text: "before #a" });
  await story.answerTo(ana.directMessages, root);
  await story.restart(
    () => {
      for (const label of ["#b", "#c", "#d"])
        ana.sends({ channel: ana.directMessages, thread: root, text: `offline ${label}` });
    },
    20 * 60 * minuteMs,
  );
  const told = await slack.waitFor("the sentence", () =>
    slack
      .directMessages(ana)
      .saidByBot(root)
      .find(({ text }) => text.includes("not answered")),
  );
  expect(told.text).toContain("3 messages");
  expect(story.asked()).toHaveLength(1);
  await ana.clicks(told, "Answer the last", { channel: ana.directMessages });
  await slack.waitFor("the answer", () =>
    slack
      .directMessages(ana)
      .saidByBot(root)
      .some(({ body }) => body.includes("#d")),
  );
  expect(story.asked()).toHaveLength(2);
});
