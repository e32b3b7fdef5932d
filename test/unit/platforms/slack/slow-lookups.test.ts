import { afterEach, beforeEach, describe, expect, test } from "vitest";
import type { IncomingMessage } from "../../../../src/core/events.ts";
import type { SimulatedChannel } from "../../../simulators/slack/simulator.ts";
import type { Person } from "../../../simulators/slack/person.ts";
import { openSlackHarness, type SlackHarness } from "../../../support/slack-harness.ts";

/** As long as the client waits for a response. */
const slowMs = 20_000;
const lookups = ["users.info", "files.info", "conversations.history", "conversations.replies"];

let harness: SlackHarness;
let ana: Person;
let bo: Person;
let channel: SimulatedChannel;
beforeEach(async () => {
  harness = await openSlackHarness();
  ana = harness.slack.person("Ana");
  bo = harness.slack.person("Bo");
  channel = harness.slack.channel("ideas", [ana, bo]);
  for (const method of lookups) harness.slack.delay(method, slowMs);
});
afterEach(async () => {
  const { slack } = harness;
  await slack.waitFor("acknowledgements", () =>
    slack.deliveries.every(({ outcome }) => outcome !== "waiting"),
  );
  const late = slack.deliveries.filter(({ outcome }) => outcome !== "acknowledged");
  expect(late.map(({ what, outcome }) => `${what}: ${outcome}`)).toEqual([]);
  expect(slack.badAcks).toEqual([]);
  await harness.close();
});

const messages = () =>
  harness.receiver.events.filter((event): event is IncomingMessage => event.kind === "message");
const nextMessage = () => harness.slack.waitFor("a message", () => messages()[0]);
const file = { name: "notes.txt", mediaType: "text/plain", bytes: new Uint8Array([65]) };

describe("while Slack's lookups take 20 seconds, everything is acknowledged in time:", () => {
  test("a mention of several people with a file that has only an id, which the turn looks up", async () => {
    ana.sends({
      channel: channel.id,
      markup: `<@${harness.slack.botUserId}> what do <@${bo.id}> and <@${ana.id}> say?`,
      files: [{ ...file, extra: { file_access: "check_file_info" } }],
    });
    const { attachments } = await nextMessage();
    expect(attachments).toHaveLength(1);
    harness.slack.delay("files.info", 0);
    const [attachment] = attachments;
    const bytes = await harness.platform.download(attachment!, {
      maxBytes: 100,
      signal: new AbortController().signal,
    });
    expect([...bytes]).toEqual([65]);
  });

  test("a mention with such a file, and a reply in its thread right after it, which is for the bot too", async () => {
    const files = [{ ...file, extra: { file_access: "check_file_info" } }];
    const thread = ana.sends({ channel: channel.id, text: "look", mentionBot: true, files });
    bo.sends({ channel: channel.id, thread, text: "and here" });
    await harness.slack.waitFor("both", () => messages().length === 2);
    expect(messages().map(({ text }) => text)).toEqual(["look", "and here"]);
    expect(new Set(messages().map(({ conversationId }) => conversationId)).size).toBe(1);
  });

  test("a slash command whose store is slow too", async () => {
    harness.receiver.failures = 1000;
    await harness.clock.passing(ana.usesCommand("/ask", "hello", { channel: channel.id }));
    harness.receiver.failures = 0;
  });

  test("a slash command that opens a form", async () => {
    harness.slack.delay("views.open", slowMs);
    await harness.clock.passing(ana.usesCommand("/ask", "", { channel: channel.id }));
  });

  test("a form about a message: it stays open, and is accepted when Slack has responded", async () => {
    const ts = bo.sends({ channel: channel.id, text: "the sky" });
    await harness.clock.passing(ana.usesShortcut("Ask about this", ts, { channel: channel.id }));
    await harness.slack.waitFor("the form", () => ana.modal());
    expect(await harness.clock.passing(ana.submitsModal({ Prompt: "why?" }))).not.toHaveProperty("errors");
    await harness.slack.waitFor("the call", () => harness.receiver.events.length === 1);
    expect(harness.receiver.events[0]).toMatchObject({ subject: { text: "the sky" } });
  });

  test("what people do in the app's tabs, and Slack's own Stop", async () => {
    harness.slack.delay("assistant.threads.setSuggestedPrompts", slowMs);
    harness.slack.delay("agents.sessions.setStatus", slowMs);
    ana.opensMessagesTab();
    // The press can arrive when Stop is not shown any more.
    harness.slack.sendEvent({
      type: "agent_session_stopped",
      channel: ana.directMessages,
      thread_ts: "1700000000.000001",
      user: ana.id,
      streaming_message_ts: [],
      event_ts: "1700000000.000001",
    });
    await harness.slack.waitFor("Stop", () => harness.receiver.cancelled.length === 1);
  });
});

describe("the files of a mention", () => {
  test("are those of its event: nothing is looked up, also where there are none", async () => {
    const where = { channel: channel.id, mentionBot: true, messageAfterMs: 60_000 };
    ana.sends({ ...where, text: "look", files: [file] });
    ana.sends({ ...where, text: "and without" });
    await harness.slack.waitFor("both", () => messages().length === 2);
    expect(messages().map(({ attachments }) => attachments.map(({ name }) => name))).toEqual([
      ["notes.txt"],
      [],
    ]);
    const asked = harness.slack.calls.map(({ method }) => method);
    expect(asked.filter((method) => method.startsWith("conversations."))).toEqual([]);
  });

  test("come with its message event where its own event lacks them", async () => {
    const { receiver, slack } = harness;
    const where = { channel: channel.id, mentionBot: true, mentionLacksFiles: true };
    ana.sends({ ...where, text: "look", files: [file], messageAfterMs: 60_000 });
    expect((await nextMessage()).attachments).toEqual([]);
    await slack.waitFor("the acknowledgement", () => slack.deliveries[0]?.outcome === "acknowledged");
    slack.clock.advance(60_000);
    await slack.waitFor("the files", () => receiver.edits.length === 1);
    const [edit] = receiver.edits;
    expect(edit?.key).toBe(messages()[0]?.key);
    const content = await edit?.read({ text: "look", attachments: [] });
    expect(content).toMatchObject({ text: "look", attachments: [{ name: "notes.txt" }] });
  });
});
