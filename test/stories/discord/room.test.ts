import { describe, expect, it } from "vitest";
import { fixture } from "../../fixtures/fixtures.ts";
import { managerBits } from "../../simulators/discord/world.ts";
import type { Story } from "../../e2e/discord/discord-story.ts";
import { createDiscordStage } from "./stage.ts";

const stage = createDiscordStage();

let story: Story;

const begin = async (...options: Parameters<typeof stage.start>) => {
  story = await stage.start(...options);
  const { discord } = story;
  const [ada, ben] = [discord.person("Ada"), discord.person("Ben")];
  const general = discord.channel("general");
  return { discord, ada, ben, general, thread: discord.thread(general, ada) };
};
const system = (index: number): string =>
  (story.chats()[index] ?? [])
    .filter(({ role }) => role === "system")
    .map(({ content }) => content as string)
    .join("\n");

describe("reading the room", () => {
  it("people's thread is read again at each mention, also after a new session", async () => {
    // In real time: a reading that is not done in its eight seconds is made again with the next question, and
    // on a faster clock a busy machine does not do it in time.
    const { discord, ada, ben, thread } = await begin({}, {}, undefined, 1);
    const ask = async (text: string, answers: number): Promise<void> => {
      ada.sends({ channel: thread, text, mentionBot: true });
      await story.settled(thread, answers);
    };
    ada.sends({ channel: thread, text: "The build is red" });
    await ask("what now?", 1);
    expect(story.said(0).join("\n")).toContain("The build is red");
    ben.sends({ channel: thread, text: "I restart it" });
    await ask("better?", 2);
    expect(story.said(1).join("\n")).toContain("I restart it");

    // A new session begins. What was said meanwhile was not delivered.
    discord.gateway.expireSessions();
    discord.gateway.drop();
    ben.sends({ channel: thread, text: "said while you were away" });
    await expect.poll(() => discord.gateway.counts.identify, { timeout: 15_000 }).toBe(2);
    await ask("and now?", 3);
    expect(story.said(2).join("\n")).toContain("said while you were away");
  });

  it("pictures, files and the message that the thread was opened from are read too", async () => {
    const { discord, ada, ben, general } = await begin();
    const starter = ada.sends({ channel: general, text: "Who can look at this?" });
    const thread = discord.thread(general, ben, { from: starter });
    ben.sends({
      channel: thread,
      text: "the screen",
      files: [
        { name: "screen.jpg", bytes: await fixture("picture.jpg") },
        { name: "log.txt", bytes: Buffer.from("ERROR 42") },
        { name: "core.bin", bytes: Buffer.from([0, 1, 2, 3, 255, 254, 0, 0]) },
      ],
    });
    ben.sends({ channel: thread, text: "what is it?", mentionBot: true });
    const [answer] = await story.settled(thread);
    const [room] = story.said(0);
    expect(room).toContain("> Who can look at this?");
    expect(room).toContain("> [picture screen.jpg]");
    expect(room).toContain("> ERROR 42");
    expect(room).toContain("<image_url>");
    expect(answer?.text).toContain("core.bin");
  });

  it("without Read Message History the answer comes all the same, and says what is missing", async () => {
    const { ada, thread } = await begin();
    thread.deny("READ_MESSAGE_HISTORY");
    ada.sends({ channel: thread, text: "secret plans" });
    ada.sends({ channel: thread, text: "sum up", mentionBot: true });
    ada.sends({ channel: thread, text: "and again", mentionBot: true });
    const shown = await story.settled(thread, 1);
    const all = shown.map(({ text }) => text).join("\n");
    expect(all).toContain("could not be read: I lack Read Message History");
    expect(story.said(0)).not.toContain("secret plans");
  });

  // Attack: A member without Read Message History who has the bot tell it: a mention,
  // `/summarize`, `/export`, the conversation so far. What holds: the bot reads for a person what
  // that person may read.
  it("a member who may not read the history learns nothing of it, and is told so", async () => {
    const { ada, ben, general, thread } = await begin();
    general.denyTo(ben, "READ_MESSAGE_HISTORY");
    ada.sends({ channel: thread, text: "The vault code is 7319" });
    ada.sends({ channel: thread, text: "note that", mentionBot: true });
    await story.settled(thread, 1);
    expect(story.said(0).join("\n")).toContain("7319");

    const notice = "You may not read what was said here before";
    const seenByBen = (): string => JSON.stringify(story.chats().slice(1));
    ben.sends({ channel: thread, text: "I am Ben. What is the code?", mentionBot: true });
    await story.settled(thread, 2);
    expect(thread.fromBot().at(-1)?.text).toContain(notice);
    for (const command of ["summarize", "export"]) {
      const before = thread.fromBot().length;
      ben.usesCommand(command, {}, { channel: thread });
      await expect
        .poll(
          () =>
            thread
              .fromBot()
              .slice(before)
              .map(({ text }) => text),
          { timeout: 10_000 },
        )
        .toEqual([expect.stringContaining(notice)]);
    }
    expect(seenByBen()).not.toContain("code is 7319");

    ada.sends({ channel: thread, text: "and the code?", mentionBot: true });
    await expect.poll(() => story.chats().length, { timeout: 10_000 }).toBe(3);
    expect(story.said(2).join("\n")).toContain("7319");
  });

  it("without the Message Content Intent that is said once", async () => {
    const { ada, ben, thread } = await begin({}, { messageContentAllowed: false });
    ben.sends({ channel: thread, text: "hidden words" });
    ada.sends({ channel: thread, text: "one", mentionBot: true });
    await story.settled(thread, 1);
    ben.sends({ channel: thread, text: "more hidden words" });
    ada.sends({ channel: thread, text: "two", mentionBot: true });
    const shown = await story.settled(thread, 2);
    const said = shown.filter(({ text }) => text.includes("I lack the Message Content Intent"));
    expect(said).toHaveLength(1);
  });

  it("a message of the room that is deleted, or whose author forgets, is gone from the store", async () => {
    const { ada, ben, thread } = await begin();
    const slip = ben.sends({ channel: thread, text: "the password is hunter2" });
    ben.sends({ channel: thread, text: "blue elephants" });
    ada.sends({ channel: thread, text: "hello", mentionBot: true });
    await story.settled(thread);
    expect(await story.isKept("hunter2")).toBe(true);
    ben.deletes(slip);
    await expect.poll(() => story.isKept("hunter2"), { timeout: 10_000 }).toBe(false);
    ben.usesCommand("forget", { where: "everywhere", confirm: true }, { channel: thread });
    await expect.poll(() => story.isKept("blue elephants"), { timeout: 10_000 }).toBe(false);
  });
});

