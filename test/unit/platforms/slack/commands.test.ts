import { afterEach, beforeEach, describe, expect, test } from "vitest";
import type { CommandCall } from "../../../../src/core/events.ts";
import { fixture } from "../../../fixtures/fixtures.ts";
import { openSlackHarness, type SlackHarness } from "../../../support/slack-harness.ts";

let harness: SlackHarness;
beforeEach(async () => {
  harness = await openSlackHarness();
});
afterEach(() => harness.closeStrictly());

const calls = () => harness.receiver.events.filter((event): event is CommandCall => event.kind === "call");
const voice = async () => ({
  name: "audio_message.m4a",
  mediaType: "video/mp4",
  bytes: await fixture("voice.m4a"),
  extra: { subtype: "slack_audio", duration_ms: 2100 },
});

function setUp() {
  const ana = harness.slack.person("Ana");
  return { ana, channel: harness.slack.channel("ideas", [ana]) };
}

describe("slash commands", () => {
  test("read their options from the text", async () => {
    const { ana, channel } = setUp();
    const result = await ana.usesCommand(
      "/imagine",
      'a fox & a <hare> size:1024x1024 count:2 model:"x/y z"',
      {
        channel: channel.id,
      },
    );
    expect(result).toEqual({ kind: "acknowledged", ack: {} });
    expect(calls()).toMatchObject([
      {
        name: "imagine",
        options: { prompt: "a fox & a <hare>", size: "1024x1024", count: "2", model: "x/y z" },
        author: { name: "Ana" },
        isPrivate: false,
        inConversation: false,
        address: { channel: channel.id, user: ana.id },
      },
    ]);
    expect(calls()[0]?.key).toMatch(/^slack:T\w+:cmd:/);
  });

  test("have the configured prefix", async () => {
    await harness.close();
    harness = await openSlackHarness({ commandPrefix: "parley-" });
    const { ana, channel } = setUp();
    await ana.usesCommand("/parley-ask", "why?", { channel: channel.id });
    expect(calls()[0]).toMatchObject({ name: "ask", options: { prompt: "why?" } });
    await expect(ana.usesCommand("/ask", "why?", { channel: channel.id })).rejects.toThrow(/not a valid/);
  });

  test("accept curly quotes, which phones type", async () => {
    const { ana, channel } = setUp();
    await ana.usesCommand("/ask", "why? model:“big one”", { channel: channel.id });
    expect(calls()[0]?.options).toEqual({ prompt: "why?", model: "big one" });
  });

  test("acknowledge private:yes with an ephemeral message", async () => {
    const { ana, channel } = setUp();
    await ana.usesCommand("/ask", "why? private:yes", { channel: channel.id });
    expect(calls()[0]?.isPrivate).toBe(true);
    expect(channel.transcript()[0]).toMatchObject({ onlyFor: "Ana", text: "Working on it…" });
  });

  test("wait out a store that fails for a moment", async () => {
    const { ana, channel } = setUp();
    harness.receiver.failures = 2;
    expect((await harness.clock.passing(ana.usesCommand("/ask", "why?", { channel: channel.id }))).kind).toBe(
      "acknowledged",
    );
    expect(calls()).toHaveLength(1);
    expect(channel.transcript()).toEqual([]);
  });

  test("tell the caller in time when the store is unavailable, in words that stay true when it is back", async () => {
    const { ana, channel } = setUp();
    harness.receiver.failures = Number.POSITIVE_INFINITY;
    const result = await harness.clock.passing(ana.usesCommand("/ask", "why?", { channel: channel.id }));
    expect(result.kind).toBe("acknowledged");
    const [told] = channel.transcript();
    expect(told).toMatchObject({ onlyFor: "Ana", text: expect.stringContaining("store does not respond") });
    expect(told?.text).not.toMatch(/nothing would be kept/);
    harness.receiver.failures = 0;
    await harness.slack.waitFor("the call", () => calls().length === 1);
  });

  test("that are refused after those words: the caller reads why", async () => {
    const { ana, channel } = setUp();
    const { receiver, slack } = harness;
    receiver.failures = Number.POSITIVE_INFINITY;
    await harness.clock.passing(ana.usesCommand("/ask", "why?", { channel: channel.id }));
    receiver.isBusy = true;
    const said = () => channel.transcript().map(({ text }) => text);
    await slack.waitFor("the refusal", () => said().length === 2);
    expect(said()[1]).toContain("You have 50 requests that are not answered yet");
  });

  test("open a modal when a required option is missing, prefilled with the given ones", async () => {
    const { ana, channel } = setUp();
    await ana.usesCommand("/transcribe", "language:en", { channel: channel.id });
    expect(calls()).toEqual([]);
    expect(ana.modal()).toMatchObject({
      title: "Transcribe",
      inputs: [
        { label: "File", type: "file_input", isOptional: false },
        { label: "Language", initial: "en" },
        { label: "Hint", isOptional: true },
        { label: "Model", isOptional: true },
      ],
    });
    for (const metadata of ["", "null", "{}"])
      expect(await ana.submitsModal({}, { File: await voice() }, metadata)).toMatchObject({
        errors: { file: "This form can no longer be read. Close it and open it again." },
      });
    const result = await ana.submitsModal({ Hint: "Parley" }, { File: await voice() });
    expect(result).toEqual({ kind: "acknowledged", ack: {} });
    expect(calls()).toMatchObject([
      {
        name: "transcribe",
        options: {
          file: { name: "audio_message.m4a", mediaType: "video/mp4", durationMs: 2100 },
          language: "en",
          hint: "Parley",
        },
      },
    ]);
    expect(calls()[0]?.key).toMatch(/:view:/);
  });

  test("show an error at the first field of the modal, which stays open", async () => {
    const { ana, channel } = setUp();
    await ana.usesCommand("/imagine", "", { channel: channel.id });
    const result = await ana.submitsModal({ Prompt: "a fox", Image: false }, {}).catch(() => undefined);
    expect(result).toBeDefined();
    expect(calls()).toHaveLength(1);
    await ana.usesCommand("/imagine", "", { channel: channel.id });
    harness.receiver.failures = 1;
    const failed = await ana.submitsModal({ Prompt: "a fox" });
    expect(failed).toMatchObject({ errors: { prompt: expect.stringMatching(/store/) } });
    expect(ana.modal()).toBeDefined();
    await ana.submitsModal({ Prompt: "a fox" });
    expect(ana.modal()).toBeUndefined();
    expect(calls()).toHaveLength(2);
  });

  test("say when their trigger has expired", async () => {
    const { ana, channel } = setUp();
    harness.slack.fail("views.open", { error: "expired_trigger_id" });
    await ana.usesCommand("/ask", "", { channel: channel.id });
    expect(channel.transcript()[0]?.text).toMatch(/too long/);
  });
});

