import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { ParleyError } from "../../../../src/core/errors.ts";
import type { Reply } from "../../../../src/core/reply.ts";
import type { ReplyAddress } from "../../../../src/core/events.ts";
import { createSlackPlatform } from "../../../../src/platforms/slack/platform.ts";
import type { Person } from "../../../simulators/slack/person.ts";
import type { SeenMessage } from "../../../simulators/slack/transcript.ts";
import type { SimulatedChannel } from "../../../simulators/slack/simulator.ts";
import { openSlackHarness, type SlackHarness } from "../../../support/slack-harness.ts";
import { createSlackReceiver } from "../../../support/slack-receiver.ts";
import { allCommands } from "../../../support/commands.ts";
import { silentLog } from "../../../support/silent-log.ts";
import { loopTime } from "../../../support/loop-time.ts";

let harness: SlackHarness;
let ana: Person;
let channel: SimulatedChannel;
let saved: ReplyAddress;

beforeEach(async () => {
  harness = await openSlackHarness();
  ana = harness.slack.person("Ana");
  channel = harness.slack.channel("ideas", [ana]);
});
afterEach(() => harness.close());

const open = (address: ReplyAddress, isResumed = false): Reply =>
  harness.platform.openReply(address, {
    isResumed,
    saveAddress: (grown) => {
      saved = JSON.parse(JSON.stringify(grown)) as ReplyAddress;
      return Promise.resolve();
    },
  });

/** Opens a reply to a new message of Ana's. */
async function replyIn(where: "direct" | "channel"): Promise<Reply> {
  const before = harness.receiver.events.length;
  if (where === "direct") ana.sends({ channel: ana.directMessages, text: "hello" });
  else ana.sends({ channel: channel.id, text: "hello", mentionBot: true });
  const event = await harness.slack.waitFor("the event", () => harness.receiver.events[before]);
  saved = event.address;
  const reply = open(event.address);
  await reply.show();
  return reply;
}

const direct = () => harness.slack.directMessages(ana).saidByBot();
const callsOf = (name: string) => harness.slack.calls.filter(({ method }) => method === name);
const details = { kind: "details", key: "details-key" } as const;
const shows = (seen: () => SeenMessage[], text: string) =>
  harness.slack.waitFor(`"${text}"`, () => seen().find((message) => message.text === text));

/** Slack shows a message before the bot has its response. */
const firstIsSaved = () =>
  harness.slack.waitFor(
    "the saved address of the first message",
    () => (saved["refs"] as readonly unknown[] | undefined)?.length === 1,
  );

