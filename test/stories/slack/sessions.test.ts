import { describe, expect, test } from "vitest";
import { toStream, type SlackMode, type SlackStory } from "../../e2e/slack/slack-story.ts";
import { createSlackStage } from "./stage.ts";
import type { ScriptedAnswer } from "../../simulators/gateway/scripted-gateway.ts";

const stage = createSlackStage();

let story: SlackStory;

/** Makes an answer that begins and does not end. */
function hanging(text: string): ScriptedAnswer {
  return { body: toStream(text).body!.toString().split("\n\n")[0] + "\n\n", after: "hang" };
}

const statuses = (): string[] => story.slack.sessions.map(({ status }) => status);

async function stopIn(channel: string, thread: string): Promise<void> {
  await story.slack.waitFor("Slack's Stop", () => story.slack.sessionIn(channel, thread)?.hasStop);
}

describe.each<SlackMode>(["socket", "http"])("the session of a thread, over %s", (mode) => {
  test("is at work while the answer grows, and Slack's Stop ends that", async () => {
    story = await stage.start({ mode, chat: () => hanging("Half of it") });
    const { slack } = story;
    const ana = slack.person("Ana");
    const thread = ana.sends({ channel: ana.directMessages, text: "Tell me: everything\nabout ships" });
    await stopIn(ana.directMessages, thread);
    expect(slack.sessionIn(ana.directMessages, thread)?.title).toBe("Tell me: everything about ships");
    await slack.waitFor("the stream", () =>
      slack
        .directMessages(ana)
        .saidByBot()
        .find(({ body }) => body.includes("Half")),
    );
    ana.pressesStop(ana.directMessages, thread);
    const answer = await story.answerTo(ana.directMessages, thread);
    expect(answer.body).toContain("Half of it");
    expect(answer.smallPrint).toContain("Stopped by Ana.");
    expect(answer.stream).toBeUndefined();
    await slack.waitFor("the end", () => slack.sessionIn(ana.directMessages, thread)?.status === "active");
    expect(() => ana.pressesStop(ana.directMessages, thread)).toThrow("no Stop is shown");
  });

  test("in a channel a bystander's Stop changes nothing: the answer is shown whole", async () => {
    const text = Array.from({ length: 30 }, (_, index) => `word ${index}`).join(", ");
    story = await stage.start({ mode, chat: () => ({ ...toStream(text, 10), eventEveryMs: 30 }) });
    const { slack } = story;
    const [ana, bo] = [slack.person("Ana"), slack.person("Bo")];
    const ideas = slack.channel("ideas", [ana, bo]);
    const thread = ana.sends({ channel: ideas.id, text: "tell me", mentionBot: true });
    await stopIn(ideas.id, thread);
    bo.pressesStop(ideas.id, thread);
    await slack.waitFor("the refusal", () => ideas.transcript().find(({ onlyFor }) => onlyFor === "Bo"));
    expect((await story.answerTo(ideas.id, thread)).body).toBe(text);
    await slack.waitFor("the end", () => slack.sessionIn(ideas.id, thread)?.status === "active");
  });
});

describe("the session of a thread", () => {
  test("is begun with its title by the first answer, and not by later ones that come at once", async () => {
    story = await stage.start({ haste: 1 });
    const { slack } = story;
    const ana = slack.person("Ana");
    const ideas = slack.channel("ideas", [ana]);
    const thread = ana.sends({ channel: ideas.id, text: "hello", mentionBot: true });
    await story.answerTo(ideas.id, thread);
    await slack.waitFor("its end", () => slack.sessionIn(ideas.id, thread)?.status === "active");
    expect(slack.sessionIn(ideas.id, thread)?.title).toBe("hello");
    const before = statuses().length;
    ana.sends({ channel: ideas.id, thread, text: "again" });
    await slack.waitFor("the second answer", () => ideas.saidByBot(thread).length === 2);
    expect(statuses()).toHaveLength(before);
  });

  test("ends with a failure too", async () => {
    story = await stage.start({
      settings: { GATEWAY_FIRST_EVENT_TIMEOUT_MS: "500" },
      chat: () => ({ body: "", after: "hang" }),
    });
    const { slack } = story;
    const ana = slack.person("Ana");
    const thread = ana.sends({ channel: ana.directMessages, text: "hello" });
    await stopIn(ana.directMessages, thread);
    await slack.waitFor(
      "the end",
      () => slack.sessionIn(ana.directMessages, thread)?.status === "active",
      20_000,
    );
    expect(statuses()).toEqual(["processing", "active"]);
  });

  test("is left alone where Slack has none, and every question is answered", async () => {
    story = await stage.start({ chat: () => ({ ...toStream("an answer", 3), eventEveryMs: 100 }) });
    const { slack } = story;
    slack.switchOff("agents.sessions.setStatus");
    const ana = slack.person("Ana");
    for (const text of ["one", "two"]) {
      const thread = ana.sends({ channel: ana.directMessages, text });
      expect((await story.answerTo(ana.directMessages, thread)).body).toBe("an answer");
    }
    expect(slack.calls.filter(({ method }) => method === "agents.sessions.setStatus")).toHaveLength(1);
  });
});

test("two workspaces have sessions of their own", async () => {
  const two = await stage.startInTwo({
    chat: () => ({ ...toStream("an answer", 3), eventEveryMs: 100 }),
  });
  story = two;
  const { workspace } = two;
  const { slack } = story;
  const people = [slack, workspace].map((place) => ({ place, person: place.person("Ana") }));
  const sent = people.map(({ place, person }) => {
    const thread = person.sends({ channel: person.directMessages, text: `in ${place.teamId}` });
    return { place, channel: person.directMessages, thread };
  });
  for (const { place, channel, thread } of sent)
    await slack.waitFor("a session", () => place.sessionIn(channel, thread)?.title === `in ${place.teamId}`);
  for (const { place, channel, thread } of sent)
    await slack.waitFor("its end", () => place.sessionIn(channel, thread)?.status === "active");
  expect(slack.sessions.every(({ title }) => title.includes(slack.teamId))).toBe(true);
});
