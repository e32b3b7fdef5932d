import { describe, expect, test } from "vitest";
import { type SlackMode, type SlackStory } from "../../e2e/slack/slack-story.ts";
import { createSlackStage } from "./stage.ts";
import type { SimulatedChannel } from "../../simulators/slack/simulator.ts";

const stage = createSlackStage();

let story: SlackStory;

const welcomeIn = (channel: SimulatedChannel) =>
  story.slack.waitFor("the welcome", () => channel.saidByBot().find(({ text }) => text.includes("Parley")));

/** Resolves when the last event was acknowledged and Parley has answered what came after it. */
async function settled(
  channel: SimulatedChannel,
  person: ReturnType<SlackStory["slack"]["person"]>,
): Promise<void> {
  const thread = person.sends({ channel: channel.id, text: "hello", mentionBot: true });
  await story.slack.waitFor("the answer", () => channel.saidByBot(thread)[0]);
}

describe.each<SlackMode>(["socket", "http"])("invited to a channel, over %s, Parley", (mode) => {
  test("says once what it does, in the language of who invited it", async () => {
    story = await stage.begin({}, mode);
    const { slack } = story;
    const [ana, uwe] = [slack.person("Ana"), slack.person("Uwe", { locale: "de-DE" })];
    const ideas = slack.channel("ideas", [ana], { withBot: false });
    ana.invitesBot(ideas.id);
    const welcome = await welcomeIn(ideas);
    expect(welcome).toMatchObject({ thread: undefined, onlyFor: undefined, pings: [] });
    expect(welcome.text).toContain("Mention me in a message");
    expect(welcome.text).toContain("/help");
    slack.redeliver("member_joined_channel");
    ideas.add(uwe);
    ideas.removeBot();
    ana.invitesBot(ideas.id);
    await settled(ideas, ana);
    expect(ideas.saidByBot().filter(({ text }) => text.includes("Mention me"))).toHaveLength(1);
    const plans = slack.channel("plans", [uwe], { withBot: false });
    uwe.invitesBot(plans.id);
    expect((await welcomeIn(plans)).text).toContain("Erwähne mich");
  });

  test("says nothing where the rules refuse it", async () => {
    let denied = "";
    story = await stage.start({
      mode,
      settings: (slack) => {
        denied = slack.channel("secret", [], { withBot: false }).id;
        return { DENY: `slack:channel:${denied}` };
      },
    });
    const { slack } = story;
    const ana = slack.person("Ana");
    const open = slack.channel("open", [ana], { withBot: false });
    slack.sendEvent({
      type: "member_joined_channel",
      user: slack.botUserId,
      channel: denied,
      channel_type: "C",
      team: slack.teamId,
      inviter: ana.id,
      event_ts: "1700000000.000100",
    });
    ana.invitesBot(open.id);
    await welcomeIn(open);
    expect(
      slack.calls.filter(({ method, args }) => method === "chat.postMessage" && args["channel"] === denied),
    ).toEqual([]);
  });
});

test("two workspaces: each has its welcome", async () => {
  const two = await stage.startInTwo();
  story = two;
  const { workspace } = two;
  const { slack } = story;
  for (const place of [slack, workspace]) {
    const ana = place.person("Ana");
    const ideas = place.channel("ideas", [ana], { withBot: false });
    ana.invitesBot(ideas.id);
    await welcomeIn(ideas);
  }
});
