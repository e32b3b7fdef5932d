import { afterEach, describe, expect, test } from "vitest";
import { ParleyError } from "../../../../src/core/errors.ts";
import { createSharedMemory, type SharedMemory } from "../../../support/memory-records.ts";
import { openSlackHarness, type SlackHarness } from "../../../support/slack-harness.ts";

const minuteMs = 60_000;
const hourMs = 60 * minuteMs;

let harness: SlackHarness;
let memory: SharedMemory;
/** Whether the store is away. */
let isAway = false;
/** Until when all was heard, as the store has it. */
let mark = 0;
afterEach(() => harness.close());

/** Starts a platform that has heard everything until now. */
async function begin(): Promise<void> {
  isAway = false;
  mark = 0;
  let monotonic = (): number => 0;
  const { records, claims } = createSharedMemory({ monotonic: () => monotonic() });
  const orFail = async <T>(work: () => Promise<T>): Promise<T> => {
    if (isAway) throw new ParleyError("store-unavailable", "the test made the store unavailable");
    return await work();
  };
  memory = {
    claims,
    records: {
      ...records,
      get: (key) => orFail(() => records.get(key)),
      set: (key, value, ttlMs) =>
        orFail(async () => {
          await records.set(key, value, ttlMs);
          if (key.endsWith(" heard")) mark = value as number;
        }),
      update: (...given) => orFail(() => records.update(...given)),
    },
  };
  harness = await openSlackHarness({ kept: memory });
  monotonic = () => harness.clock.monotonic();
  await harness.slack.waitFor("the mark", () => mark > 0);
}

const texts = (): string[] =>
  harness.receiver.events.flatMap((event) => (event.kind === "message" ? [event.text] : []));
const received = (count: number) =>
  harness.slack.waitFor(`${count} messages`, () => texts().length >= count, 120_000);

/** Lets time pass, in which Slack delivers again. */
async function pass(ms: number): Promise<void> {
  for (let step = 0; step < 10; step++) await harness.clock.skip(ms / 10);
}

/** Resolves when a look-up has ended: the mark is of now. */
const lookedUp = () =>
  harness.slack.waitFor("the end of the look-up", () => harness.clock.now() - mark < 40_000, 120_000);

/** A person with direct messages, a channel, and a thread of the bot's, all known from before. */
async function settle() {
  await begin();
  const { slack, receiver, clock } = harness;
  const ana = slack.person("Ana");
  const ideas = slack.channel("ideas", [ana]);
  const root = ana.sends({ channel: ana.directMessages, text: "before" });
  const asked = ana.sends({ channel: ideas.id, text: "before too", mentionBot: true });
  await received(2);
  for (const id of [`${ana.directMessages}:${root}`, `${ideas.id}:${asked}`]) {
    receiver.stored.add(`slack:${slack.teamId}:${id}`);
    receiver.known.add(`slack:${slack.teamId}:${id}`);
  }
  receiver.storedAt = clock.now();
  return { ana, ideas, root, asked };
}

