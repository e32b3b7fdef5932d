import { afterEach, describe, expect, it } from "vitest";
import { startCrashStory, type CrashStory } from "./crash-story.ts";
import {
  createDiscordSurface,
  createPageSurface,
  createSlackSurface,
  type SeenAnswer,
  type Surface,
} from "./crash-platforms.ts";

let story: CrashStory | undefined;
afterEach(async () => {
  await story?.close();
  story = undefined;
});

const surfaces: Readonly<Record<string, () => Surface | Promise<Surface>>> = {
  Discord: () => createDiscordSurface("thread"),
  Slack: () => createSlackSurface(),
  "the page": () => createPageSurface(),
};

const has = (all: readonly SeenAnswer[], text: string): boolean => all.some((one) => one.text.includes(text));

/** The first process has answered "one", and dies when people steer it. */
async function answered(surface: Surface, dieAt: string, isCut = false) {
  story = await startCrashStory(surface);
  story.setAnswer("Answer to ", isCut);
  const doomed = await story.start(dieAt);
  await story.surface.say("one");
  const label = isCut ? "Continue" : "Regenerate";
  const [before] = await story.until((all) => all.some(({ buttons }) => buttons.includes(label)));
  return { running: story, doomed, before: before! };
}

/** What a model is sent of the conversation after it. */
async function history(running: CrashStory): Promise<string[] | undefined> {
  running.setAnswer("Answer to ");
  await running.surface.say("last");
  await running.until((all) => has(all, "Answer to last"));
  return running.asked().at(-1);
}

for (const [name, createSurface] of Object.entries(surfaces)) {
  describe(`a process killed over Regenerate on ${name}`, () => {
    for (const [step, dieAt] of Object.entries({
      "once it is stored that there is to be another answer": "redo after 1",
      "before the other answer is stored": "replace before 1",
      "after the other answer is stored": "replace after 1",
      "before the turn is closed": "close before 2",
    })) {
      it(`${step}: shows the other answer in the same message, once`, async () => {
        const { running, doomed, before } = await answered(await createSurface(), dieAt);
        running.setAnswer("Another answer to ");
        await running.surface.press("Regenerate");
        expect(await doomed.ended).toBe(null);
        await running.start();
        const seen = await running.until((all) => {
          const [first] = all;
          return first?.text === "Another answer to one" && first.buttons.includes("Regenerate");
        });
        expect(seen.map(({ id }) => id)).toEqual([before.id]);
        expect(await history(running)).toEqual([
          "user: one",
          "assistant: Another answer to one",
          "user: last",
        ]);
      });
    }

    it("before anything is stored: the answer stays, and the button works", async () => {
      const { running, doomed, before } = await answered(await createSurface(), "redo before 1");
      await running.surface.press("Regenerate");
      expect(await doomed.ended).toBe(null);
      await running.start();
      expect(await running.surface.seen()).toMatchObject([{ id: before.id, text: "Answer to one" }]);
      running.setAnswer("Another answer to ");
      await running.surface.press("Regenerate");
      const seen = await running.until((all) => has(all, "Another answer to one"));
      expect(seen).toHaveLength(1);
    });
  });

  describe(`a process killed over Continue on ${name}`, () => {
    for (const [step, dieAt] of Object.entries({
      "once it is stored that it goes on": "redo after 1",
      "before the whole answer is stored": "replace before 1",
      "after the whole answer is stored": "replace after 1",
    })) {
      it(`${step}: shows the whole answer in the same message, once`, async () => {
        const { running, doomed, before } = await answered(await createSurface(), dieAt, true);
        await running.surface.press("Continue");
        expect(await doomed.ended).toBe(null);
        await running.start();
        const seen = await running.until((all) =>
          all.some(({ text, buttons }) => text === "Answer to one and the rest" && buttons.length > 0),
        );
        expect(seen.map(({ id }) => id)).toEqual([before.id]);
        expect(seen[0]?.buttons).not.toContain("Continue");
        expect(await history(running)).toEqual([
          "user: one",
          "assistant: Answer to one and the rest",
          "user: last",
        ]);
      });
    }
  });

  describe(`a process killed over Stop on ${name}`, () => {
    for (const [step, dieAt] of Object.entries({
      "once it is stored": "stop after 1",
      "before the words so far are stored": "assistant before 1",
      "after the words so far are stored": "assistant after 1",
      "before the turn is closed": "close before 1",
    })) {
      it(`${step}: the words that people saw stay, say that they were stopped, and are in the history`, async () => {
        const running = (story = await startCrashStory(await createSurface()));
        const doomed = await running.start(dieAt);
        running.setHanging(true);
        await running.surface.say("one");
        await running.until((all) => /^Answer to\b/.test(all[0]?.text ?? ""));
        await running.surface.press("Stop");
        expect(await doomed.ended).toBe(null);
        running.setHanging(false);
        await running.start();
        const seen = await running.until((all) => all.some(({ text }) => text.includes("Stopped")));
        expect(seen).toHaveLength(1);
        expect(seen[0]?.text).toMatch(/^Answer to\b/);
        expect(seen[0]?.buttons).not.toContain("Stop");
        await running.surface.say("two");
        await running.until((all) => has(all, "Answer to two"));
        expect(running.asked()).toHaveLength(2);
        expect(running.asked()[1]).toEqual(["user: one", "assistant: Answer to ", "user: two"]);
        await expect.poll(() => running.surface.seen()).toHaveLength(2);
      });
    }
  });
}
