import { describe, expect, it, test } from "vitest";
import type { Person } from "../../simulators/slack/person.ts";
import type { SimulatedChannel } from "../../simulators/slack/simulator.ts";
import type { SlackStory } from "../../e2e/slack/slack-story.ts";
import { createSlackStage } from "./stage.ts";

const stage = createSlackStage();

let story: SlackStory;

describe("in a channel that is shared with another workspace", () => {
  it("its people are strangers, unless their workspace is listed; guests are members", async () => {
    let [ana, gus, pat]: Person[] = [];
    let shared!: SimulatedChannel;
    story = await stage.start();
    const { slack } = story;
    ana = slack.person("Ana");
    gus = slack.person("Gus", { isGuest: true });
    pat = slack.person("Pat", { teamId: "T0PARTNER" });
    shared = slack.channel("shared", [ana, gus, pat]);
    pat.sends({ channel: shared.id, text: "hello", mentionBot: true });
    const told = await slack.waitFor("a refusal", () => shared.saidByBot()[0]);
    expect(told).toMatchObject({ onlyFor: "Pat" });
    expect(told.text).toContain("places that it is a member of");
    for (const person of [ana, gus]) {
      const root = person.sends({ channel: shared.id, text: `from ${person.name}`, mentionBot: true });
      await story.answerTo(shared.id, root);
    }
    expect(story.asked()).toHaveLength(2);
    story = await stage.start({ settings: { ALLOW: "slack:team:T0PARTNER" } });
    pat = story.slack.person("Pat", { teamId: "T0PARTNER" });
    shared = story.slack.channel("shared", [pat]);
    const root = pat.sends({ channel: shared.id, text: "hello", mentionBot: true });
    await story.answerTo(shared.id, root);
    expect(story.asked()).toHaveLength(1);
  });
});

test("Slack's Stop of a person whom the rules exclude changes nothing, and they alone are told", async () => {
  let bo!: Person;
  story = await stage.start({
    settings: (slack) => ({ DENY: `slack:user:${(bo = slack.person("Bo")).id}` }),
  });
  const { slack } = story;
  const ana = slack.person("Ana");
  const ideas = slack.channel("ideas", [ana, bo]);
  const root = ana.sends({ channel: ideas.id, text: "hello", mentionBot: true });
  await story.answerTo(ideas.id, root);
  // This press arrives when the turn has ended.
  slack.sendEvent({
    type: "agent_session_stopped",
    channel: ideas.id,
    thread_ts: root,
    user: bo.id,
    streaming_message_ts: [],
    event_ts: root,
  });
  const told = await slack.waitFor("a refusal", () =>
    ideas.saidByBot().find(({ onlyFor }) => onlyFor === "Bo"),
  );
  expect(told.text).toContain("access rules exclude you");
  expect(slack.sessionIn(ideas.id, root)?.hasStop).not.toBe(true);
});
