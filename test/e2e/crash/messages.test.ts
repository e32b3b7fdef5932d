import { describe, expect, it } from "vitest";
import { createDiscordSurface, createPageSurface, createSlackSurface } from "./crash-platforms.ts";
import type { CrashStory } from "./crash-story.ts";
import { crashTable, inStory, type Surfaces } from "./crash-table.ts";

const surfaces: Surfaces = {
  "Discord, direct message": () => createDiscordSurface("direct"),
  "Discord, thread": () => createDiscordSurface("thread"),
  Slack: () => createSlackSurface(),
  "Slack over HTTP": () => createSlackSurface("direct", "http"),
  "the page": () => createPageSurface(),
};

async function answered(story: CrashStory, text: string) {
  return await story.until((all) => all.some((one) => one.text === text));
}

/** Expects one complete answer to each message, in its reply, and a history without gaps and duplicates. */
async function expectAnsweredOnce(story: CrashStory, second: string, ids: readonly string[]): Promise<void> {
  const seen = await answered(story, `Answer to ${second}`);
  expect(seen.map(({ text }) => text)).toEqual(["Answer to one", `Answer to ${second}`]);
  expect(seen.map(({ id }) => id)).toEqual([...ids, ...seen.slice(ids.length).map(({ id }) => id)]);
  await story.surface.say("three");
  const all = await answered(story, "Answer to three");
  expect(all.map(({ text }) => text)).toEqual(["Answer to one", `Answer to ${second}`, "Answer to three"]);
  expect(story.asked().at(-1)).toEqual([
    "user: one",
    "assistant: Answer to one",
    `user: ${second}`,
    `assistant: Answer to ${second}`,
    "user: three",
  ]);
}

await crashTable({
  over: "over a message",
  surfaces,
  async begin(story, life) {
    await story.surface.say("one");
    const seen = await answered(story, "Answer to one");
    await life.done("close 1");
    if (story.surface.lastStep !== undefined) await life.done(story.surface.lastStep);
    return seen;
  },
  act: (story) => story.surface.say("two"),
  last: "close 2",
  comesOfIt: "it answers once",
  async afterwards(story, before) {
    await expectAnsweredOnce(
      story,
      "two",
      before.map(({ id }) => id),
    );
  },
});

await crashTable({
  over: "over the edit of an answered message",
  surfaces: {
    "Discord, direct message": surfaces["Discord, direct message"]!,
    "Discord, thread": surfaces["Discord, thread"]!,
    Slack: surfaces["Slack"]!,
    "the page": surfaces["the page"]!,
  },
  only: ["edit", "begin", "address", "end", "close", "POST /v1/chat/completions"],
  async begin(story, life) {
    await story.surface.say("one");
    await answered(story, "Answer to one");
    await story.surface.say("two");
    const seen = await answered(story, "Answer to two");
    // An earlier edit would belong to the turn that still runs, which closes once.
    await life.done("close 2");
    return seen;
  },
  act: (story) => story.surface.edit("2"),
  last: "close 3",
  comesOfIt: "it answers anew, once, in the same reply",
  async afterwards(story, before) {
    await expectAnsweredOnce(
      story,
      "2",
      before.map(({ id }) => id),
    );
  },
});

describe.each(Object.entries(surfaces))("a bot that dies during an answer, on %s", (name, createSurface) => {
  const half = (story: CrashStory) =>
    story.until((all) => all.length === 2 && /^Answer to\b/.test(all[1]?.text ?? ""));

  it.concurrent("finishes it in the same message", () =>
    inStory(createSurface, async (story) => {
      const doomed = await story.start();
      await story.surface.say("one");
      await answered(story, "Answer to one");
      story.setHanging(true);
      await story.surface.say("two");
      const seen = await half(story);
      doomed.kill();
      story.setHanging(false);
      await story.start();
      await expectAnsweredOnce(
        story,
        "two",
        seen.map(({ id }) => id),
      );
    }));

  it.concurrent("once its question was edited: answers that in the same message", () =>
    inStory(createSurface, async (story) => {
      const doomed = await story.start("edit after 1");
      await story.surface.say("one");
      await answered(story, "Answer to one");
      story.setHanging(true);
      await story.surface.say("two");
      const seen = await half(story);
      const editing = story.surface.edit("2");
      await doomed.died;
      await editing;
      story.setHanging(false);
      await story.start();
      await story.surface.redeliver();
      await expectAnsweredOnce(
        story,
        "2",
        seen.map(({ id }) => id),
      );
    }));

  it.concurrent("four times over the same message: ends its reply with a Retry", () =>
    inStory(createSurface, async (story) => {
      story.setHanging(true);
      let id: string | undefined;
      for (let life = 0; life < 4; life++) {
        const doomed = await story.start();
        if (life === 0) await story.surface.say("one");
        const [seen] = await story.until(
          (all) => story.asked().length >= life + 1 && (all[0]?.text ?? "").startsWith("Answer to"),
        );
        id ??= seen?.id;
        doomed.kill();
      }
      await story.start();
      const sealed = await story.until((all) => all.some(({ buttons }) => buttons.includes("Retry")));
      expect(sealed, name).toMatchObject([{ id, buttons: [expect.stringMatching(/retry|try again/i)] }]);
      expect(story.asked()).toHaveLength(4);
    }));
});

/** People sent three messages there before the first mention. */
await crashTable({
  over: "over a mention in people's thread",
  surfaces: {
    Discord: () => createDiscordSurface("room"),
    Slack: () => createSlackSurface("room"),
  },
  only: ["accept", "saveSettings", "begin", "asked", "address", "end"],
  begin: () => Promise.resolve([]),
  act: (story) => story.surface.say("one"),
  last: "close 1",
  comesOfIt: "it answers once, with each message once, and does not take the thread",
  async afterwards(story) {
    await story.until((all) => all.some(({ text }) => /^Answer to \w+: one/.test(text)));
    await story.surface.say("two");
    const seen = await story.until((all) => all.some(({ text }) => /^Answer to \w+: two/.test(text)));
    expect(seen).toHaveLength(2);
    const prompt = story.asked().at(-1) ?? [];
    expect(prompt.slice(1)).toEqual([
      expect.stringMatching(/^user: \w+: one$/),
      expect.stringMatching(/^assistant: Answer to \w+: one$/),
      expect.stringMatching(/^user: \w+: two$/),
    ]);
    for (const words of ["alpha", "beta", "gamma"])
      expect(prompt[0]?.match(new RegExp(`> ${words}`, "g"))).toHaveLength(1);
  },
});