describe("knowing when not to speak", () => {
  it("a mention in people's thread is one answer: later messages are not for the bot, also after a restart", async () => {
    const { ada, ben, thread } = await begin();
    ada.sends({ channel: thread, text: "hello", mentionBot: true });
    const [answer] = await story.settled(thread);
    ben.sends({ channel: thread, text: "we talk with each other" });
    await story.restart(() => ben.sends({ channel: thread, text: "and on" }));
    ada.sends({ channel: thread, text: "go on", replyTo: { id: answer!.id } });
    await story.settled(thread, 2);
    expect(story.chats()).toHaveLength(2);
    expect(story.said(1).join("\n")).toContain("> we talk with each other");
    expect(story.said(1).join("\n")).toContain("> and on");
    expect(story.said(1).at(-1)).toBe("Ada: go on");
  });

  it("a post of a forum is its author's; the setting of its channel answers all of it", async () => {
    const { discord, ada } = await begin();
    const forum = discord.channelOfType("forum", "help");
    const post = discord.thread(forum, ada, { title: "Login" });
    ada.sends({ channel: post, text: "How do I log in?" });
    ada.sends({ channel: post, text: "anyone?", mentionBot: true });
    await story.settled(post);
    expect(story.said(0)).toEqual([expect.stringContaining("> How do I log in?"), "anyone?"]);
    expect(story.said(0)[0]).toMatch(/Title of the post:\n.*> Login\n/);
    ada.sends({ channel: post, text: "thanks" });
    const owner = discord.person("Owner");
    discord.give(owner, discord.role("managers", managerBits.MANAGE_GUILD));
    owner.usesCommand("settings", { name: "answer-to", value: "all", for: "channel" }, { channel: post });
    await story.settled(post, 2);
    ada.sends({ channel: post, text: "another thing" });
    await story.settled(post, 3);
    expect(story.chats()).toHaveLength(2);
    expect(story.said(1).at(-1)).toContain("another thing");
  });
});

