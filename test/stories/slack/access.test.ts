import { afterEach, describe, expect, it } from "vitest";
import type { Person } from "../../simulators/slack/person.ts";
import type { SimulatedChannel } from "../../simulators/slack/simulator.ts";
import { startSlackStory, type SlackStory } from "../../e2e/slack/slack-story.ts";

let story: SlackStory;
afterEach(async () => {
  expect(story.slack.badAcks).toEqual([]);
  expect(story.slack.lost).toEqual([]);
  await story.close();
});

/** Every event is acknowledged, and none came twice. */
async function acknowledged(): Promise<void> {
  await story.slack.waitFor("acknowledgements", () =>
    story.slack.deliveries.every(({ outcome }) => outcome === "acknowledged"),
  );
}

describe("with ALLOW for one channel", () => {
  it("elsewhere the person alone sees one answer; nothing is stored, asked or delivered again", async () => {
    let ana!: Person;
    let allowed!: SimulatedChannel;
    story = await startSlackStory({
      settings: (slack) => {
        ana = slack.person("Ana");
        allowed = slack.channel("allowed", [ana]);
        return { ALLOW: `slack:channel:${allowed.id}` };
      },
    });
    const root = ana.sends({ channel: allowed.id, text: "hello", mentionBot: true });
    await story.answerTo(allowed.id, root);

    const other = story.slack.channel("other", [ana]);
    ana.sends({ channel: other.id, text: "the secret plan", mentionBot: true });
    ana.sends({ channel: other.id, text: "hello?", mentionBot: true, first: "message" });
    await acknowledged();
    const told = await story.slack.waitFor("a refusal", () => other.saidByBot()[0]);
    expect(told).toMatchObject({ onlyFor: "Ana", text: expect.stringContaining("You are not on the list") });
    expect(other.saidByBot()).toHaveLength(1);

    const thread = ana.sends({ channel: other.id, text: "among people" });
    ana.sends({ channel: other.id, thread, text: "and here?", mentionBot: true });
    await acknowledged();
    expect(other.saidByBot()).toHaveLength(1);

    await ana.usesCommand("/ask", "why?", { channel: other.id });
    expect(other.saidByBot().map(({ onlyFor }) => onlyFor)).toEqual(["Ana", "Ana"]);

    ana.sends({ channel: ana.directMessages, text: "directly" });
    ana.sends({ channel: ana.directMessages, text: "again" });
    await story.slack.waitFor("an answer", () => story.slack.transcriptOf(ana.directMessages).length > 2);
    await acknowledged();
    const direct = story.slack.transcriptOf(ana.directMessages).filter(({ author }) => author === "Parley");
    expect(direct).toHaveLength(1);
    expect(direct[0]?.thread).toBeDefined();

    expect(story.asked()).toHaveLength(1);
    expect(await story.isKept("the secret plan")).toBe(false);
    expect(story.slack.deliveries.some(({ attempt }) => attempt > 0)).toBe(false);
  });
});

describe("in a channel that is shared with another workspace", () => {
  it("its people are strangers, unless their workspace is listed; guests are members", async () => {
    let [ana, gus, pat]: Person[] = [];
    let shared!: SimulatedChannel;
    story = await startSlackStory();
    const { slack } = story;
    ana = slack.person("Ana");
    gus = slack.person("Gus", { isGuest: true });
    pat = slack.person("Pat", { teamId: "T0PARTNER" });
    shared = slack.channel("shared", [ana, gus, pat]);
    pat.sends({ channel: shared.id, text: "hello", mentionBot: true });
    const told = await slack.waitFor("a refusal", () => shared.saidByBot()[0]);
    expect(told).toMatchObject({ onlyFor: "Pat" });
    expect(told.text).toContain("servers and workspaces that it is a member of");
    for (const person of [ana, gus]) {
      const root = person.sends({ channel: shared.id, text: `from ${person.name}`, mentionBot: true });
      await story.answerTo(shared.id, root);
    }
    expect(story.asked()).toHaveLength(2);
    await story.close();

    story = await startSlackStory({ settings: { ALLOW: "slack:team:T0PARTNER" } });
    pat = story.slack.person("Pat", { teamId: "T0PARTNER" });
    shared = story.slack.channel("shared", [pat]);
    const root = pat.sends({ channel: shared.id, text: "hello", mentionBot: true });
    await story.answerTo(shared.id, root);
    expect(story.asked()).toHaveLength(1);
  });
});

describe("with DENY for a person", () => {
  it("their Retry and Stop change nothing, and they alone are told", async () => {
    let [ana, bo]: Person[] = [];
    let isUp = false;
    story = await startSlackStory({
      settings: (slack) => {
        bo = slack.person("Bo");
        return { DENY: `slack:user:${bo.id}` };
      },
      chat: () => (isUp ? "here you are" : { status: 500, body: "{}" }),
    });
    const { slack } = story;
    ana = slack.person("Ana");
    const ideas = slack.channel("ideas", [ana, bo!]);
    const root = ana.sends({ channel: ideas.id, text: "hello", mentionBot: true });
    const failed = await slack.waitFor(
      "a Retry button",
      () => ideas.saidByBot(root).find(({ buttons }) => buttons.some(({ label }) => label === "Retry")),
      20_000,
    );
    isUp = true;
    const asked = story.asked().length;
    await bo!.clicks(failed, "Retry", { channel: ideas.id });
    const told = await slack.waitFor("a refusal", () =>
      ideas.saidByBot().find(({ onlyFor }) => onlyFor === "Bo"),
    );
    expect(told.text).toContain("access rules exclude you");
    expect(story.asked()).toHaveLength(asked);

    // A press that arrives when the turn has ended.
    slack.sendEvent({
      type: "agent_session_stopped",
      channel: ideas.id,
      thread_ts: root,
      user: bo!.id,
      streaming_message_ts: [],
      event_ts: root,
    });
    await slack.waitFor(
      "a second refusal",
      () => ideas.saidByBot().filter(({ onlyFor }) => onlyFor === "Bo").length === 2,
    );
    expect(slack.sessionIn(ideas.id, root)?.hasStop).not.toBe(true);

    await ana.clicks(failed, "Retry", { channel: ideas.id });
    // Until the retried turn begins, the failed reply is an ended one.
    await slack.waitFor("the answer", () =>
      ideas.saidByBot(root).find(({ body }) => body.includes("here you are")),
    );
    const answer = await story.answerTo(ideas.id, root);
    expect(answer.body).toContain("here you are");

    await bo!.clicks(answer, "Details", { channel: ideas.id });
    const refusals = await slack.waitFor("a third refusal", () => {
      const alone = ideas.saidByBot().filter(({ onlyFor }) => onlyFor === "Bo");
      return alone.length === 3 && alone;
    });
    expect(refusals.at(-1)?.text).toContain("access rules exclude you");
  });
});
