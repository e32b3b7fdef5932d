import { afterEach, beforeEach, expect, test } from "vitest";
import { ParleyError } from "../../../../src/core/errors.ts";
import type { ReplyAddress } from "../../../../src/core/events.ts";
import type { Person } from "../../../simulators/slack/person.ts";
import type { SimulatedChannel } from "../../../simulators/slack/simulator.ts";
import { openSlackHarness, type SlackHarness } from "../../../support/slack-harness.ts";

let harness: SlackHarness;
let ana: Person;
let channel: SimulatedChannel;
beforeEach(async () => {
  harness = await openSlackHarness();
  ana = harness.slack.person("Ana");
  channel = harness.slack.channel("ideas", [ana]);
});
afterEach(() => harness.close());

const file = { name: "a.md", mediaType: "text/markdown", bytes: new Uint8Array([65]), altText: "" };
const direct = () => harness.slack.directMessages(ana).saidByBot();

/** Returns the private counterpart of the address of Ana's next message. */
async function privateAddressOf(message: Parameters<Person["sends"]>[0]): Promise<ReplyAddress> {
  ana.sends(message);
  const { address } = await harness.slack.waitFor("the event", () => harness.receiver.events[0]);
  return harness.platform.toPrivateAddress(address)!;
}

async function answer(address: ReplyAddress): Promise<ReplyAddress | undefined> {
  let saved: ReplyAddress | undefined;
  const reply = harness.platform.openReply(address, {
    saveAddress(grown) {
      saved = grown;
      return Promise.resolve();
    },
  });
  await reply.show();
  await reply.attach(file);
  reply.write({ text: "secret" });
  await reply.finish();
  return saved;
}

test("in a thread with replies: announced there to the author alone, once, and shown in direct messages", async () => {
  const root = ana.sends({ channel: channel.id, text: "lunch?" });
  const message = { channel: channel.id, thread: root, text: "hello", mentionBot: true };
  const saved = await answer(await privateAddressOf(message));
  expect(channel.saidByBot()).toMatchObject([
    { thread: root, onlyFor: "Ana", text: expect.stringMatching(/direct messages/), files: [] },
  ]);
  await harness.slack.waitFor("the file", () => direct().some(({ files }) => files[0]?.name === "a.md"));
  expect(direct().some(({ text }) => text === "secret")).toBe(true);
  await answer(saved!);
  expect(channel.saidByBot()).toHaveLength(1);
});

test("for a message without replies: announced in the channel, since Slack shows nothing ephemeral in its thread", async () => {
  await answer(await privateAddressOf({ channel: channel.id, text: "hello", mentionBot: true }));
  expect(channel.saidByBot()).toMatchObject([{ thread: undefined, onlyFor: "Ana" }]);
});

test("a failed announcement does not fail the reply", async () => {
  harness.slack.switchOff("chat.postEphemeral");
  await answer(await privateAddressOf({ channel: channel.id, text: "hello", mentionBot: true }));
  expect(channel.saidByBot()).toEqual([]);
  expect(direct().some(({ text }) => text === "secret")).toBe(true);
});

test("in direct messages: an ordinary reply in the thread", async () => {
  const address = await privateAddressOf({ channel: ana.directMessages, text: "hello" });
  await answer(address);
  const texts = direct().filter(({ files }) => files.length === 0);
  expect(texts).toMatchObject([{ text: "secret", thread: address["thread"], onlyFor: undefined }]);
});

/** Runs a private command's reply, as a process does that may end after any step. */
async function openPrivate() {
  await ana.usesCommand("/ask", "why? private:yes", { channel: channel.id });
  const { address } = await harness.slack.waitFor("the call", () => harness.receiver.events.at(-1));
  let saved: ReplyAddress = address;
  /** The process is killed when it has saved that so many pieces were begun. */
  let killAt: number | undefined;
  let onKill: () => void = () => undefined;
  let isKilled = false;
  const open = (isResumed: boolean) =>
    harness.platform.openReply(JSON.parse(JSON.stringify(saved)) as ReplyAddress, {
      isResumed,
      saveAddress(grown) {
        if (isKilled) return Promise.reject(new ParleyError("stopping", "the test killed it"));
        saved = grown;
        if (grown["begun"] === killAt) {
          isKilled = true;
          onKill();
        }
        return Promise.resolve();
      },
    });
  const killWhenBegun = (begun: number, kill: () => void) => {
    killAt = begun;
    onKill = kill;
  };
  const run = async (isResumed: boolean, text: string) => {
    isKilled = false;
    killAt = undefined;
    const reply = open(isResumed);
    await reply.show();
    reply.write({ text });
    await reply.finish();
  };
  const told = () =>
    channel
      .saidByBot()
      .map(({ text }) => text)
      .filter((text) => !text.startsWith("Working on it"));
  return { open, run, told, killWhenBegun };
}

