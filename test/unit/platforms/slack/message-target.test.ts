import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { isParleyError } from "../../../../src/core/errors.ts";
import type { Reply } from "../../../../src/core/reply.ts";
import type { ReplyAddress } from "../../../../src/core/events.ts";
import type { Person } from "../../../simulators/slack/person.ts";
import { allCommands } from "../../../support/commands.ts";
import { openSlackHarness, type SlackHarness } from "../../../support/slack-harness.ts";

let harness: SlackHarness;
let ana: Person;

beforeEach(async () => {
  harness = await openSlackHarness();
  ana = harness.slack.person("Ana");
});
afterEach(() => harness.close());

/** Returns the address of the first accepted event. */
async function nextAddress(): Promise<ReplyAddress> {
  return (await harness.slack.waitFor("the event", () => harness.receiver.events[0])).address;
}

const open = (address: ReplyAddress): Reply =>
  harness.platform.openReply(address, { saveAddress: () => Promise.resolve() });

async function toAna(): Promise<Reply> {
  ana.sends({ channel: ana.directMessages, text: "hello" });
  return open(await nextAddress());
}

const said = () => harness.slack.transcriptOf(ana.directMessages).filter(({ author }) => author === "Parley");
const callsOf = (name: string) => harness.slack.calls.filter(({ method }) => method === name);

describe("posting", () => {
  test("turns previews off and stays within the length limits", async () => {
    const reply = await toAna();
    await reply.show();
    reply.write({ text: `${"<&>é".repeat(1200)}\n\nhttps://evil.example` });
    await reply.finish();
    expect(
      callsOf("chat.postMessage").map(({ args }) => [args["unfurl_links"], args["unfurl_media"]]),
    ).toEqual(callsOf("chat.postMessage").map(() => ["false", "false"]));
    expect(harness.slack.calls.filter(({ outcome }) => outcome !== "ok")).toEqual([]);
    expect(
      said()
        .map(({ body }) => body)
        .join(""),
    ).toContain("<&>é".repeat(100));
    expect(said().some(({ previewsLinks }) => previewsLinks)).toBe(false);
  });

  test("a post whose response was lost is found again, not repeated", async () => {
    const reply = await toAna();
    harness.slack.fail("chat.postMessage", { status: 503, afterEffect: true });
    await reply.show();
    reply.write({ text: "done" });
    await reply.finish();
    expect(said().map(({ text }) => text)).toEqual(["done"]);
  });

  test("a failed post is repeated", async () => {
    const reply = await toAna();
    harness.slack.fail("chat.postMessage", { status: 503 });
    await reply.show();
    reply.write({ text: "done" });
    await reply.finish();
    expect(said().map(({ text }) => text)).toEqual(["done"]);
  });

  test("a deleted message is posted again at the end", async () => {
    const reply = await toAna();
    await reply.show();
    harness.slack.fail("chat.update", { error: "message_not_found" });
    harness.slack.fail("chat.update", { error: "message_not_found" });
    reply.write({ text: "still said" });
    await reply.finish();
    expect(said().some(({ text }) => text === "still said")).toBe(true);
  });

  test("rate limited text is shown later, complete", async () => {
    harness.slack.limit("chat.update", 1000);
    const reply = await toAna();
    await reply.show();
    harness.slack.fail("chat.update", { error: "ratelimited" });
    reply.write({ text: "some" });
    reply.write({ text: "some and more" });
    await reply.finish();
    expect(said().map(({ text }) => text)).toEqual(["some and more"]);
  });

  test("many replies at once stay within the workspace's limits", async () => {
    const people = Array.from({ length: 40 }, (_, i) => harness.slack.person(`P${i}`));
    for (const person of people) person.sends({ channel: person.directMessages, text: "hello" });
    await harness.slack.waitFor("all events", () => harness.receiver.events.length === people.length);
    const replies = harness.receiver.events.map(({ address }) => open(address));
    await Promise.all(replies.map((reply) => reply.show()));
    for (const reply of replies) reply.write({ text: "word " });
    await harness.slack.waitFor("a stream", () => callsOf("chat.startStream").length > 0);
    await harness.slack.waitFor("an editable post", () => callsOf("chat.postMessage").length > 0);
    for (const reply of replies) reply.write({ text: "word word word" });
    await Promise.all(replies.map((reply) => reply.finish()));
    expect(harness.slack.calls.filter(({ outcome }) => outcome !== "ok")).toEqual([]);
    for (const person of people) {
      const seen = harness.slack.transcriptOf(person.directMessages);
      expect(seen.map(({ text }) => text.trim())).toEqual(["hello", "word word word"]);
    }
  });
});

