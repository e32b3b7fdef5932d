import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import type { Assistant } from "../../../../src/assistant/assistant.ts";
import type { IncomingMessage } from "../../../../src/core/events.ts";
import type { MessageFacts, Placement } from "../../../../src/core/placement.ts";
import { createWorld, type World } from "../../../support/assistant-world.ts";
import { message } from "../../../support/fakes.ts";

const origin = { server: "fake:server", channel: "fake:channel:1" };
const [ada, bo] = [
  { id: "fake:ada", name: "Ada Lovelace" },
  { id: "fake:bo", name: "Bo" },
];
let world: World;

beforeEach(async () => {
  world = await createWorld();
});
afterEach(() => world.close());

type How = Partial<Pick<MessageFacts, "isCall" | "repliesTo" | "author" | "isEdited" | "wasAsked">> & {
  readonly in?: string;
  readonly isOwn?: () => boolean | Promise<boolean>;
  readonly at?: number;
  readonly by?: Assistant;
};

/** The time a second later. */
async function later(): Promise<number> {
  await world.clock.advance(1000);
  return world.clock.now();
}

/** Says what becomes of a message in a thread. */
async function placed(author: typeof ada, text: string, how: How = {}): Promise<Placement> {
  const { in: conversationId = "fake:own", isOwn = () => false, at, by = world.assistant, ...rest } = how;
  return await by.placeMessage({
    author: "person",
    pieces: [text],
    botNames: ["Parley"],
    authorId: author.id,
    sentAt: at ?? (await later()),
    stands: { in: "thread", conversationId, place: origin, isOwn },
    ...rest,
  });
}

async function question(author: typeof ada, text: string, more: Partial<IncomingMessage> = {}) {
  const sentAt = await later();
  return message(text, { conversationId: "fake:own", key: `fake:${sentAt}`, author, sentAt, ...more });
}

/** What somebody asks is answered, and stands in the thread. */
async function asks(author: typeof ada, text: string, more?: Partial<IncomingMessage>): Promise<void> {
  await world.answered(await question(author, text, more));
}

/** What becomes of a message. The assistant hears an aside, as a platform has it. */
async function says(author: typeof ada, text: string, how: How = {}): Promise<Placement["kind"]> {
  const placement = await placed(author, text, how);
  if (placement.kind === "aside") await world.assistant.receive(placement);
  return placement.kind;
}

