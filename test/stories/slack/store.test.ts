import { DatabaseSync } from "node:sqlite";
import { describe, expect, test } from "vitest";
import type { SlackMode, SlackStory } from "../../e2e/slack/slack-story.ts";
import { createSlackStage } from "./stage.ts";

const stage = createSlackStage();

let story: SlackStory;

describe.each<SlackMode>(["socket", "http"])("over %s", (mode) => {
  test("while the store is unavailable nothing is acknowledged, and the redelivery is answered once", async () => {
    story = await stage.start({ mode, haste: 1 });
    const { slack } = story;
    const ana = slack.person("Ana");
    const other = new DatabaseSync(story.storeFile);
    other.exec("BEGIN EXCLUSIVE");
    try {
      const root = ana.sends({ channel: ana.directMessages, text: "keep this" });
      await slack.waitFor(
        "a refusal",
        () => story.logged.some((line) => line.includes("event not accepted")),
        30_000,
      );
      expect(slack.deliveries.filter(({ outcome }) => outcome === "acknowledged")).toEqual([]);
      other.exec("ROLLBACK");
      slack.clock.advance(3000);
      slack.clock.advance(1000);
      expect((await story.answerTo(ana.directMessages, root)).text).toBe("You said: keep this");
      expect(story.asked()).toHaveLength(1);
      expect(slack.badAcks).toEqual([]);
    } finally {
      other.close();
    }
  });
});

test("a command that cannot be stored is answered with the reason", async () => {
  // SQLite waits for the lock in this process, whose time a faster clock would not count.
  story = await stage.start({ haste: 1 });
  const ana = story.slack.person("Ana");
  const channel = story.slack.channel("ideas", [ana]);
  // By then what a start writes is written, which would wait for the lock too.
  const before = ana.sends({ channel: ana.directMessages, text: "before" });
  await story.answerTo(ana.directMessages, before);
  const other = new DatabaseSync(story.storeFile);
  other.exec("BEGIN EXCLUSIVE");
  try {
    const outcome = await ana.usesCommand("/ask", "hello", { channel: channel.id });
    // SQLite waits for the lock. After three seconds Slack shows that the app did not respond.
    if (outcome.kind === "acknowledged") expect(channel.transcript()[0]?.text).toMatch(/store/);
    else expect(outcome.reason).toBe("timeout");
    expect(story.asked()).toHaveLength(1);
  } finally {
    other.exec("ROLLBACK");
    other.close();
  }
});
