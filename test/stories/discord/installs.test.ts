import { afterEach, expect, it } from "vitest";
import type { Person } from "../../simulators/discord/people.ts";
import { until } from "../../simulators/discord/until.ts";
import { startStory, type Story } from "../../e2e/discord/discord-story.ts";

let story: Story;
afterEach(() => story.close());

it("a person who installed the app has all commands of a conversation in its direct messages", async () => {
  story = await startStory();
  const { discord } = story;
  const ada = discord.person("Ada");
  const direct = discord.directMessages(ada);
  const use = async (name: string, options = {}) => {
    const called = ada.usesCommand(name, options, { channel: direct, isUserInstallOnly: true });
    await until(() => called.state() === "answered", { explain: () => direct.transcript() });
    const shown = await story.settled(direct);
    return shown.filter(({ interactionId }) => interactionId === called.id);
  };
  ada.sends({ channel: direct, text: "My parrot is called Juniper." });
  await story.settled(direct, 1);
  const [exported, files] = await use("export");
  expect(exported?.text).toContain("Everything that is kept");
  expect(files?.files.length).toBeGreaterThan(0);
  expect((await use("reset"))[0]?.text).not.toContain("it works inside");
  expect((await use("chat", { message: "Hello" }))[0]?.text).toContain("The conversation is open");
  await until(() => direct.fromBot().some(({ text }) => text === "I heard: Hello"));
  expect(story.said(1)).toEqual(["Hello"]);
  expect((await use("forget", { where: "here" }))[0]?.buttons).toHaveLength(1);
});

it("in a group chat it answers the command there, and nothing outside of it", async () => {
  let ada: Person | undefined;
  story = await startStory((discord) => {
    ada = discord.person("Ada");
    return { ALLOW: `discord:user:${ada.id}` };
  });
  const { discord } = story;
  const group = discord.groupChat("Friends");
  ada?.usesCommand("ask", { prompt: "Why?" }, { channel: group });
  const shown = await story.settled(group);
  expect(shown).toMatchObject([{ text: expect.stringContaining("I heard: Why?") }]);
  const asked = discord.requests.filter(({ path }) => path.includes(group.id));
  expect(asked).toEqual([]);
  const called = ada!.usesCommand("chat", { message: "Hello" }, { channel: group });
  await until(() => called.state() === "answered");
  const told = (await story.settled(group, 2)).at(-1);
  expect(told?.text).toContain("which bots cannot have in group chats");
});
