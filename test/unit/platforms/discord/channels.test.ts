import { type APIMessage, ChannelType, MessageType } from "discord.js";
import { afterEach, beforeEach, describe, expect, it, test } from "vitest";
import type { IncomingEvent } from "../../../../src/core/events.ts";
import type { RoomQuery } from "../../../../src/core/room.ts";
import { createRoomReader } from "../../../../src/platforms/discord/intake/read-room.ts";
import { createReplyChains } from "../../../../src/platforms/discord/intake/reply-chains.ts";
import type { Person } from "../../../simulators/discord/people.ts";
import type { ChannelHandle } from "../../../simulators/discord/simulator.ts";
import type { SeenMessage } from "../../../simulators/discord/transcript.ts";
import { createListLog, type Harness, startHarness, until } from "./harness.ts";

describe("chains of replies", () => {
  describe("conversations without a thread", () => {
    let harness: Harness;
    let ada: Person;
    let general: ChannelHandle;
    beforeEach(async () => {
      harness = await startHarness();
      ada = harness.simulator.person("Ada");
      general = harness.simulator.channel("general");
      general.deny("CREATE_PUBLIC_THREADS");
    });
    afterEach(() => harness.close());

    const event = (count: number): Promise<IncomingEvent> =>
      until(() => harness.receiver.events[count - 1], { explain: () => harness.lines });
    const answer = async ({ address }: IncomingEvent, text: string): Promise<SeenMessage[]> => {
      const before = general.fromBot().length;
      const reply = harness.platform.openReply(address, { saveAddress: () => Promise.resolve() });
      await reply.show();
      reply.write({ text });
      await reply.finish();
      return general.fromBot().slice(before);
    };
    const long = (word: string): string =>
      Array.from({ length: 60 }, (_, n) => `Paragraph ${n}. ${`${word} `.repeat(10)}`).join("\n\n");

    test("a chain of replies is one conversation, also in the middle of it and after a restart", async () => {
      ada.sends({ channel: general, text: "one", mentionBot: true });
      const first = await event(1);
      const [one] = await answer(first, "1");
      harness.receiver.known.add(first.conversationId);
      ada.sends({ channel: general, text: "two", replyTo: one! });
      const [two] = await answer(await event(2), "2");
      const asked = ada.sends({ channel: general, text: "three", replyTo: two! });
      expect((await event(3)).conversationId).toBe(first.conversationId);
      const [three] = await answer(await event(3), "3");
      // The second process lacks what the first one remembers.
      const { restart } = harness;
      await restart();
      harness.receiver.known.add(first.conversationId);
      ada.sends({ channel: general, text: "four", replyTo: three! });
      expect(await event(1)).toMatchObject({ conversationId: first.conversationId, text: "four" });
      expect(three?.replyTo).toBe(asked.id);
    });

    test("a reply to any message of a long answer goes on", async () => {
      ada.sends({ channel: general, text: "one", mentionBot: true });
      const first = await event(1);
      const shown = await answer(first, long("word"));
      expect(shown.length).toBeGreaterThan(1);
      harness.receiver.known.add(first.conversationId);
      ada.sends({ channel: general, text: "two", replyTo: shown.at(-1)! });
      expect((await event(2)).conversationId).toBe(first.conversationId);
    });

    test("a chain in which a question was deleted begins a new conversation", async () => {
      ada.sends({ channel: general, text: "one", mentionBot: true });
      const first = await event(1);
      const [one] = await answer(first, "1");
      harness.receiver.known.add(first.conversationId);
      const second = ada.sends({ channel: general, text: "two", replyTo: one! });
      const [two] = await answer(await event(2), "2");
      ada.deletes(second);
      await harness.restart();
      harness.receiver.known.add(first.conversationId);
      const next = ada.sends({ channel: general, text: "three", replyTo: two! });
      expect((await event(1)).conversationId).toBe(`discord:${next.id}`);
    });

    test("the deletion of a later question reaches the conversation of the first one", async () => {
      ada.sends({ channel: general, text: "one", mentionBot: true });
      const first = await event(1);
      const [one] = await answer(first, "1");
      harness.receiver.known.add(first.conversationId);
      const second = ada.sends({ channel: general, text: "two", replyTo: one! });
      const { key } = await event(2);
      ada.deletes(second);
      await until(() =>
        harness.receiver.deletedMessages.some(
          (one) => one.key === key && one.conversationId === first.conversationId,
        ),
      );
    });
  });

  test("a chain of 200 questions is found after a restart with one look-up of its last one", async () => {
    const root = "discord:1";
    const accepted = new Map(Array.from({ length: 200 }, (_, n) => [`${n + 1}`, root]));
    let reads = 0;
    const chains = createReplyChains({
      api: {
        getMessage: () => {
          reads += 1;
          return Promise.reject(new Error("not asked"));
        },
      },
      isKnown: async (id) => id === root,
      acceptedIn: async (questionId) => accepted.get(questionId),
      botId: () => "bot",
      log: createListLog().log,
    });
    const answer = {
      id: "1000",
      channel_id: "2000",
      author: { id: "bot" },
      message_reference: { message_id: "200" },
    };
    expect(await chains.find(answer as APIMessage)).toBe(root);
    expect(reads).toBe(0);
  });
});

