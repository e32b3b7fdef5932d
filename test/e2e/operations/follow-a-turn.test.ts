import { afterEach, expect, it } from "vitest";
import { createLog } from "../../../src/operations/log.ts";
import { startSlackStory, toStream, type SlackStory } from "../slack/slack-story.ts";

let story: SlackStory | undefined;
afterEach(async () => {
  await story?.close();
  story = undefined;
});

interface Line {
  readonly level: string;
  readonly msg: string;
  readonly turn?: string;
  readonly requestId?: string;
  readonly [field: string]: unknown;
}

const linesOf = ({ logged }: SlackStory): Line[] => logged.map((line) => JSON.parse(line) as Line);
const log = (lines: string[]) =>
  createLog({ level: "debug", secrets: [], write: (line) => lines.push(line) });
const messagesOf = (lines: readonly Line[]): string[] => [...new Set(lines.map(({ msg }) => msg))];

it("one id leads through every log line of a turn, to the gateway's own request id", async () => {
  story = await startSlackStory({
    log,
    chat: (_, index) => ({
      ...toStream("Because it rains."),
      headers: { "content-type": "text/event-stream", "x-request-id": `req-${index}` },
    }),
  });
  const people = [story.slack.person("Ann"), story.slack.person("Ben")];
  const channel = story.slack.channel("general", people);
  for (const [index, person] of people.entries()) {
    const question = person.sends({ channel: channel.id, text: "Why is it wet?", mentionBot: true });
    await story.answerTo(channel.id, question);
    const lines = linesOf(story);
    const received = lines.find(({ msg, turn }) => msg === "event received" && turn?.includes(question));
    const own = lines.filter(({ turn }) => turn === received?.turn);
    const steps = ["event received", "turn started", "gateway request", "reply ended", "turn ended"];
    expect(messagesOf(own).filter((msg) => steps.includes(msg))).toEqual(steps);
    expect(own.find(({ requestId }) => requestId !== undefined)?.requestId).toBe(`req-${index}`);
    expect(own.find(({ msg }) => msg === "turn ended")).toMatchObject({
      level: "info",
      platform: "slack",
      outcome: "complete",
      attempt: 1,
    });
  }
});

it("a failed call and the run that repeats it carry the same id", async () => {
  story = await startSlackStory({
    log,
    chat: (_, index) =>
      index < 2
        ? { status: 400, body: '{"error":{"message":"no"}}', headers: { "x-request-id": "req-bad" } }
        : toStream("Now it works."),
  });
  const ann = story.slack.person("Ann");
  const channel = story.slack.channel("general", [ann]);
  const question = ann.sends({ channel: channel.id, text: "Try this", mentionBot: true });
  const answer = await story.answerTo(channel.id, question);
  const failed = linesOf(story).find(({ msg }) => msg === "turn failed");
  expect(failed?.turn).toContain(question);
  expect(JSON.stringify(failed)).toContain("req-bad");
  expect(answer.text).not.toContain("req-bad");
});
