import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { toNotice } from "../../../../src/core/error-messages.ts";
import { isParleyError } from "../../../../src/core/errors.ts";
import type { Attachment, IncomingMessage } from "../../../../src/core/events.ts";
import type { Reply } from "../../../../src/core/reply.ts";
import type { SlackMessageInfo, MessageRef } from "../../../../src/platforms/slack/address.ts";
import { createPostedMessages } from "../../../../src/platforms/slack/reply/posted-messages.ts";
import { fixture } from "../../../fixtures/fixtures.ts";
import type { Person } from "../../../simulators/slack/person.ts";
import type { SentFile } from "../../../simulators/slack/sent-message.ts";
import type { SimulatedChannel } from "../../../simulators/slack/simulator.ts";
import { openSlackHarness, type SlackHarness } from "../../../support/slack-harness.ts";

describe("files", () => {
  let harness: SlackHarness;
  beforeEach(async () => {
    harness = await openSlackHarness();
  });
  afterEach(() => harness.close());

  /** Returns the attachment as it reaches the assistant. */
  async function sent(file: SentFile): Promise<Attachment> {
    const ana = harness.slack.person("Ana");
    ana.sends({ channel: ana.directMessages, files: [file] });
    const event = await harness.slack.waitFor("the message", () => harness.receiver.events[0]);
    const attachment = event.kind === "message" ? event.attachments[0] : undefined;
    if (attachment === undefined) throw new Error("no attachment");
    return attachment;
  }

  const download = (attachment: Attachment, maxBytes = 1_000_000) =>
    harness.platform.download(attachment, { maxBytes, signal: AbortSignal.timeout(5000) });

  const failure = (attachment: Attachment, maxBytes?: number) =>
    download(attachment, maxBytes).then(
      () => undefined,
      (error: unknown) => (isParleyError(error) ? error : undefined),
    );

  const picture = async (): Promise<SentFile> => ({
    name: "picture.png",
    mediaType: "image/png",
    bytes: await fixture("picture.png"),
  });

  test("a picture's description is its alt text", async () => {
    const file = await picture();
    expect(await sent({ ...file, extra: { alt_txt: "A red house" } })).toMatchObject({
      altText: "A red house",
    });
  });

  test("a Slack Connect file is looked up by its id", async () => {
    const file = await picture();
    const attachment = await sent({ ...file, extra: { file_access: "check_file_info" } });
    expect(attachment).toMatchObject({ name: "picture.png", mediaType: "image/png" });
    expect(await download(attachment)).toHaveLength(file.bytes.length);
  });

  test("a file whose lookup failed is looked up again for the download", async () => {
    const file = await picture();
    harness.slack.fail("files.info", { error: "internal_error" });
    const attachment = await sent({ ...file, extra: { file_access: "check_file_info" } });
    expect(await download(attachment)).toHaveLength(file.bytes.length);
  });

  test("Slack's login page instead of a file means a missing scope", async () => {
    const attachment = await sent(await picture());
    harness.slack.revokeScope("files:read");
    const error = await failure(attachment);
    expect(error?.code).toBe("platform-forbidden");
    expect(error?.detail["permission"]).toBe("files:read");
  });

  test.each([
    ["quip", "canvas"],
    ["canvas", "canvas"],
    ["list", "list"],
  ])("a %s, which Slack sends as a page, is named as what it is; no scope is missing", async (mode, kind) => {
    const bytes = new TextEncoder().encode("<p>the plan</p>");
    const attachment = await sent({
      name: "Plan",
      mediaType: "application/vnd.slack-docs",
      bytes,
      extra: { mode, filetype: mode },
    });
    expect(attachment.name).toBe(`Plan (Slack ${kind})`);
    expect(await failure(attachment)).toMatchObject({
      code: "attachment-unreadable",
      detail: { name: attachment.name },
    });
  });

  test("an uploaded HTML file is distinguished from the login page", async () => {
    const bytes = new TextEncoder().encode("<!DOCTYPE html><p>notes</p>");
    const attachment = await sent({ name: "notes.html", mediaType: "text/html", bytes });
    expect(new Uint8Array(await download(attachment))).toEqual(bytes);
    harness.slack.revokeScope("files:read");
    expect((await failure(attachment))?.code).toBe("platform-forbidden");
  });

  test("other hosts get no request and no token", async () => {
    const attachment = await sent(await picture());
    const elsewhere = { ...attachment, source: { id: "F1", url: "https://example.com/files-pri/x.png" } };
    expect((await failure(elsewhere))?.code).toBe("attachment-blocked");
  });
});

