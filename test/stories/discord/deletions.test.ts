import { beforeEach, describe, expect, it, vi } from "vitest";
import type { ChannelHandle } from "../../simulators/discord/simulator.ts";
import type { Person } from "../../simulators/discord/people.ts";
import { until } from "../../simulators/discord/until.ts";
import type { Story } from "../../e2e/discord/discord-story.ts";
import { createDiscordStage } from "./stage.ts";

const stage = createDiscordStage();

let story: Story;
let ada: Person;
beforeEach(async () => {
  story = await stage.begin();
  ada = story.discord.person("Ada");
});

const gone = (text: string) =>
  vi.waitFor(async () => expect(await story.isKept(text), text).toBe(false), { timeout: 5000, interval: 20 });

/** Ada mentions the bot in a channel; the answer is in a thread. */
async function talk(channel: ChannelHandle, text: string) {
  const message = ada.sends({ channel, text, mentionBot: true });
  const thread = await until(() => channel.threads().find(({ id }) => id === message.id));
  await story.settled(thread);
  return { message, thread };
}

describe("/forget on Discord", () => {
  it("asks for confirmation, for its caller alone, and reports in the same message", async () => {
    const channel = story.discord.channel("general");
    const bo = story.discord.person("Bo");
    const { thread } = await talk(channel, "Ada's secret");
    bo.sends({ channel: thread, text: "Bo's words", mentionBot: true });
    await story.settled(thread, 2);
    ada.usesCommand("forget", {}, { channel: thread });
    const asked = await until(() =>
      thread.fromBot().find(({ buttons }) => buttons.some(({ label }) => label.startsWith("Remove"))),
    );
    expect(asked).toMatchObject({ isEphemeral: true, buttons: [{ label: "Remove 1 message" }] });
    expect(asked.text).toContain("1 message in this conversation");
    expect(await story.isKept("Ada's secret")).toBe(true);

    ada.clicks("Remove 1 message", asked, { channel: thread });
    const done = await until(() => thread.fromBot().find(({ text }) => text.startsWith("Removed")));
    expect(done).toMatchObject({ id: asked.id, isEphemeral: true, buttons: [] });
    expect(done.text).toBe("Removed in this conversation: 1 message.");
    story.answers("All of it.");
    ada.sends({ channel: thread, text: "what is left?", mentionBot: true });
    await until(() => story.chats().length === 3);
    expect(story.said(2).join("\n")).toContain("Bo's words");
    expect(story.said(2).join("\n")).not.toMatch(/^Ada: Ada's secret/m);
  });

  it("written in a thread asks for the slash command, whose answer its caller alone sees", async () => {
    const channel = story.discord.channel("general");
    story.answers("Noted.");
    const { thread } = await talk(channel, "Ada's secret");
    ada.sends({ channel: thread, text: "/forget", mentionBot: true });
    const told = await until(() =>
      thread.fromBot().find(({ text }) => text.includes("use it as a slash command")),
    );
    expect(told.buttons).toEqual([]);
    expect(await story.isKept("Ada's secret")).toBe(true);
  });
});

// These stories come last, because the bot is no member of the server afterwards.
describe("deletions on Discord", () => {
  it("in bulk by a moderator remove messages, the thread's first one and answers included", async () => {
    const channel = story.discord.channel("general");
    story.answers("An answer with a word like pomegranate.", "Yes.");
    const { message, thread } = await talk(channel, "the first secret");
    const second = ada.sends({ channel: thread, text: "the second secret" });
    await story.settled(thread, 2);
    const [answer] = thread.fromBot();
    expect(await story.isKept("pomegranate")).toBe(true);

    thread.purge(second.id, answer?.id ?? "");
    await gone("the second secret");
    await gone("pomegranate");
    channel.purge(message.id);
    await gone("the first secret");
    ada.sends({ channel: thread, text: "and now?" });
    await story.settled(thread, 2);
    expect(story.said(2)).toEqual(["and now?"]);
  });

  it("of a thread, channel or server remove its conversations, but an outage does not", async () => {
    const [one, two] = [story.discord.channel("one"), story.discord.channel("two")];
    const first = await talk(one, "in the first thread");
    await talk(one, "in the second thread");
    await talk(two, "in the other channel");
    const direct = story.discord.directMessages(ada);
    ada.sends({ channel: direct, text: "between us" });
    await story.settled(direct);

    first.thread.remove();
    await gone("in the first thread");
    expect(await story.isKept("in the second thread")).toBe(true);
    one.remove();
    await gone("in the second thread");
    story.discord.removeGuild({ isOutage: true });
    // Events arrive in order. A later message was received, so the deletion was received too.
    ada.sends({ channel: direct, text: "still there?" });
    await story.settled(direct, 2);
    expect(await story.isKept("in the other channel")).toBe(true);
    story.discord.removeGuild();
    await gone("in the other channel");
    expect(await story.isKept("between us")).toBe(true);
  });
});