describe("content that Slack refuses", () => {
  const details = { kind: "details", key: "details-key" } as const;
  const table = "Prices:\n\n|a|b|\n|--|--|\n|1|2 & 3|";

  test("is shown as plain text with its buttons, in a post and in an edit", async () => {
    harness.slack.refuseMarkdown("|--|");
    const reply = await toAna();
    await reply.show();
    reply.write({ text: "Prices:" });
    await harness.slack.waitFor("the first text", () => said()[0]?.text.includes("Prices:"));
    reply.write({ text: table });
    await reply.finish({ actions: [details], notices: ["One file was left out."] });
    expect(said()).toHaveLength(1);
    expect(said()[0]?.text).toBe(`${table}\nOne file was left out.`);
    expect(said()[0]?.buttons).toMatchObject([{ value: "details-key" }]);

    const posted = await toAna();
    posted.write({ text: table });
    await posted.finish();
    expect(said().at(-1)?.text).toBe(table);
  });

  test.each(["invalid_blocks", "msg_blocks_too_long"])(
    "is shown as text alone after %s twice",
    async (error) => {
      const reply = await toAna();
      await reply.show();
      reply.write({ text: table });
      await harness.slack.waitFor("the first text", () => said()[0]?.text.includes("Prices:"));
      for (const method of ["chat.postMessage", "chat.update"]) {
        for (let i = 0; i < 4; i += 1) harness.slack.fail(method, { error });
      }
      await reply.fail({ text: "It broke off.", retryKey: "retry-key" });
      expect(said().at(-1)?.text).not.toContain("Thinking");
      expect(said().at(-1)?.text).toMatch(/Slack|Prices/);
    },
  );
});

test("an end equal to the last preview needs no edit", async () => {
  const channel = harness.slack.channel("ideas", [ana]);
  ana.sends({ channel: channel.id, text: "hello", mentionBot: true });
  const reply = open(await nextAddress());
  await reply.show();
  reply.write({ text: "all of it" });
  await harness.slack.waitFor("the text", () => channel.saidByBot()[0]?.text === "all of it");
  await reply.finish();
  expect(callsOf("chat.update")).toEqual([]);
});