describe("a native stream", () => {
  test("carries the first words, more text, and the end with its buttons: no edit", async () => {
    const reply = await replyIn("direct");
    reply.write({ text: "The meeting & more" });
    await shows(direct, "The meeting & more");
    reply.write({ text: "The meeting & more moves **to" });
    await shows(direct, "The meeting & more moves ");
    expect(direct()[0]?.stream).toBe("live");
    reply.write({ text: "The meeting & more moves **to Thursday** <!here>." });
    await reply.finish({ actions: [details], notices: ["One file was left out."] });
    expect(direct()).toMatchObject([
      {
        text: "The meeting & more moves **to Thursday** <!here>.\nOne file was left out.",
        notification: "The meeting & more",
        stream: undefined,
        pings: [],
        buttons: [{ value: "details-key" }],
      },
    ]);
    expect(callsOf("chat.update")).toEqual([]);
    expect(callsOf("chat.postMessage")).toEqual([]);
    expect(callsOf("chat.stopStream")[0]?.args["metadata"]).toContain("/0");
  });

  test("is not used in a channel: others see a stream only at its end", async () => {
    const reply = await replyIn("channel");
    reply.write({ text: "The meeting" });
    await shows(() => channel.saidByBot(), "The meeting");
    await reply.finish();
    expect(callsOf("chat.startStream")).toEqual([]);
  });

  test("never carries a link: it ends at the first one, and edits go on", async () => {
    const reply = await replyIn("direct");
    reply.write({ text: "See" });
    await shows(direct, "See");
    const text = "See [this](https://e.example/?a=1&b=2) now";
    reply.write({ text });
    await shows(direct, text);
    expect(harness.slack.sessionIn(ana.directMessages, saved["thread"] as string)?.hasStop).toBe(true);
    await reply.finish({ actions: [details] });
    expect(direct()).toMatchObject([{ text, previewsLinks: false, stream: undefined }]);
    const streamed = harness.slack.calls.filter(({ method }) => method.endsWith("Stream"));
    expect(streamed.map(({ args }) => args["markdown_text"])).toEqual(["See", undefined]);
  });

  test("that Slack has ended is edited from then on", async () => {
    const reply = await replyIn("direct");
    reply.write({ text: "The first part" });
    await shows(direct, "The first part");
    harness.slack.clock.advance(5 * 60_000 + 1);
    expect(direct()[0]?.stream).toBe("dead");
    reply.write({ text: "The first part, the second part" });
    await shows(direct, "The first part, the second part");
    await reply.finish({ actions: [details] });
    expect(direct()).toMatchObject([
      { text: "The first part, the second part", stream: undefined, buttons: [{ value: "details-key" }] },
    ]);
  });

  test("is ended before Slack ends it, and edits go on in its message", async () => {
    const reply = await replyIn("direct");
    reply.write({ text: "The first part" });
    await shows(direct, "The first part");
    await harness.clock.skip(4 * 60_000);
    await harness.slack.waitFor("its end", () => callsOf("chat.stopStream")[0]);
    expect(direct()).toMatchObject([{ text: "The first part", stream: undefined }]);
    reply.write({ text: "The first part, the second part" });
    await reply.finish();
    expect(direct()).toMatchObject([{ text: "The first part, the second part" }]);
  });

  test("whose start had no response is found again", async () => {
    const reply = await replyIn("direct");
    harness.slack.fail("chat.startStream", { status: 503, afterEffect: true });
    reply.write({ text: "The first" });
    await harness.slack.waitFor("the start", () => callsOf("chat.startStream")[0]);
    reply.write({ text: "The first and the second" });
    await reply.finish();
    expect(direct()).toMatchObject([{ text: "The first and the second", stream: undefined }]);
  });

  test("is found again after a crash before its address was saved, and after one during it", async () => {
    const reply = await replyIn("direct");
    const unsaved = saved;
    reply.write({ text: "The first" });
    await shows(direct, "The first");
    reply.abandon();
    const again = open(unsaved, true);
    await again.show();
    again.write({ text: "Another first" });
    await shows(direct, "Another first");
    again.abandon();
    const last = open(saved, true);
    await last.show();
    last.write({ text: "A third first" });
    await last.finish();
    expect(direct()).toMatchObject([{ text: "A third first", stream: undefined }]);
  });

  test.each(["unknown_method", "feature_not_enabled", "channel_type_not_supported"])(
    "gives way to edits after %s, also for the next reply",
    async (error) => {
      harness.slack.fail("chat.startStream", { error });
      for (const text of ["one", "two"]) {
        const reply = await replyIn("direct");
        reply.write({ text });
        await shows(direct, text);
        await reply.finish();
      }
      expect(callsOf("chat.startStream")).toHaveLength(1);
      expect(direct().map(({ text }) => text)).toEqual(["one", "two"]);
    },
  );

  test("with Markdown that Slack refuses ends as plain text", async () => {
    harness.slack.refuseMarkdown("|--|");
    const reply = await replyIn("direct");
    reply.write({ text: "Prices:" });
    await shows(direct, "Prices:");
    const text = "Prices:\n\n|a|b|\n|--|--|\n|1|2|";
    reply.write({ text });
    await reply.finish({ actions: [details] });
    expect(direct()).toMatchObject([{ text, stream: undefined, buttons: [{ value: "details-key" }] }]);
  });
});