const unclear = expect.stringMatching(/did not confirm.*use the command again/);

test("whose response was lost, and which is resumed, is shown once, with a note that it may be missing", async () => {
  const { run, told } = await openPrivate();
  harness.slack.fail("response_url", { status: 503, afterEffect: true });
  await expect(run(false, "secret")).rejects.toMatchObject({ code: "platform-unreachable" });
  await run(true, "secret");
  expect(told()).toEqual(["secret", unclear]);
  await run(true, "secret");
  expect(told()).toHaveLength(2);
});

test("that was shown whole before a crash is not shown again", async () => {
  const { run, told } = await openPrivate();
  await run(false, "secret");
  await run(true, "secret");
  expect(told()).toEqual(["secret"]);
});

test("of several pieces is continued after the one that may have been shown when the process was killed", async () => {
  const { open, run, told, killWhenBegun } = await openPrivate();
  const whole = Array.from({ length: 400 }, (_, n) => `line ${n} ${"x".repeat(60)}`).join("\n");
  const reply = open(false);
  await reply.show();
  reply.write({ text: whole });
  // It is killed before the second piece, so nothing more is sent or saved.
  killWhenBegun(2, () => reply.abandon());
  await expect(reply.finish()).rejects.toMatchObject({ code: "stopping" });
  expect(told()).toHaveLength(1);
  await run(true, whole);
  expect(told()).toEqual([expect.stringContaining("line 0 "), expect.stringContaining("line 399 "), unclear]);
});

test("that Slack refused, or never received, is posted again", async () => {
  const { run, told } = await openPrivate();
  await harness.slack.waitFor("the call", () => harness.receiver.events.length === 1);
  harness.slack.clock.advance(31 * 60_000);
  harness.slack.fail("chat.postMessage", { error: "restricted_action_thread_only_channel" });
  await expect(run(false, "secret")).rejects.toMatchObject({ code: "platform-forbidden" });
  await run(true, "secret");
  expect(direct().map(({ text }) => text)).toEqual(["secret"]);
  expect(told()).toEqual([]);
});

test("that Slack takes no post of for a moment is shown once, with its files", async () => {
  const { open, told } = await openPrivate();
  await harness.slack.waitFor("the call", () => harness.receiver.events.length === 1);
  harness.slack.clock.advance(31 * 60_000);
  const limited = { error: "ratelimited" };
  harness.slack.fail("chat.postMessage", limited);
  harness.slack.fail("files.completeUploadExternal", limited);
  const reply = open(false);
  await reply.show();
  reply.write({ text: "secret" });
  await reply.attach(file);
  harness.slack.fail("chat.postMessage", limited);
  await reply.finish();
  expect(told()).toEqual([]);
  const shown = await harness.slack.waitFor(
    "the file",
    () => direct().some(({ files }) => files.length > 0) && direct(),
  );
  expect(shown.flatMap(({ files }) => files.map(({ name }) => name))).toEqual(["a.md"]);
  expect(shown.filter(({ text }) => text.startsWith("secret"))).toHaveLength(1);
});

test("that has Markdown which Slack refuses is shown as plain text", async () => {
  const { run, told } = await openPrivate();
  harness.slack.refuseMarkdown("|--|");
  await run(false, "|a|\n|--|\n|1|");
  expect(told()).toEqual(["|a|\n|--|\n|1|"]);
  expect(direct()).toEqual([]);
});

test.each([
  "restricted_action",
  "restricted_action_read_only_channel",
  "restricted_action_thread_only_channel",
])("of a command where the bot may not post (%s): shown through the command", async (refusal) => {
  await ana.usesCommand("/ask", "why?", { channel: channel.id });
  const { address } = await harness.slack.waitFor("the call", () => harness.receiver.events[0]);
  for (let times = 0; times < 4; times += 1) harness.slack.fail("chat.postMessage", { error: refusal });
  const reply = harness.platform.openReply(address, { saveAddress: () => Promise.resolve() });
  await reply.show();
  reply.write({ text: "Because." });
  await reply.finish();
  expect(channel.saidByBot().map(({ text }) => text)).toContain("Because.");
});

test("that failed is answered anew by Retry", async () => {
  const { open, run, told } = await openPrivate();
  const reply = open(false);
  await reply.show();
  await reply.fail({ text: "The gateway is away.", retryKey: "retry-key-1" });
  await run(true, "secret");
  expect(told()).toEqual([expect.stringContaining("The gateway is away."), "secret"]);
});