describe("reading a room", () => {
  const threadId = "500";
  const keyOf = (id: number) => `discord:${id}`;

  /** Makes a thread with messages of these ids, oldest first. `asked` has the queries. */
  function setUp(ids: readonly number[], { mayRead = true } = {}) {
    const asked: { after?: string; before?: string | undefined; limit: number }[] = [];
    const toMessage = (id: number): APIMessage =>
      ({
        id: `${id}`,
        type: MessageType.Default,
        channel_id: threadId,
        content: `message ${id}`,
        author: { id: "7", username: "ada" },
        timestamp: "2026-01-01T00:00:00.000Z",
        mentions: [],
        mention_roles: [],
        attachments: [],
        embeds: [],
      }) as unknown as APIMessage;
    const readRoom = createRoomReader({
      api: {
        async listMessages(_channelId, { after, before, limit }) {
          asked.push({ ...(after === undefined ? {} : { after }), before, limit });
          if (!mayRead) return [];
          const fitting = ids.filter((id) => id > Number(after ?? 0) && id < Number(before ?? Infinity));
          const page = after === undefined ? fitting.slice(-limit) : fitting.slice(0, limit);
          return page.toReversed().map(toMessage);
        },
        getChannel: () => Promise.reject(new Error("not asked for")),
      },
      postTitle: () => Promise.resolve("Login"),
      names: async () => ({ botId: "1" }) as never,
      readsContents: () => true,
    });
    const readAt = async (at: object, query: Partial<RoomQuery> = {}) =>
      readRoom(at as never, { maxMessages: 50, signal: new AbortController().signal, ...query });
    const read = async (query: Partial<RoomQuery>) => {
      const at = { channelId: threadId, channelType: ChannelType.PublicThread };
      const reading = await readAt(at, query);
      if (typeof reading === "string") throw new Error(`a thread is ${reading}`);
      return reading;
    };
    return { asked, read, readAt };
  }

  const range = (from: number, to: number) =>
    Array.from({ length: to - from + 1 }, (_, index) => from + index);

  it("a post that is longer than what is read has its title before the oldest of that", async () => {
    const { read } = setUp(range(1000, 1090));
    const reading = await read({ before: keyOf(1090) });
    expect(reading.hasOlder).toBe(true);
    expect(reading.messages.map(({ text }) => text).slice(0, 2)).toEqual([
      "> Title of the post:\n> Login\n\nmessage 1040",
      "message 1041",
    ]);
    const later = await read({ after: keyOf(1020), before: keyOf(1090) });
    expect(later.messages[0]?.text).toMatch(/^message/);
  });

  describe("a thread of which some was read before", () => {
    it("is asked only for what came after, in one request", async () => {
      const { asked, read } = setUp(range(1000, 1090));
      const reading = await read({ after: keyOf(1085), before: keyOf(1089) });
      expect(reading.messages.map(({ key }) => key)).toEqual([1086, 1087, 1088].map(keyOf));
      expect(reading).toMatchObject({ hasOlder: false });
      expect(reading.failure).toBeUndefined();
      expect(asked).toEqual([{ after: "1085", limit: 100 }]);
    });

    it("is read from its end where more came after than one page has", async () => {
      const { asked, read } = setUp(range(1000, 1400));
      const reading = await read({ after: keyOf(1050), before: keyOf(1390) });
      expect(reading.messages.map(({ key }) => key)).toEqual(range(1340, 1389).map(keyOf));
      expect(reading).toMatchObject({ hasOlder: true });
      expect(asked).toEqual([
        { after: "1050", limit: 100 },
        { before: "1391", limit: 100 },
      ]);
    });

    it("keeps the newest where more came after than are wanted", async () => {
      const { read } = setUp(range(1000, 1090));
      const reading = await read({ after: keyOf(1020), before: keyOf(1090), maxMessages: 5 });
      expect(reading.messages.map(({ key }) => key)).toEqual(range(1085, 1089).map(keyOf));
      expect(reading).toMatchObject({ hasOlder: true });
    });

    it("says which permission is missing where nothing comes back, not even the question", async () => {
      const { read } = setUp(range(1000, 1010), { mayRead: false });
      const reading = await read({ after: keyOf(1005), before: keyOf(1010) });
      expect(reading.failure).toMatchObject({
        code: "platform-forbidden",
        detail: { permission: "Read Message History" },
      });
    });

    it("says nothing of the kind where the question was deleted", async () => {
      const { read } = setUp(range(1000, 1005));
      const reading = await read({ after: keyOf(1005), before: keyOf(1010) });
      expect(reading).toEqual({ messages: [], hasOlder: false });
    });
  });

  it("the bot's direct messages have no room", async () => {
    const { asked, readAt } = setUp([1000]);
    expect(await readAt({ channelId: "700", channelType: ChannelType.DM })).toBe("alone");
    expect(asked).toEqual([]);
  });
});

describe("deletions", () => {
  test("a bulk deletion of 100 messages is one call, which names the threads that may begin with them", async () => {
    const harness = await startHarness();
    try {
      const { simulator, receiver } = harness;
      const ada = simulator.person("Ada");
      const general = simulator.channel("general");
      const mention = ada.sends({ channel: general, text: "begin", mentionBot: true });
      await until(() => receiver.events.length === 1);
      const others = Array.from({ length: 99 }, (_, index) =>
        ada.sends({ channel: general, text: `${index}` }),
      );
      general.purge(mention.id, ...others.map(({ id }) => id));
      await until(() => receiver.deletedMessages.length > 0, { explain: () => harness.lines });
      expect(receiver.deletionCalls).toBe(1);
      expect(receiver.deletedMessages).toContainEqual({
        conversationId: `discord:${general.id}`,
        key: `discord:${mention.id}`,
      });
      expect(receiver.deletedMessages).toContainEqual({
        conversationId: `discord:${mention.id}`,
        key: `discord:${mention.id}`,
      });
    } finally {
      await harness.close();
    }
  });
});
