import { afterEach, beforeEach, describe, expect, test } from "vitest";
import type { IncomingEvent, ReplyAddress } from "../../../../src/core/events.ts";
import type { Reply } from "../../../../src/core/reply.ts";
import { fixture } from "../../../fixtures/fixtures.ts";
import type { Person } from "../../../simulators/discord/people.ts";
import type { ChannelHandle } from "../../../simulators/discord/simulator.ts";
import { type Harness, startHarness, until } from "./harness.ts";
import { loopTime } from "../../../support/loop-time.ts";

describe("answers in threads", () => {
  let harness: Harness;
  let ada: Person;
  let general: ChannelHandle;
  beforeEach(async () => {
    harness = await startHarness();
    ada = harness.simulator.person("Ada");
    general = harness.simulator.channel("general");
  });
  afterEach(() => harness.close());

  function open(address: ReplyAddress): { reply: Reply; saved: ReplyAddress[] } {
    const saved: ReplyAddress[] = [];
    const reply = harness.platform.openReply(address, {
      saveAddress: async (grown) => void saved.push(structuredClone(grown)),
    });
    return { reply, saved };
  }

  /** Begins to answer a mention, or a message in its thread. */
  async function begin(where: "mention" | "in its thread"): Promise<{ reply: Reply; thread: ChannelHandle }> {
    const { receiver } = harness;
    const root = ada.sends({ channel: general, text: "what?", mentionBot: true });
    await until(() => receiver.events.length === 1);
    if (where === "in its thread") {
      await harness.platform.openThread(receiver.events[0]!.address, { title: "what?" });
      ada.sends({ channel: { id: root.id }, text: "and?" });
      await until(() => receiver.events.length === 2);
    }
    const { reply } = open(receiver.events.at(-1)!.address);
    await reply.show();
    reply.write({ text: "Half" });
    const thread = await until(() => general.threads()[0]);
    await until(() => thread.fromBot().length === 1);
    return { reply, thread };
  }

  describe.each(["mention", "in its thread"] as const)("an answer that grows in a thread (%s)", (where) => {
    test("is completed where the thread was archived meanwhile", async () => {
      const { reply, thread } = await begin(where);
      thread.archive();
      reply.write({ text: "Half, and the rest." });
      await reply.finish();
      expect(thread.fromBot().map(({ text }) => text)).toEqual(["Half, and the rest."]);
      expect(general.fromBot()).toEqual([]);
    });

    test.each([{ archived: true }, { archived: false }])(
      "cannot be shown where the thread was locked meanwhile ($archived): nothing comes into the channel",
      async ({ archived }) => {
        const { reply, thread } = await begin(where);
        thread.archive({ locked: true, archived });
        reply.write({ text: "Half, and the rest." });
        await expect(reply.finish()).rejects.toMatchObject({ code: "platform-forbidden" });
        expect(thread.fromBot().map(({ text }) => text)).toEqual(["Half"]);
        expect(general.fromBot()).toEqual([]);
      },
    );
  });

  test("without Read Message History the answer is no reply, and the log says what to grant", async () => {
    const { receiver } = harness;
    general.deny("READ_MESSAGE_HISTORY", "CREATE_PUBLIC_THREADS");
    ada.sends({ channel: general, text: "what?", mentionBot: true });
    await until(() => receiver.events.length === 1);
    const { reply } = open(receiver.events[0]!.address);
    await reply.show();
    reply.write({ text: "That." });
    await reply.finish();
    expect(general.fromBot()).toMatchObject([{ text: expect.stringMatching(/^That\./), replyTo: undefined }]);
    expect(harness.lines.some(({ fields }) => fields["permission"] === "Read Message History")).toBe(true);
  });

  test("the first answer in a thread that a command opened is one message, also where its address was not saved", async () => {
    const { receiver, platform } = harness;
    ada.usesCommand("chat", { message: "what?" }, { channel: general });
    await until(() => receiver.events.length === 1);
    const { address } = await platform.openThread(receiver.events[0]!.address, { title: "what?" });
    for (const run of ["first", "second"]) {
      const { reply } = open(address);
      await reply.show();
      reply.write({ text: `The ${run} run.` });
      await reply.finish();
    }
    expect(general.threads()[0]?.fromBot()).toMatchObject([{ text: "The second run." }]);
  });
});