describe("in a thread of the bot's own", () => {
  it("everything is answered while one person writes, and from the second one on what is said to the bot", async () => {
    await asks(ada, "hello");
    expect(await says(ada, "and a fir?")).toBe("question");
    expect(await says(ada, "👍")).toBe("question");
    expect(await says(bo, "nice!")).toBe("aside");
    expect(await says(ada, "who writes the flyer?")).toBe("aside");
    expect(await says(bo, "parley, who writes the flyer?")).toBe("question");
    expect(await says(bo, "look", { isCall: true })).toBe("question");
    expect(await says(bo, "why?", { repliesTo: "bot" })).toBe("question");
    expect(await says(bo, "what is a larch?", { author: "app" })).toBe("aside");
  });

  it("whom it has just answered goes on, until anybody says something to others", async () => {
    await asks(ada, "hello");
    await asks(bo, "hello");
    expect(await says(ada, "and a fir?")).toBe("aside");
    await asks(bo, "parley?");
    expect(await says(ada, "👍")).toBe("aside");
    expect(await says(bo, "Ada, look at that")).toBe("aside");
    expect(await says(bo, "and a fir?")).toBe("aside");
    await asks(bo, "parley?");
    expect(await says(bo, "and a fir?")).toBe("question");
    expect(await says(ada, "I like larches")).toBe("aside");
    expect(await says(bo, "and a pine?")).toBe("aside");
  });

  it("what was said before the answer stood does not end it, nor does an emoji or an app", async () => {
    await asks(ada, "hello");
    const held = world.hold();
    await world.assistant.receive(await question(bo, "hello"));
    await vi.waitFor(() => expect(held.count()).toBe(1));
    expect(await says(ada, "I like larches")).toBe("aside");
    await later();
    held.release();
    await world.settled();
    expect(await says(ada, "🎉")).toBe("aside");
    expect(await says(ada, "build 7 is green", { author: "app" })).toBe("aside");
    expect(await says(bo, "and a fir?")).toBe("question");
  });

  it("a question that waits for its turn is gone on with", async () => {
    await asks(bo, "hello");
    const held = world.hold();
    await world.assistant.receive(await question(bo, "and a fir?"));
    await vi.waitFor(() => expect(held.count()).toBe(1));
    await world.assistant.receive(await question(ada, "parley?"));
    expect(await says(ada, "for Berlin, I mean")).toBe("question");
    expect(await says(ada, "Bo, for Berlin")).toBe("aside");
    expect(await says(ada, "works for me")).toBe("aside");
    held.release();
    await world.settled();
  });

  it("a message is judged by what was said before it, also where a process decides late", async () => {
    await asks(ada, "hello");
    await asks(bo, "hello");
    const late = await later();
    await asks(ada, "parley?");
    expect(await says(ada, "works for me", { at: late })).toBe("aside");
  });

  it("who is alone again once the other's words are read and deleted is answered all", async () => {
    await asks(ada, "hello");
    expect(await says(bo, "nice!")).toBe("aside");
    expect(await says(ada, "who writes it?")).toBe("aside");
    world.platform.room.read = async () => ({ messages: [], hasOlder: false });
    await asks(ada, "parley?");
    await world.assistant.receive({
      kind: "aside",
      conversationId: "fake:own",
      sentAt: await later(),
      hasWords: true,
    });
    expect(await says(ada, "who writes it?")).toBe("question");
  });

  it("an edit of what was said to others decides anew, and the same message delivered again does not", async () => {
    await asks(ada, "hello");
    await asks(bo, "hello");
    const at = await later();
    expect(await says(bo, "Ada, and a fir?", { at })).toBe("aside");
    expect(await says(bo, "and a fir?", { at })).toBe("aside");
    expect(await says(bo, "and a fir?", { at, isEdited: true })).toBe("question");
  });

  it("an edit of a question stays a question, unless it turns to somebody else", async () => {
    await asks(ada, "hello");
    await asks(bo, "hello");
    expect(await says(ada, "what is a pine?", { wasAsked: true })).toBe("question");
    expect(await says(ada, "Bo, what is a pine?", { wasAsked: true })).toBe("aside");
  });

  it("is so in another instance and after a restart", async () => {
    const by = world.restart();
    await asks(ada, "hello");
    expect(await says(bo, "nice!")).toBe("aside");
    expect(await says(ada, "who writes it?", { by })).toBe("aside");
    await asks(ada, "parley?");
    expect(await says(ada, "and a fir?", { by })).toBe("question");
  });

  it("its names are those of each who wrote there", async () => {
    await asks(ada, "hello", { author: { ...ada, alsoCalled: ["countess"] } });
    await asks(bo, "hello");
    for (const text of ["ada look", "Countess, look", "@ada lovelace look", "aaaada?"])
      expect(await says(bo, text), text).toBe("aside");
  });

  it("the first time something is left to others, the next answer says once what is answered", async () => {
    world.platform.room.read = async () => ({ messages: [], hasOlder: false });
    await asks(ada, "hello");
    await says(bo, "🎉");
    await asks(bo, "parley?");
    await says(ada, "nice!");
    await asks(ada, "parley?");
    await says(ada, "Bo, nice!");
    await asks(ada, "parley?");
    const hint = expect.stringContaining("I answer mentions, replies and my name");
    expect(world.platform.replies.map(({ notices }) => notices)).toEqual([[], [], [hint], []]);
  });
});