describe("uploads", () => {
  let harness: SlackHarness;
  let channel: SimulatedChannel;
  let reply: Reply;
  beforeEach(async () => {
    harness = await openSlackHarness();
    const ana = harness.slack.person("Ana");
    channel = harness.slack.channel("ideas", [ana]);
    ana.sends({ channel: channel.id, text: "draw", mentionBot: true });
    const { address } = await harness.slack.waitFor("the event", () => harness.receiver.events[0]);
    reply = harness.platform.openReply(address, { saveAddress: () => Promise.resolve() });
  });
  afterEach(() => harness.close());

  const fox = { name: "fox.png", mediaType: "image/png", altText: "a fox", bytes: new Uint8Array([1, 2, 3]) };
  const shown = () => channel.saidByBot().flatMap(({ files }) => files.map(({ name }) => name));
  const callsOf = (name: string) => harness.slack.calls.filter(({ method }) => method === name);

  for (const history of ["open", "closed"] as const) {
    test(`an upload whose response is lost is not repeated while Slack still processes it: history ${history}`, async () => {
      const { slack } = harness;
      if (history === "closed") slack.revokeScope("channels:history");
      slack.shareFilesAfter(60_000);
      slack.fail("files.completeUploadExternal", { status: 504, afterEffect: true });
      const attached = reply.attach(fox);
      await slack.waitFor("the question whether it is shared", () => callsOf("files.info").length > 0);
      slack.clock.advance(60_000);
      await attached;
      await reply.finish();
      expect(shown()).toEqual(["fox.png"]);
      expect(callsOf("files.getUploadURLExternal")).toHaveLength(1);
    });
  }

  test("an upload that Slack accepts and never shows is made once more, and cannot appear twice", async () => {
    harness.slack.loseShares(1);
    await reply.attach(fox);
    await reply.finish();
    expect(shown()).toEqual(["fox.png"]);
    expect(callsOf("files.delete")).toHaveLength(1);
    expect(callsOf("files.getUploadURLExternal")).toHaveLength(2);
  });

  test("where Slack shows the second one neither, the reply hears of it", async () => {
    harness.slack.loseShares(2);
    const error = await reply.attach(fox).catch((thrown: unknown) => thrown);
    expect(isParleyError(error, "platform-rejected")).toBe(true);
    expect(toNotice(error)).toBe("Slack took the file twice and did not show it.");
    expect(callsOf("files.completeUploadExternal")).toHaveLength(2);
  });

  test.each(["files:read", "channels:history"])("without %s Slack's word is taken", async (scope) => {
    harness.slack.revokeScope(scope);
    harness.slack.loseShares(1);
    await reply.attach(fox);
    expect(callsOf("files.completeUploadExternal")).toHaveLength(1);
  });

  test("a picture that appears late is shown once", async () => {
    harness.slack.shareFilesAfter(6000);
    await reply.attach(fox);
    await reply.finish();
    expect(shown()).toEqual(["fox.png"]);
    expect(callsOf("files.getUploadURLExternal")).toHaveLength(1);
  });

  test("an upload whose end was not received is ended again, without its bytes", async () => {
    harness.slack.fail("files.completeUploadExternal", { status: 504 });
    await reply.attach(fox);
    await reply.finish();
    await harness.slack.waitFor("the file", () => shown().length === 1);
    expect(callsOf("files.getUploadURLExternal")).toHaveLength(1);
    expect(callsOf("files.completeUploadExternal")).toHaveLength(2);
  });
});

describe("posted messages", () => {
  const channel = "D1";
  const own: Partial<SlackMessageInfo> = { user: "UBOT" };
  const refOf = (ts: string): MessageRef => ({ channel, ts });

  /** Looks for the first message of a reply in a thread with these messages. */
  async function findIn(messages: readonly SlackMessageInfo[], where = channel) {
    const posted = createPostedMessages(
      { messagesAfter: () => Promise.resolve(messages) },
      { key: `slack:T1:${where}:100.0`, channel: where, thread: "100.0", user: "U1", since: 100_000 },
      { identity: { userId: "UBOT" } },
    );
    return await posted.find(0, []);
  }

  const marked = (mark: string) => ({ metadata: { event_payload: { mark } } });

  test("a message without a mark is no stream of a reply in a channel, where there are no streams", async () => {
    const messages = [{ ...own, ts: "103.0" }];
    expect(await findIn(messages)).toEqual([refOf("103.0")]);
    expect(await findIn(messages, "C1")).toEqual([]);
  });

  test("a reply's message is known by its mark", async () => {
    const messages = [
      { ...own, ts: "101.0", ...marked("slack:T1:D1:100.0/0") },
      { ...own, ts: "102.0", ...marked("slack:T1:D1:99.0/0") },
      { ...own, ts: "103.0" },
    ];
    expect(await findIn(messages)).toEqual([refOf("101.0")]);
  });

  test("a stream that was started right before a crash is the bot's message without a mark", async () => {
    const messages = [
      { ...own, ts: "101.0" },
      { user: "U1", ts: "102.0" },
    ];
    expect(await findIn(messages)).toEqual([refOf("101.0")]);
  });

  test("a notice, which has a mark of its own, is not taken for it", async () => {
    const messages = [
      { ...own, ts: "101.0" },
      { ...own, ts: "102.0", ...marked("notice") },
    ];
    expect(await findIn(messages)).toEqual([refOf("101.0")]);
    expect(await findIn(messages.slice(1))).toEqual([]);
  });
});

describe("slow lookups", () => {
  /** This is as long as the client waits for a response. */
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
      // The press can arrive when Stop has already disappeared.
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

    test("come with its message event, which it waits for, where its own event lacks them", async () => {
      const { receiver, slack } = harness;
      const where = { channel: channel.id, mentionBot: true, mentionLacksFiles: true };
      ana.sends({ ...where, text: "look", files: [file], messageAfterMs: 400 });
      slack.clock.advance(400);
      expect((await nextMessage()).attachments).toMatchObject([{ name: "notes.txt" }]);
      await slack.waitFor("both acknowledgements", () =>
        slack.deliveries.every(({ outcome }) => outcome === "acknowledged"),
      );
      expect([messages().length, receiver.edits.length]).toEqual([1, 0]);
    });
  });
});