describe("where it is shown", () => {
  /** Posts a message of the reply as a process that is killed before its address is saved. */
  async function postAndDie(address: ReplyAddress): Promise<void> {
    const reply = open(address);
    await reply.show();
    reply.abandon();
  }

  async function resume(address: ReplyAddress): Promise<void> {
    const reply = harness.platform.openReply(address, {
      saveAddress: () => Promise.resolve(),
      isResumed: true,
    });
    await reply.show();
    reply.write({ text: "after the restart" });
    await reply.finish();
  }

  for (const [direction, minutes] of [
    ["ahead", 25],
    ["behind", -25],
  ] as const) {
    test(`what a killed process posted of a command is found where its clock was ${direction}`, async () => {
      const channel = harness.slack.channel("ideas", [ana]);
      await ana.usesCommand("/ask", "why?", { channel: channel.id });
      const address = await nextAddress();
      const stepped = { ...address, since: Number(address["since"]) + minutes * 60_000 };
      await postAndDie(stepped);
      await resume(stepped);
      expect(channel.saidByBot().map(({ text }) => text)).toEqual(["after the restart"]);
    });
  }

  test("what a killed process posted is found in a thread with many newer messages", async () => {
    const channel = harness.slack.channel("ideas", [ana]);
    const root = ana.sends({ channel: channel.id, text: "hello", mentionBot: true });
    const address = await nextAddress();
    for (let count = 0; count < 150; count++)
      ana.sends({ channel: channel.id, text: `${count}`, thread: root });
    await postAndDie(address);
    await resume(address);
    expect(channel.saidByBot().map(({ text }) => text)).toEqual(["after the restart"]);
  });

  test("a channel without the bot is an error that names the permission", async () => {
    const channel = harness.slack.channel("ideas", [ana]);
    ana.sends({ channel: channel.id, text: "hello", mentionBot: true });
    const reply = open(await nextAddress());
    channel.removeBot();
    await reply.show();
    const error = await reply.finish().then(
      () => undefined,
      (reason: unknown) => reason,
    );
    expect(isParleyError(error, "platform-forbidden") && error.detail["permission"]).toMatch(/invitation/);
  });

  test("a command's reply becomes the root of the thread it opens, also when called twice", async () => {
    const channel = harness.slack.channel("ideas", [ana]);
    await ana.usesCommand("/chat", "hello", { channel: channel.id });
    const address = await nextAddress();
    await open(address).show();
    const opened = await harness.platform.openThread(address, { title: "hello" });
    const again = await harness.platform.openThread(address, { title: "hello" });
    const root = channel.saidByBot()[0]?.ts;
    expect(opened.conversationId).toBe(`slack:${harness.slack.teamId}:${channel.id}:${root}`);
    expect(again).toEqual(opened);
    expect(channel.saidByBot()).toHaveLength(1);
  });

  test("a thread opened before the reply is shown gets one root message", async () => {
    const channel = harness.slack.channel("ideas", [ana]);
    await ana.usesCommand("/chat", "hello", { channel: channel.id });
    const address = await nextAddress();
    const opened = await Promise.all(
      [1, 2].map(() => harness.platform.openThread(address, { title: "Of <foxes>" })),
    );
    expect(opened[0]).toEqual(opened[1]);
    expect(channel.saidByBot().map(({ text }) => text)).toEqual(["**Of <foxes>**"]);
  });

  test("a thread that a killed process has opened is found by one that ran before", async () => {
    const channel = harness.slack.channel("ideas", [ana]);
    await ana.usesCommand("/chat", "hello", { channel: channel.id });
    const address = await nextAddress();
    // This is later than the start of the other process.
    const later = { ...address, since: Number(address["since"]) + 60_000 };
    const opened = await harness.platform.openThread(later, { title: "hello" });
    await harness.restart(allCommands);
    harness.platform.openReply(later, { saveAddress: () => Promise.resolve(), isResumed: true });
    expect(await harness.platform.openThread(later, { title: "hello" })).toEqual(opened);
    expect(channel.saidByBot()).toHaveLength(1);
  });

  test("an app without sessions still replies, from the second time on with a placeholder", async () => {
    harness.slack.switchOff("agents.sessions.setStatus");
    for (const text of ["one", "two"]) {
      const reply = await toAna();
      await reply.show();
      await harness.slack.waitFor("a sign of work", () =>
        text === "one" ? harness.slack.calls.at(-1)?.outcome === "unknown_method" : said().length === 2,
      );
      reply.write({ text });
      await reply.finish();
    }
    expect(said().map(({ text }) => text)).toEqual(["one", "two"]);
  });
});

describe("files", () => {
  test("a missing files:write scope is an error that names it", async () => {
    harness.slack.revokeScope("files:write");
    const reply = await toAna();
    await reply.show();
    const file = { name: "fox.png", mediaType: "image/png", bytes: new Uint8Array([1]), altText: "a fox" };
    const error = await reply.attach(file).then(
      () => undefined,
      (reason: unknown) => reason,
    );
    expect(isParleyError(error, "platform-forbidden") && error.detail["permission"]).toBe(
      "the scope files:write",
    );
  });
});