describe("message shortcuts", () => {
  test("are part of the conversation in a thread where the bot takes part", async () => {
    const { ana, channel } = setUp();
    const root = ana.sends({ channel: channel.id, text: "start" });
    harness.receiver.known.add(`slack:${harness.slack.teamId}:${channel.id}:${root}`);
    const ts = ana.sends({ channel: channel.id, thread: root, text: "hear this", files: [await voice()] });
    await ana.usesShortcut("Transcribe", ts, { channel: channel.id });
    const call = await harness.slack.waitFor("the call", () => calls()[0]);
    expect(call.inConversation).toBe(true);
    expect(call.conversationId).toBe(`slack:${harness.slack.teamId}:${channel.id}:${root}`);
  });

  test("in a thread: why one was not accepted, and private answers, are shown in the thread", async () => {
    const { ana, channel } = setUp();
    const root = ana.sends({ channel: channel.id, text: "start" });
    const ts = ana.sends({ channel: channel.id, thread: root, text: "hear this", files: [await voice()] });
    const onlyForAna = () => channel.transcript().filter(({ onlyFor }) => onlyFor === "Ana");
    harness.receiver.isBusy = true;
    await ana.usesShortcut("Transcribe", ts, { channel: channel.id });
    await harness.slack.waitFor("the refusal", () => onlyForAna().length === 1);
    harness.receiver.isBusy = false;
    const answer = async (on: string, index: number) => {
      await ana.usesShortcut("Ask about this", on, { channel: channel.id });
      await harness.slack.waitFor("the form", () => ana.modal());
      await ana.submitsModal({ Prompt: "why?", Private: "yes" });
      const call = await harness.slack.waitFor("the call", () => calls()[index]);
      const reply = harness.platform.openReply(call.address, { saveAddress: () => Promise.resolve() });
      await reply.show();
      reply.write({ text: "Because." });
      await reply.finish();
    };
    await answer(ts, 0);
    // A thread without replies shows no ephemeral messages.
    await answer(ana.sends({ channel: channel.id, text: "alone" }), 1);
    expect(onlyForAna().map(({ thread, text }) => [thread, text])).toEqual([
      [root, expect.stringContaining("50 requests")],
      [root, expect.stringContaining("Working on it")],
      [root, "Because."],
      [undefined, expect.stringContaining("Working on it")],
      [undefined, "Because."],
    ]);
  });
});