describe("what people wrote while nobody heard it", () => {
  test("for ten seconds comes again from Slack, and is taken once", async () => {
    const { ana, root } = await settle();
    await harness.restart(undefined, async () => {
      ana.sends({ channel: ana.directMessages, thread: root, text: "meanwhile" });
      await pass(10_000);
    });
    await received(3);
    await pass(10 * minuteMs);
    await lookedUp();
    expect(texts()).toEqual(["before", "before too", "meanwhile"]);
  });

  test("for ten minutes is looked up: in direct messages, threads and channels, in order, each once", async () => {
    const { ana, ideas, root, asked } = await settle();
    const bo = harness.slack.person("Bo");
    ideas.add(bo);
    const people = bo.sends({ channel: ideas.id, text: "among people" });
    const off = async (): Promise<void> => {
      ana.sends({ channel: ana.directMessages, thread: root, text: "thread 1" });
      ana.sends({ channel: ana.directMessages, text: "direct" });
      ana.sends({ channel: ideas.id, thread: asked, text: "thread 2" });
      ana.sends({ channel: ideas.id, text: "channel", mentionBot: true });
      ana.sends({ channel: ideas.id, text: "to nobody" });
      bo.sends({ channel: ideas.id, thread: people, text: "in people's thread", mentionBot: true });
      bo.sends({ channel: ideas.id, thread: people, text: "to nobody" });
      ana.sends({ channel: ana.directMessages, thread: root, text: "thread 3" });
      await pass(10 * minuteMs);
      expect(harness.slack.lost.length).toBeGreaterThan(0);
    };
    await harness.restart(undefined, off);
    await received(8);
    await lookedUp();
    const found = ["channel", "direct", "in people's thread", "thread 1", "thread 2", "thread 3"];
    expect(texts().slice(2).toSorted()).toEqual(found);
    const inThread = texts().filter((text) => /thread [13]/.test(text));
    expect(inThread).toEqual(["thread 1", "thread 3"]);
    // A second outage, with a restart in its look-up, finds nothing of it again.
    await harness.restart(undefined, () => pass(10 * minuteMs));
    await harness.restart();
    await lookedUp();
    expect(texts()).toHaveLength(8);
  });

  test("for a day is asked where it is of the last hour; what is older is named, with a button", async () => {
    const { ana, ideas, root } = await settle();
    const { slack } = harness;
    await harness.restart(undefined, async () => {
      ana.sends({ channel: ana.directMessages, thread: root, text: "old 1" });
      ana.sends({ channel: ana.directMessages, thread: root, text: "old 2" });
      const lone = ana.sends({ channel: ideas.id, text: "old 3", mentionBot: true });
      expect(lone).not.toBe("");
      await pass(22 * hourMs);
      ana.sends({ channel: ana.directMessages, text: "new" });
      await pass(10 * minuteMs);
    });
    await received(3);
    await lookedUp();
    expect(texts().slice(2)).toEqual(["new"]);
    const said = slack.everything().filter(({ author }) => author === "Parley");
    expect(said.map(({ text }) => text.replace(/the first from.*/s, "…"))).toEqual([
      "I was away and have not answered 2 messages here, …",
      "I was away and have not answered 1 message here, …",
    ]);
    expect(said.map(({ buttons }) => buttons.map(({ label }) => label))).toEqual([
      ["Answer the last"],
      ["Answer the last"],
    ]);
    expect(said[0]).toMatchObject({ thread: root });
    // It is said once, also by the next look-up.
    await harness.restart(undefined, () => pass(10 * minuteMs));
    await lookedUp();
    expect(slack.everything().filter(({ author }) => author === "Parley")).toHaveLength(2);
    await ana.clicks(said[0]!, "Answer the last", { channel: ana.directMessages });
    await received(4);
    expect(texts().at(-1)).toBe("old 2");
    await slack.waitFor("no button", () =>
      slack.everything().some(({ ts, buttons }) => ts === said[0]!.ts && buttons.length === 0),
    );
  });

  test("while the store was away is looked up when it is back", async () => {
    const { ana, ideas } = await settle();
    const { receiver } = harness;
    isAway = true;
    receiver.isStoreAway = true;
    ana.sends({ channel: ideas.id, text: "meanwhile", mentionBot: true });
    await pass(15 * minuteMs);
    await harness.slack.waitFor("the last delivery", () => harness.slack.lost.length > 0);
    isAway = false;
    receiver.isStoreAway = false;
    await received(3);
    await lookedUp();
    expect(texts().slice(2)).toEqual(["meanwhile"]);
  });

  test("is found by an app that may read 15 messages a minute, too", async () => {
    const { ana, ideas, root } = await settle();
    const { slack } = harness;
    slack.capHistories(15);
    for (const method of ["conversations.history", "conversations.replies"]) slack.limit(method, 1);
    await harness.restart(undefined, async () => {
      ana.sends({ channel: ana.directMessages, thread: root, text: "one" });
      ana.sends({ channel: ideas.id, text: "two", mentionBot: true });
      await pass(10 * minuteMs);
    });
    await received(4);
    expect(texts().slice(2).toSorted()).toEqual(["one", "two"]);
  });

  test("comes before what is said then: a live message waits for it, and its channel is read next", async () => {
    const { ana, ideas } = await settle();
    const { slack, receiver } = harness;
    await harness.restart(undefined, async () => {
      ana.sends({ channel: ideas.id, text: "missed", mentionBot: true });
      await pass(10 * minuteMs);
    });
    await slack.waitFor("the look-up", () =>
      slack.calls.some(({ method }) => method === "users.conversations"),
    );
    const live = ana.sends({ channel: ideas.id, text: "live", mentionBot: true });
    await received(4);
    expect(receiver.early).toContain(`slack:${slack.teamId}:${ideas.id}:${live}`);
    await lookedUp();
    const later = ana.sends({ channel: ideas.id, text: "later", mentionBot: true });
    await received(5);
    expect(receiver.early).not.toContain(`slack:${slack.teamId}:${ideas.id}:${later}`);
  });

  test("has its edits applied, also to what was known before", async () => {
    const { ana, root } = await settle();
    const { receiver } = harness;
    await harness.restart(undefined, async () => {
      ana.edits(root, "before, corrected", { channel: ana.directMessages });
      await pass(10 * minuteMs);
    });
    await harness.slack.waitFor("the edit", () => receiver.edits.length > 0);
    expect(receiver.edits[0]?.key).toBe(`slack:${harness.slack.teamId}:${ana.directMessages}:${root}`);
  });

  test("and was answered by a store that a backup has replaced since is not offered again", async () => {
    const { ana, root } = await settle();
    const { receiver, platform, clock } = harness;
    const backedUpAt = clock.now();
    for (const text of ["answered", "not answered"])
      ana.sends({ channel: ana.directMessages, ...(text === "answered" ? { thread: root } : {}), text });
    await received(4);
    const answered = receiver.events.find((event) => event.kind === "message" && event.text === "answered")!;
    const reply = platform.openReply(answered.address, { saveAddress: () => Promise.resolve() });
    await reply.show();
    reply.write({ text: "An answer." });
    await reply.finish();
    const offered: string[] = [];
    const receive = receiver.receive.bind(receiver);
    receiver.receive = (event, how) => {
      if (event.kind === "message") offered.push(event.text);
      return receive(event, how);
    };
    await harness.restart(undefined, async () => {
      await pass(10 * minuteMs);
      Object.assign(receiver, { restored: { backedUpAt, restoredAt: clock.now() } });
    });
    await lookedUp();
    expect(offered).toContain("not answered");
    expect(offered).not.toContain("answered");
  });
});
