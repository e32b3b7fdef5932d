import { describe, expect, it } from "vitest";
import type { Person } from "../../simulators/discord/people.ts";
import type { ChannelHandle } from "../../simulators/discord/simulator.ts";
import { until } from "../../simulators/discord/until.ts";
import type { Story } from "../../e2e/discord/discord-story.ts";
import { createDiscordStage } from "./stage.ts";

const stage = createDiscordStage();

let story: Story;
let ada: Person;
let general: ChannelHandle;

/** Ada mentions the bot in a channel. Resolves to the thread with the answer. */
async function mention(person: Person, channel: ChannelHandle, text: string): Promise<ChannelHandle> {
  const { id } = person.sends({ channel, text, mentionBot: true });
  const thread = await until(() => channel.threads().find((one) => one.id === id), {
    explain: () => story.lines,
  });
  await story.settled(thread);
  return thread;
}

const refusals = (count: number) =>
  until(() => story.lines.filter(({ message }) => message.endsWith("refused")).length >= count, {
    explain: () => story.lines,
  });

describe("with DENY for a role", () => {
  it("its people are refused in messages, commands and clicks, also for what they wrote while the bot was offline", async () => {
    let role = "";
    story = await stage.start((discord) => {
      role = discord.role("contractors");
      return { DENY: `discord:role:${role}` };
    });
    const { discord } = story;
    ada = discord.person("Ada");
    general = discord.channel("general");
    const bo = discord.person("Bo");
    discord.give(bo, role);
    const thread = await mention(ada, general, "hello");

    bo.sends({ channel: thread, text: "me too", mentionBot: true });
    await refusals(1);
    const direct = discord.directMessages(bo);
    await until(() => direct.fromBot().length === 1);
    bo.usesCommand("ask", { prompt: "why?" }, { channel: general });
    const told = await until(() => general.fromBot().find(({ isEphemeral }) => isEphemeral));
    expect(told.text).toContain("access rules exclude you");

    story.setGatewayUp(false);
    ada.sends({ channel: thread, text: "again" });
    const failed = await until(
      () => thread.fromBot().find(({ buttons }) => buttons.some(({ label }) => label === "Retry")),
      {
        timeoutMs: 20_000,
      },
    );
    story.setGatewayUp(true);
    const chats = story.chats().length;
    bo.clicks("Retry", failed, { channel: thread });
    await until(() => thread.fromBot().find(({ isEphemeral }) => isEphemeral));
    expect(story.chats()).toHaveLength(chats);
    const [answered] = thread.fromBot();
    bo.clicks("Details", answered!, { channel: thread });
    const [, refused] = await until(() => {
      const alone = thread.fromBot().filter(({ isEphemeral }) => isEphemeral);
      return alone.length === 2 && alone;
    });
    expect(refused?.text).toContain("access rules exclude you");
    const cy = discord.person("Cy");
    cy.clicks("Retry", failed, { channel: thread });
    await until(() => story.chats().length > chats);
    await story.settled(thread, 3);

    const before = story.chats().length;
    const dee = discord.person("Dee");
    discord.give(dee, role);
    await story.restart(() => {
      dee.sends({ channel: thread, text: "nobody was there", mentionBot: true });
      bo.sends({ channel: thread, text: "while you were away", mentionBot: true });
      ada.sends({ channel: thread, text: "from me too", mentionBot: true });
    });
    await until(() => story.chats().length === before + 1, { explain: () => story.lines });
    expect(story.said(before).at(-1)).toContain("from me too");
    expect(JSON.stringify(story.chats())).not.toContain("while you were away");
    await story.settled(thread, 4);
    expect(direct.fromBot()).toHaveLength(1);
    // Dee may have been told before the restart, so she is not told again.
    expect(discord.directMessages(dee).fromBot()).toEqual([]);
  });
});

describe("without ALLOW", () => {
  it("strangers are refused in direct messages; members are answered", async () => {
    story = await stage.begin();
    const { discord } = story;
    const eve = discord.person("Eve", { isMember: false });
    const direct = discord.directMessages(eve);
    eve.sends({ channel: direct, text: "hello" });
    eve.sends({ channel: direct, text: "hello?" });
    await refusals(2);
    await until(() => direct.fromBot().length === 1);
    expect(direct.fromBot()[0]?.text).toContain("places that it is a member of");
    expect(story.chats()).toEqual([]);

    ada = discord.person("Ada");
    const own = discord.directMessages(ada);
    ada.sends({ channel: own, text: "hello" });
    expect((await story.settled(own))[0]?.text).toContain("I heard: hello");
    expect(direct.fromBot()).toHaveLength(1);
  });

  it("a stranger who is listed is answered", async () => {
    let eve: Person | undefined;
    story = await stage.start((discord) => {
      eve = discord.person("Eve", { isMember: false });
      return { ALLOW: `discord:user:${eve.id}` };
    });
    const direct = story.discord.directMessages(eve!);
    eve?.sends({ channel: direct, text: "hello" });
    await story.settled(direct);
    expect(story.chats()).toHaveLength(1);
  });
});
