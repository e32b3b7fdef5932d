import { ChannelType, MessageType, type APIMessage } from "discord.js";
import { describe, expect, it } from "vitest";
import type { RoomQuery } from "../../../../src/core/room.ts";
import type { DiscordAddress } from "../../../../src/platforms/discord/address.ts";
import { createRoomReader } from "../../../../src/platforms/discord/read-room.ts";

const threadId = "500";
const keyOf = (id: number) => `discord:${id}`;

/** A thread with messages of these ids, oldest first; `asked` has the queries. */
function setUp(ids: readonly number[], { mayRead = true, isQuiet = false } = {}) {
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
    names: async () => ({ botId: "1" }) as never,
    readsContents: () => true,
    heard: { isQuietBetween: (...between) => isQuiet && between.join() === `${threadId},1000,1002` },
  });
  const address = { channelId: threadId, channelType: ChannelType.PublicThread } as unknown as DiscordAddress;
  const read = async (query: Partial<RoomQuery>) =>
    readRoom(address as never, { maxMessages: 50, signal: new AbortController().signal, ...query });
  return { asked, read };
}

const range = (from: number, to: number) => Array.from({ length: to - from + 1 }, (_, index) => from + index);

describe("a thread of which some was read before", () => {
  it("is asked only for what came after, in one request", async () => {
    const { asked, read } = setUp(range(1000, 1090));
    const reading = await read({ after: keyOf(1085), before: keyOf(1089) });
    expect(reading?.messages.map(({ key }) => key)).toEqual([1086, 1087, 1088].map(keyOf));
    expect(reading).toMatchObject({ hasOlder: false });
    expect(reading?.failure).toBeUndefined();
    expect(asked).toEqual([{ after: "1085", limit: 100 }]);
  });

  it("is read from its end where more came after than one page has", async () => {
    const { asked, read } = setUp(range(1000, 1400));
    const reading = await read({ after: keyOf(1050), before: keyOf(1390) });
    expect(reading?.messages.map(({ key }) => key)).toEqual(range(1340, 1389).map(keyOf));
    expect(reading).toMatchObject({ hasOlder: true });
    expect(asked).toEqual([
      { after: "1050", limit: 100 },
      { before: "1391", limit: 100 },
    ]);
  });

  it("keeps the newest where more came after than are wanted", async () => {
    const { read } = setUp(range(1000, 1090));
    const reading = await read({ after: keyOf(1020), before: keyOf(1090), maxMessages: 5 });
    expect(reading?.messages.map(({ key }) => key)).toEqual(range(1085, 1089).map(keyOf));
    expect(reading).toMatchObject({ hasOlder: true });
  });

  it("says which permission is missing where nothing comes back, not even the question", async () => {
    const { read } = setUp(range(1000, 1010), { mayRead: false });
    const reading = await read({ after: keyOf(1005), before: keyOf(1010) });
    expect(reading?.failure).toMatchObject({
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

describe("a thread in which nobody said anything", () => {
  it("is not asked for what was delivered anyway", async () => {
    const { asked, read } = setUp([1000, 1002], { isQuiet: true });
    const between = { after: keyOf(1000), before: keyOf(1002) };
    expect(await read(between)).toEqual({ messages: [], hasOlder: false });
    expect(asked).toEqual([]);
    await read({ ...between, includesOwn: true });
    await read({ before: keyOf(1002) });
    await read({ after: keyOf(1000) });
    await read({ ...between, after: keyOf(999) });
    expect(asked).toHaveLength(4);
  });
});