test("a further message that an earlier run has posted and not saved goes where the next answer is shorter", async () => {
  ana.sends({ channel: channel.id, text: "hello", mentionBot: true });
  const { address } = await harness.slack.waitFor("the event", () => harness.receiver.events[0]);
  saved = address;
  const reply = harness.platform.openReply(address, {
    async saveAddress(grown) {
      if ((grown["refs"] as readonly unknown[]).length > 1) await new Promise(() => undefined);
      saved = structuredClone(grown);
    },
  });
  await reply.show();
  reply.write({ text: "words and more words. ".repeat(250) });
  await harness.slack.waitFor("two messages", () => channel.saidByBot().length === 2);
  reply.abandon();
  await harness.restart(allCommands);
  const next = open(saved, true);
  await next.show();
  next.write({ text: "Short." });
  await next.finish();
  await harness.slack.waitFor("one message", () => channel.saidByBot().length === 1);
  expect(channel.saidByBot()).toMatchObject([{ text: "Short." }]);
});

describe("when edits are short", () => {
  test("the final text is a post, and the preview is deleted", async () => {
    const reply = await replyIn("channel");
    reply.write({ text: "The first" });
    const preview = await shows(() => channel.saidByBot(), "The first");
    harness.slack.limit("chat.update", 0);
    reply.write({ text: "The first and the second" });
    await reply.finish({ actions: [details] });
    expect(channel.saidByBot()).toMatchObject([
      {
        text: "The first and the second",
        notification: "The first and the second",
        buttons: [{ value: "details-key" }],
      },
    ]);
    const [message] = channel.saidByBot();
    expect(message?.ts).not.toBe(preview.ts);
    expect(saved["refs"]).toEqual([{ channel: channel.id, ts: message?.ts }]);
  });

  test("the preview is deleted where the store is away just then, once the address of the post is saved", async () => {
    ana.sends({ channel: channel.id, text: "hello", mentionBot: true });
    const { address } = await harness.slack.waitFor("the event", () => harness.receiver.events[0]);
    let failures = 0;
    const reply = harness.platform.openReply(address, {
      async saveAddress(grown) {
        if (failures > 0) {
          failures -= 1;
          throw new ParleyError("store-unavailable", "away");
        }
        saved = structuredClone(grown);
      },
    });
    await reply.show();
    reply.write({ text: "The first" });
    await shows(() => channel.saidByBot(), "The first");
    harness.slack.limit("chat.update", 0);
    failures = 3;
    reply.write({ text: "The first and the second" });
    await reply.finish();
    await harness.slack.waitFor("one message", () => channel.saidByBot().length === 1);
    expect(saved["refs"]).toEqual([{ channel: channel.id, ts: channel.saidByBot()[0]?.ts }]);
  });

  test("a turn whose post cannot be saved stays open, and its next run deletes the preview", async () => {
    ana.sends({ channel: channel.id, text: "hello", mentionBot: true });
    const { address } = await harness.slack.waitFor("the event", () => harness.receiver.events[0]);
    let isAway = false;
    saved = address;
    const reply = harness.platform.openReply(address, {
      async saveAddress(grown) {
        if (isAway) throw new ParleyError("store-unavailable", "away");
        saved = structuredClone(grown);
      },
    });
    await reply.show();
    reply.write({ text: "The first" });
    await firstIsSaved();
    harness.slack.limit("chat.update", 0);
    isAway = true;
    reply.write({ text: "The first and the second" });
    await expect(reply.finish()).rejects.toMatchObject({ code: "stopping" });
    expect(channel.saidByBot()).toHaveLength(2);
    const next = open(saved, true);
    await next.show();
    next.write({ text: "The first and the second" });
    await next.finish();
    await harness.slack.waitFor("one message", () => channel.saidByBot().length === 1);
    expect(channel.saidByBot()).toMatchObject([{ text: "The first and the second" }]);
  });

  test("a run that was abandoned just after its post was saved leaves the preview to the next run", async () => {
    ana.sends({ channel: channel.id, text: "hello", mentionBot: true });
    const { address } = await harness.slack.waitFor("the event", () => harness.receiver.events[0]);
    let isLost = false;
    const reply: Reply = harness.platform.openReply(address, {
      async saveAddress(grown) {
        const isNew = isLost && JSON.stringify(grown) !== JSON.stringify(saved);
        saved = structuredClone(grown);
        if (!isNew) return;
        reply.abandon();
        throw new ParleyError("stopping", "lease lost");
      },
    });
    await reply.show();
    reply.write({ text: "The first" });
    await firstIsSaved();
    harness.slack.limit("chat.update", 0);
    isLost = true;
    reply.write({ text: "The first and the second" });
    await expect(reply.finish()).rejects.toMatchObject({ code: "stopping" });
    expect(channel.saidByBot()).toHaveLength(2);
    harness.slack.limit("chat.update", 50);
    harness.slack.clock.advance(60_000);
    const next = open(saved, true);
    await next.show();
    next.write({ text: "The first and the second" });
    await next.finish();
    expect(channel.saidByBot()).toMatchObject([{ text: "The first and the second" }]);
    expect(saved["refs"]).toEqual([{ channel: channel.id, ts: channel.saidByBot()[0]?.ts }]);
  });

  test("the deletion of the preview is not a person's, and in another process it names nothing that is saved", async () => {
    const mine = await replyIn("channel");
    mine.write({ text: "The first" });
    await shows(() => channel.saidByBot(), "The first");
    harness.slack.fail("chat.update", { error: "cant_update_message" });
    mine.write({ text: "The last" });
    await mine.finish();
    await shows(() => channel.saidByBot(), "The last");

    const other = createSlackReceiver();
    const { slack, platform, receiver } = harness;
    const second = createSlackPlatform({
      botToken: slack.botToken,
      appToken: slack.appToken,
      apiUrl: slack.apiUrl,
      commands: allCommands,
      log: silentLog,
    });
    await second.start(other, other);
    // From now on all events go to the other one, but this one still shows replies.
    await platform.pause();
    ana.sends({ channel: channel.id, text: "hello", mentionBot: true });
    const { address } = await slack.waitFor("the event", () => other.events[0]);
    const deletedBefore: number[] = [];
    const theirs = platform.openReply(address, {
      saveAddress(grown) {
        saved = grown;
        deletedBefore.push(callsOf("chat.delete").length);
        return Promise.resolve();
      },
    });
    await theirs.show();
    theirs.write({ text: "The first" });
    const preview = await shows(() => channel.saidByBot(), "The first");
    slack.fail("chat.update", { error: "cant_update_message" });
    theirs.write({ text: "Their last" });
    await theirs.finish();
    const answer = await shows(() => channel.saidByBot(), "Their last");
    expect(callsOf("chat.delete").map(({ outcome }) => outcome)).toEqual(["ok", "ok"]);
    expect(saved["refs"]).toEqual([{ channel: channel.id, ts: answer.ts }]);
    // The address was saved without the preview before that was deleted.
    expect(deletedBefore.at(-1)).toBe(1);
    await slack.waitFor("the preview's deletion", () => other.deletions[0]);
    channel.deleteMessage(answer.ts);
    await slack.waitFor("the person's deletion", () => other.deletions[1]);
    expect(other.deletions).toEqual([
      expect.stringContaining(preview.ts),
      expect.stringContaining(answer.ts),
    ]);
    expect(receiver.deletions).toEqual([]);
    await second.stop();
  });

  test("a preview whose deletion is limited goes later", async () => {
    const reply = await replyIn("channel");
    reply.write({ text: "The first" });
    await shows(() => channel.saidByBot(), "The first");
    harness.slack.limit("chat.update", 0);
    harness.slack.fail("chat.delete", { error: "ratelimited" });
    reply.write({ text: "The first and the second" });
    await reply.finish();
    await harness.slack.waitFor("one message", () => channel.saidByBot().length === 1);
    expect(channel.saidByBot()).toMatchObject([{ text: "The first and the second" }]);
  });

  test("a crash between the post and its address leaves one message", async () => {
    const reply = await replyIn("channel");
    reply.write({ text: "The first" });
    await firstIsSaved();
    const before = saved;
    harness.slack.limit("chat.update", 0);
    harness.slack.limit("chat.delete", 0);
    reply.write({ text: "The first and the second" });
    await harness.slack.waitFor("both", () => {
      void reply.finish().catch(() => undefined);
      return channel.saidByBot().length === 2;
    });
    reply.abandon();
    harness.slack.limit("chat.update", 50);
    harness.slack.limit("chat.delete", 50);
    harness.slack.clock.advance(60_000);
    await harness.restart(allCommands);
    // What was found of the earlier run is known after a failed call too.
    harness.slack.fail("chat.update", { status: 503 });
    const again = open(before, true);
    await again.show();
    again.write({ text: "The first and the second" });
    await again.finish();
    await harness.slack.waitFor("one message", () => channel.saidByBot().length === 1);
    expect(channel.saidByBot()).toMatchObject([{ text: "The first and the second" }]);
  });

  test("a run that another process has replaced posts nothing", async () => {
    ana.sends({ channel: channel.id, text: "hello", mentionBot: true });
    const { address } = await harness.slack.waitFor("the event", () => harness.receiver.events[0]);
    let isTaken = false;
    const older: Reply = harness.platform.openReply(address, {
      async saveAddress() {
        if (!isTaken) return;
        older.abandon();
        throw new ParleyError("stopping", "another process runs this turn");
      },
    });
    await older.show();
    older.write({ text: "The first" });
    await shows(() => channel.saidByBot(), "The first");
    harness.slack.limit("chat.update", 0);
    isTaken = true;
    older.write({ text: "The first and the second" });
    await expect(older.finish({ actions: [details] })).rejects.toMatchObject({ code: "stopping" });
    expect(channel.saidByBot()).toMatchObject([{ text: "The first" }]);
  });

  test("runs whose addresses cannot be saved leave one message", async () => {
    const reply = await replyIn("channel");
    reply.write({ text: "The first" });
    const { slack, platform } = harness;
    await firstIsSaved();
    reply.abandon();
    for (const text of ["Failed once", "Failed twice"]) {
      let isStoreAway = false;
      const run = platform.openReply(saved, {
        isResumed: true,
        saveAddress: async (grown) => {
          if (isStoreAway) throw new ParleyError("store-unavailable", "away");
          saved = structuredClone(grown);
        },
      });
      await run.show();
      await shows(() => channel.saidByBot(), "Thinking…");
      isStoreAway = true;
      slack.limit("chat.update", 0);
      // Its end waits for room to edit, which comes later.
      run.fail({ text }).catch(() => undefined);
      await slack.waitFor(text, () => channel.saidByBot().some((message) => message.text.includes(text)));
      run.abandon();
    }
    slack.limit("chat.update", 50);
    slack.clock.advance(60_000);
    await harness.restart(allCommands);
    const last = open(saved, true);
    await last.show();
    last.write({ text: "The first and the second" });
    await last.finish();
    await slack.waitFor("one message", () => channel.saidByBot().length === 1);
    expect(channel.saidByBot()).toMatchObject([{ text: "The first and the second" }]);
  });

  test("and streams too: growing text is left out, and the whole text is one post", async () => {
    harness.slack.limit("chat.update", 0);
    const first = await replyIn("channel");
    first.write({ text: "one" });
    await shows(() => channel.saidByBot(), "one");
    first.write({ text: "one two" });
    await first.finish();
    for (const method of ["chat.startStream", "chat.stopStream"]) harness.slack.limit(method, 0);
    const streamed = await replyIn("direct");
    streamed.write({ text: "three" });
    await streamed.finish();
    const posts = callsOf("chat.postMessage").length;

    const reply = await replyIn("channel");
    const thread = saved["thread"] as string;
    await harness.slack.waitFor("a sign of work", () => harness.slack.sessionIn(channel.id, thread)?.hasStop);
    reply.write({ text: "The first" });
    reply.write({ text: "The first and the second" });
    await reply.finish();
    expect(callsOf("chat.postMessage")).toHaveLength(posts + 1);
    expect(channel.saidByBot(thread)).toMatchObject([{ text: "The first and the second", edits: 0 }]);
    await harness.slack.waitFor(
      "its end",
      () => harness.slack.sessionIn(channel.id, thread)?.hasStop === false,
    );
  });
});

test("one limited method holds up no other", async () => {
  const reply = await replyIn("channel");
  reply.write({ text: "The first" });
  await shows(() => channel.saidByBot(), "The first");
  harness.slack.limit("chat.update", 0);
  reply.write({ text: "The first and the second" });
  await reply.finish();
  const startedAt = loopTime();
  const next = await replyIn("direct");
  next.write({ text: "at once" });
  await next.finish();
  expect(loopTime() - startedAt).toBeLessThan(1000);
  expect(direct()).toMatchObject([{ text: "at once" }]);
});
