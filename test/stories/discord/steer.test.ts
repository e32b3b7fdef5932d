import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { SeenMessage } from "../../simulators/discord/transcript.ts";
import type { Person } from "../../simulators/discord/people.ts";
import { until } from "../../simulators/discord/until.ts";
import { startStory, type Story } from "../../e2e/discord/discord-story.ts";

const labels = ({ buttons }: SeenMessage | undefined = { buttons: [] } as never) =>
  buttons.map(({ label }) => label);

describe("steering an answer on Discord", () => {
  let story: Story;
  let ada: Person;
  let bo: Person;
  beforeEach(async () => {
    story = await startStory();
    ada = story.discord.person("Ada");
    bo = story.discord.person("Bo");
  });
  afterEach(() => story.close());

  /** An answer that has begun and does not end, in a thread that Ada's mention has opened. */
  async function growing() {
    const { discord } = story;
    const general = discord.channel("general");
    story.setStalled(true);
    ada.sends({ channel: general, text: "Tell me everything.", mentionBot: true });
    const thread = await until(() => general.threads()[0]);
    const message = await until(() => thread.fromBot().find(({ text }) => text.includes("Half")));
    return { thread, message };
  }

  async function answered(question: string) {
    const { discord } = story;
    const general = discord.channel("general");
    ada.sends({ channel: general, text: question, mentionBot: true });
    const thread = await until(() => general.threads()[0]);
    const [message] = await story.settled(thread);
    return { thread, message: message! };
  }

  it("Stop ends it: the request too, the words stay, and it says who stopped it", async () => {
    const { thread, message } = await growing();
    expect(labels(message)).toEqual(["Stop"]);
    const use = ada.clicks("Stop", message, { channel: thread });
    const [shown] = await story.settled(thread);
    expect(use.state()).toBe("answered");
    expect(shown?.id).toBe(message.id);
    expect(shown?.text).toBe("Half\n-# Stopped by Ada.");
    expect(labels(shown)).toEqual(["Regenerate", "Other model", "Details"]);
    expect(thread.fromBot()).toHaveLength(1);
    expect(await story.gateway.requests.at(-1)?.leftEarly).toBe(true);
    story.setStalled(false);
    ada.sends({ channel: thread, text: "Go on." });
    await story.settled(thread, 2);
    expect(story.said(1)).toEqual(["Tell me everything.", "Half", "Go on."]);
  });

  it("Stop by a bystander is refused to them alone; a moderator may", async () => {
    const { thread, message } = await growing();
    const { discord } = story;
    bo.clicks("Stop", message, { channel: thread });
    const told = await until(() => thread.fromBot().find(({ isEphemeral }) => isEphemeral));
    expect(told.text).toBe("Only the person who asked, or a moderator, can stop this.");
    expect(labels(thread.fromBot()[0])).toEqual(["Stop"]);
    const cleo = discord.person("Cleo");
    discord.give(cleo, discord.role("Mods", 1n << 5n));
    cleo.clicks("Stop", message, { channel: thread });
    await until(() => thread.fromBot()[0]?.text.includes("Stopped by Cleo."));
  });

  it("Stop is on a command's answer too, and pressed twice it stops once", async () => {
    const { discord } = story;
    const general = discord.channel("general");
    story.setStalled(true);
    ada.usesCommand("ask", { prompt: "Why?" }, { channel: general });
    const message = await until(() => general.fromBot().find(({ text }) => text.includes("Half")));
    expect(labels(message)).toEqual(["Stop"]);
    ada.clicks("Stop", message, { channel: general });
    ada.clicks("Stop", message, { channel: general });
    await until(() => general.fromBot()[0]?.text.includes("Stopped by Ada."));
    const shown = await story.settled(general);
    expect(shown.map(({ text }) => text.match(/Stopped/g)?.length)).toEqual([1]);
  });

  it("a short answer that comes at once never has a Stop button", async () => {
    const { message } = await answered("Why?");
    expect(labels(message)).toEqual(["Regenerate", "Other model", "Details"]);
  });

  it("Regenerate answers anew in the same messages: surplus ones go, and the history has the last answer", async () => {
    story.answers("A long line of words. ".repeat(200), "A short one.");
    const { thread } = await answered("Why?");
    const before = await story.settled(thread, 3);
    expect(before).toHaveLength(3);
    ada.clicks("Regenerate", before.at(-1)!, { channel: thread });
    await until(() => thread.fromBot()[0]?.text.startsWith("A short one."));
    const after = await story.settled(thread);
    expect(after).toMatchObject([{ id: before[0]!.id, text: "A short one." }]);
    expect(labels(after[0])).toEqual(["Regenerate", "Other model", "Details"]);
    expect(story.said(1)).toEqual(story.said(0));
    // To remove the surplus is not to delete the answer.
    story.answers("Third. ".repeat(600));
    ada.clicks("Regenerate", after[0]!, { channel: thread });
    const longer = await story.settled(thread, 3);
    expect(
      longer
        .map(({ text }) => text)
        .join(" ")
        .match(/Third\./g),
    ).toHaveLength(600);
    await until(async () => !(await story.isKept("A short one.")));
    ada.sends({ channel: thread, text: "And?" });
    await story.settled(thread, 4);
    expect(story.said(3).slice(0, 2)).toEqual(["Why?", "Third. ".repeat(600)]);
  });

  it("Regenerate works after a restart, and is refused to bystanders and on older answers", async () => {
    story.answers("One.", "Two.", "Three.");
    const { thread, message } = await answered("Why?");
    ada.sends({ channel: thread, text: "And then?" });
    const [, second] = await story.settled(thread, 2);
    await story.restart();
    ada.clicks("Regenerate", message, { channel: thread });
    const told = await until(() => thread.fromBot()[2]);
    expect(told.text).toContain("Only the last answer of a conversation can be changed.");
    bo.clicks("Regenerate", second!, { channel: thread });
    const refused = await until(() => thread.fromBot()[3]);
    expect(refused).toMatchObject({ isEphemeral: true });
    expect(refused.text).toContain("Only the person who asked, or a moderator");
    ada.clicks("Regenerate", second!, { channel: thread });
    await until(() => thread.fromBot()[1]?.text === "Three.");
  });

  it("Continue joins the rest to the same answer, as often as it is cut, over several messages", async () => {
    const code = `Here it is:\n\n\`\`\`js\n${"const value = compute();\n".repeat(90)}`;
    story.answers(code, "last();\n```\n\nThat is", " all.");
    story.setCut(true);
    const { thread } = await answered("Write it.");
    const before = await story.settled(thread, 2);
    expect(labels(before.at(-1))).toEqual(["Regenerate", "Other model", "Continue", "Details"]);
    bo.clicks("Continue", before.at(-1)!, { channel: thread });
    await until(() => thread.fromBot().find(({ isEphemeral }) => isEphemeral));
    ada.clicks("Continue", before.at(-1)!, { channel: thread });
    await until(() => thread.fromBot().some(({ text }) => text.includes("That is")));
    const shown = (await story.settled(thread, 3)).filter(({ isEphemeral }) => !isEphemeral);
    expect(shown.map(({ id }) => id)).toEqual(before.map(({ id }) => id));
    story.setCut(false);
    await story.restart();
    ada.clicks("Continue", shown.at(-1)!, { channel: thread });
    await until(() => thread.fromBot().some(({ text }) => text.includes("That is all.")));
    await story.settled(thread, 3);
    const last = thread.fromBot().findLast(({ isEphemeral }) => !isEphemeral);
    expect(labels(last)).toEqual(["Regenerate", "Other model", "Details"]);
    ada.sends({ channel: thread, text: "Thanks" });
    await story.settled(thread, 4);
    expect(story.said(3).slice(0, 2)).toEqual(["Write it.", `${code}last();\n\`\`\`\n\nThat is all.`]);
  });
});