describe("a thread of its own in which two people talk", () => {
  it("replies to each other are not answered, those to the bot and those that name it are", async () => {
    const { ada, ben, general } = await begin();
    const root = ada.sends({ channel: general, text: "what is a larch?", mentionBot: true });
    const own = () => general.threads().find(({ id }) => id === root.id);
    await expect.poll(own, { timeout: 10_000 }).toBeDefined();
    const thread = own()!;
    const [answer] = await story.settled(thread);
    const asked = ben.sends({ channel: thread, text: "is it green?", mentionBot: true });
    await story.settled(thread, 2);
    const idea = ada.sends({ channel: thread, text: "we plant one", replyTo: asked });
    ben.sends({ channel: thread, text: "where?", replyTo: idea });
    ben.sends({ channel: thread, text: "I mean in which garden", replyTo: idea });
    ben.sends({ channel: thread, text: "does it grow fast?", replyTo: answer!, pingsReplied: false });
    await story.settled(thread, 3);
    expect(story.chats()).toHaveLength(3);
    expect(story.said(2).at(-2)).toMatch(
      /Ada, [^\n]+:\n> we plant one\n\nBen, [^\n]+:\n> where\?\n\nBen, [^\n]+:\n> I mean in which garden/,
    );
    expect(story.said(2).at(-1)).toContain("does it grow fast?");
    ben.sends({ channel: thread, text: "is that right?", replyTo: idea, mentionBot: true });
    await story.settled(thread, 4);
    expect(story.chats()).toHaveLength(4);
    expect(story.said(3).at(-1)).toMatch(/Ada wrote:[^]*we plant one[^]*is that right\?$/);
  });
});

describe("/summarize", () => {
  it("sums up a channel for its caller alone, with what apps posted, and says how much was read", async () => {
    const { discord, ada, ben, general } = await begin();
    story.answers("They ship on Friday.");
    ben.sends({ channel: general, text: "we ship on Friday" });
    discord.otherBotSends({ channel: general, text: "deploy ok", name: "ci" });
    const use = ada.usesCommand("summarize", { what: "what concerns me", since: "2h" }, { channel: general });
    await expect.poll(() => use.state(), { timeout: 20_000 }).toBe("answered");
    await expect
      .poll(() => general.fromBot().at(-1)?.text, { timeout: 20_000 })
      .toMatch(/Friday[\s\S]*Read: /);
    const answer = general.fromBot().at(-1);
    expect(answer?.isEphemeral).toBe(true);
    expect(answer?.text).toMatch(/Read: 2 messages of 1 person and 1 app, from .* to .* UTC\./);
    expect(story.said(0)[0]).toMatch(
      /^\[Said in this thread\]\n\[1\] Ben, .*\n> we ship on Friday\n\n\[2\] ci \(an app\), /,
    );
    expect(system(0)).toContain("what concerns me");
    expect(system(0)).toContain("Ada");
  });

  it("a history that is too long is summed up in parts; what was left out is said", async () => {
    const { ada, ben, thread } = await begin({ CHAT_MAX_TOKENS: "100" }, {}, [
      { id: "story/chat", context_length: 2000 },
    ]);
    story.answers("In short: words.");
    for (let index = 0; index < 60; index += 1)
      ben.sends({ channel: thread, text: `${index}: ${"words ".repeat(300)}` });
    ada.usesCommand("summarize", { private: false }, { channel: thread });
    const [answer] = await story.settled(thread);
    // The conversation itself may be summed up after it, in a request of its own.
    const first = story.chats().map((_, index) => story.said(index)[0]);
    expect(first[8]).toContain("[Notes on part 8 of 8]");
    expect(first.filter((text) => text?.includes("[Notes on part "))).toHaveLength(1);
    expect(answer?.text).toMatch(/\d+ older messages were left out/);
  });

  it("in direct messages it sums up the conversation; where the bot may not read, and for a wrong since, it says so", async () => {
    const { discord, ada, general } = await begin();
    const direct = discord.directMessages(ada);
    ada.sends({ channel: direct, text: "my cat is called Tom" });
    await story.settled(direct);
    ada.usesCommand("summarize", {}, { channel: direct });
    await story.settled(direct, 2);
    expect(story.said(1)[0]).toMatch(/\[1\] Ada, .*\n> my cat is called Tom\n\n\[2\] Parley, /);
    ada.sends({ channel: general, text: "hello" });
    general.deny("READ_MESSAGE_HISTORY");
    ada.usesCommand("summarize", {}, { channel: general });
    await expect.poll(() => general.fromBot().at(-1)?.text).toContain("it lacks Read Message History");
    ada.usesCommand("summarize", { since: "tomorrow" }, { channel: general });
    await expect.poll(() => general.fromBot().at(-1)?.text).toContain("`2h`, `3d`");
    expect(story.chats()).toHaveLength(2);
  });
});