describe("whose a thread is", () => {
  it("is what /chat and /dismiss say, then who had it, then what the platform knows", async () => {
    const { conversations } = world.store;
    expect(await says(ada, "hello", { in: "fake:none" })).toBe("ignore");
    expect(await says(ada, "hello", { in: "fake:none", isOwn: () => true })).toBe("question");
    await asks(ada, "hello", { conversationId: "fake:room", inRoom: true });
    const room = { in: "fake:room" };
    expect(await says(ada, "and a fir?", room)).toBe("ignore");
    expect(await says(ada, "parley?", room)).toBe("ignore");
    expect(await placed(ada, "why?", { ...room, repliesTo: "bot" })).toMatchObject({ inRoom: true });
    await conversations.saveSettings("fake:room", { answerTo: "every-message" });
    expect(await placed(ada, "and a fir?", room)).toMatchObject({ kind: "question", inRoom: false });
    await conversations.saveSettings("fake:room", { answerTo: "mentions" });
    expect(await says(ada, "and a fir?", room)).toBe("ignore");
    expect(await placed(ada, "why?", { ...room, isCall: true })).toMatchObject({ inRoom: true });
  });

  it("who calls the bot is answered although the platform cannot say it", async () => {
    const isOwn = () => Promise.reject(new Error("Discord is away"));
    await expect(placed(ada, "hello", { in: "fake:none", isOwn })).rejects.toThrow("Discord is away");
    expect(await says(ada, "hello", { in: "fake:none", isOwn, isCall: true })).toBe("question");
  });

  it("is the bot's as soon as a message is accepted, and where it was stored before there was a mark", async () => {
    await world.store.inbox.accept(message("first", { conversationId: "fake:accepted" }));
    expect(await says(bo, "parley?", { in: "fake:accepted" })).toBe("question");
    expect(await says(bo, "hm?", { in: "fake:accepted" })).toBe("aside");
    await world.store.conversations.append("fake:old", {
      id: "fake:0/user",
      role: "user",
      turnKey: "fake:0",
      parts: [{ kind: "text", text: "hello" }],
      createdAt: 0,
      estimatedTokens: 2,
    });
    expect(await says(ada, "hm?", { in: "fake:old" })).toBe("question");
  });
});

describe("answer-to of the channel reaches its threads", () => {
  const texts = {
    plain: {},
    reply: { repliesTo: "bot" },
    mention: { isCall: true },
  } as const;
  const answered = async (where: string) => {
    const kinds: string[] = [];
    for (const [name, how] of Object.entries(texts))
      if ((await placed(ada, "why?", { in: where, ...how })).kind === "question") kinds.push(name);
    if ((await placed(ada, "parley?", { in: where })).kind === "question") kinds.push("name");
    return kinds;
  };

  it.each([
    ["addressed", ["plain", "reply", "mention", "name"], ["reply", "mention"]],
    ["named", ["reply", "mention", "name"], ["reply", "mention", "name"]],
    ["mentions", ["mention"], ["mention"]],
    ["all", ["plain", "reply", "mention", "name"], ["plain", "reply", "mention", "name"]],
    ["every-message", ["plain", "reply", "mention", "name"], ["plain", "reply", "mention", "name"]],
  ] as const)("%s", async (value, ofOwn, ofPeople) => {
    await asks(ada, "hello");
    await asks(ada, "hello", { conversationId: "fake:room", inRoom: true });
    await world.store.settings.change(origin.channel, { "answer-to": value });
    expect(await answered("fake:own")).toEqual(ofOwn);
    expect(await answered("fake:room")).toEqual(ofPeople);
    const left = value === "all" || value === "every-message" ? "question" : "ignore";
    if (value !== "addressed") expect((await placed(bo, "hm", { in: "fake:own" })).kind).not.toBe("ignore");
    expect((await placed(bo, "hm", { in: "fake:room" })).kind).toBe(left);
  });

  it("a thread that the bot was sent away from is people's, also where every message is answered", async () => {
    await asks(ada, "hello");
    await world.store.conversations.saveSettings("fake:own", { answerTo: "mentions" });
    await world.store.settings.change(origin.channel, { "answer-to": "all" });
    expect(await answered("fake:own")).toEqual(["reply", "mention"]);
  });
});

describe("what a message costs the store that is for nobody", () => {
  it.each<[string, number, () => Promise<unknown>]>([
    [
      "a reply in a thread that nobody asked the bot in",
      4,
      () => placed(ada, "lunch?", { in: "fake:theirs" }),
    ],
    [
      "a reply in a thread of people that the bot was once called into",
      2,
      async () => {
        await asks(bo, "what is this?", { conversationId: "fake:theirs", inRoom: true });
        return placed(ada, "lunch?", { in: "fake:theirs" });
      },
    ],
  ])("%s: %i reads", async (_, most, say) => {
    await world.close();
    const operations: string[] = [];
    world = await createWorld({
      meter: (event) => void (event.kind === "stored" && operations.push(event.operation)),
    });
    let counted: readonly string[] = [];
    const place = world.assistant.placeMessage.bind(world.assistant);
    world.assistant.placeMessage = async (facts) => {
      const before = operations.length;
      const placement = await place(facts);
      counted = operations.slice(before);
      return placement;
    };
    expect(await say()).toMatchObject({ kind: "ignore" });
    expect(counted).toHaveLength(most);
  });
});