describe("limits of threads", () => {
  let harness: Harness;
  let ada: Person;
  let general: ChannelHandle;
  afterEach(async () => {
    await harness.close();
  });

  type Options = NonNullable<Parameters<typeof startHarness>[0]>;
  const start = async (rateLimits: Options["rateLimits"] = {}, options: Options = {}) => {
    harness = await startHarness({ rateLimits, ...options });
    ada = harness.simulator.person("Ada");
    general = harness.simulator.channel("general");
  };
  const event = (count: number): Promise<IncomingEvent> =>
    until(() => harness.receiver.events[count - 1], { explain: () => harness.lines });
  const open = async (count: number): Promise<Reply> =>
    harness.platform.openReply((await event(count)).address, { saveAddress: () => Promise.resolve() });
  const answer = async (count: number, text: string): Promise<void> => {
    const reply = await open(count);
    await reply.show();
    reply.write({ text });
    await reply.finish();
  };

  describe("where the creation of threads is limited for minutes", () => {
    test("the answer comes in the channel at once, as a reply that says how to go on", async () => {
      await start({ threads: { limit: 1, windowMs: 300_000 } });
      for (const text of ["one", "two", "three"]) ada.sends({ channel: general, text, mentionBot: true });
      await event(3);
      await answer(1, "Answer 1.");
      const startedAt = loopTime();
      for (const count of [2, 3]) await answer(count, `Answer ${count}.`);
      expect(loopTime() - startedAt).toBeLessThan(2000);
      const [thread] = general.threads();
      expect(general.threads()).toHaveLength(1);
      expect(thread?.fromBot()).toMatchObject([{ text: "Answer 1." }]);
      const [, second, third] = general.transcript().filter(({ author }) => author === "Ada");
      expect(general.fromBot()).toMatchObject([
        {
          replyTo: second?.id,
          text: expect.stringMatching(/^Answer 2\.\n-# .*Reply to this message to go on/),
        },
        { replyTo: third?.id, text: expect.stringMatching(/^Answer 3\./) },
      ]);
      // The limit is learned, so only one request met it.
      const refused = harness.simulator.requests.filter(({ status }) => status === 429);
      expect(refused).toHaveLength(1);
      // Whoever replies goes on in the same conversation.
      harness.receiver.known.add((await event(2)).conversationId);
      ada.sends({ channel: general, text: "and then?", replyTo: general.fromBot()[0]! });
      expect((await event(4)).conversationId).toBe((await event(2)).conversationId);
    });

    test("a command that opens a thread fails with a time, and soon", async () => {
      await start({ threads: { limit: 0, windowMs: 300_000 } });
      ada.usesCommand("chat", {}, { channel: general });
      const { address } = await event(1);
      await expect(harness.platform.openThread(address, { title: "x" })).rejects.toMatchObject({
        code: "platform-unreachable",
        retryAfterMs: expect.any(Number),
      });
    });
  });

  test("where a thread can be opened some seconds later, it is", async () => {
    await start({ threads: { limit: 1, windowMs: 100 } });
    for (const text of ["one", "two"]) ada.sends({ channel: general, text, mentionBot: true });
    await event(2);
    for (const count of [1, 2]) await answer(count, `Answer ${count}.`);
    expect(general.threads().map((thread) => thread.fromBot().map(({ text }) => text))).toEqual([
      ["Answer 1."],
      ["Answer 2."],
    ]);
    expect(general.fromBot()).toEqual([]);
  });

  test("a server with as many active threads as Discord allows gets answers in its channels, until there is room again", async () => {
    await start({}, { maxActiveThreads: 1 });
    const occupied = harness.simulator.thread(general, ada);
    for (const text of ["one", "two", "three"]) ada.sends({ channel: general, text, mentionBot: true });
    await event(3);
    for (const count of [1, 2]) await answer(count, `Answer ${count}.`);
    const [, second] = general.transcript().filter(({ author }) => author === "Ada");
    expect(general.fromBot()).toMatchObject([
      { text: expect.stringMatching(/^Answer 1\.\n-# .*missing: .*as many active ones/) },
      {
        replyTo: second?.id,
        text: expect.stringMatching(/^Answer 2\.\n-# .*missing: .*as many active ones/),
      },
    ]);

    occupied.archive();
    await answer(3, "Answer 3.");
    expect(general.threads().at(-1)?.fromBot()).toMatchObject([{ text: "Answer 3." }]);
  });

  test("pictures of one answer are one message, ten at most", async () => {
    await start();
    const direct = harness.simulator.directMessages(ada);
    ada.sends({ channel: direct, text: "draw" });
    const reply = await open(1);
    await reply.show();
    const bytes = await fixture("picture.png");
    await Promise.all(
      Array.from({ length: 12 }, (_, n) =>
        reply.attach({ name: `p${n}.png`, mediaType: "image/png", bytes, altText: `Picture ${n}` }),
      ),
    );
    await reply.finish();
    expect(direct.fromBot().map(({ files }) => files.length)).toEqual([10, 2]);
  });

  test("a final text is sent before the previews of others that wait", async () => {
    // Reads of members are limited too.
    await start({ others: { limit: 1000, windowMs: 1000 } });
    const people = Array.from({ length: 30 }, (_, n) => harness.simulator.person(`P${n}`));
    for (const person of people)
      person.sends({ channel: harness.simulator.directMessages(person), text: "hello" });
    await event(30);
    const replies = await Promise.all(people.map((_, n) => open(n + 1)));
    for (const reply of replies) await reply.show();
    const isLive = { current: true };
    const texts = replies.map(() => "");
    // All stream as fast as they can.
    const streaming = setInterval(() => {
      if (!isLive.current) return;
      for (const [n, reply] of replies.entries()) reply.write({ text: (texts[n] += "word ") });
    }, 20);
    await until(() => harness.simulator.requests.filter(({ method }) => method === "PATCH").length > 30);
    const waits: number[] = [];
    for (const reply of replies.slice(0, 5)) {
      const startedAt = loopTime();
      await reply.finish();
      waits.push(loopTime() - startedAt);
    }
    isLive.current = false;
    clearInterval(streaming);
    await Promise.all(replies.slice(5).map((reply) => reply.finish()));
    expect(Math.max(...waits)).toBeLessThan(1500);
    expect(harness.simulator.requests.filter(({ status }) => status === 429)).toEqual([]);
  });
});
