import { afterEach, describe, expect, it } from "vitest";
import {
  createDiscordSurface,
  createPageSurface,
  createSlackSurface,
  type Surface,
} from "./crash-platforms.ts";
import { startCrashStory, type CrashStory } from "./crash-story.ts";

let story: CrashStory | undefined;
afterEach(async () => {
  await story?.close();
  story = undefined;
});

const surfaces: Readonly<Record<string, () => Surface | Promise<Surface>>> = {
  "Discord, direct message": () => createDiscordSurface("direct"),
  "Discord, thread": () => createDiscordSurface("thread"),
  Slack: () => createSlackSurface(),
  "the page": () => createPageSurface(),
};

/** When the process is killed: always over the edit of the second message, which is answered. */
const steps: Readonly<Record<string, string>> = {
  "before the edit is taken in": "edit before 1",
  "after the edit is taken in": "edit after 1",
  "before the question is replaced": "new-question before 1",
  "after the question is replaced": "new-question after 1",
  "before the answer is replaced": "replace before 1",
  "after the answer is replaced": "replace after 1",
  "after the reply is finished, before the message is closed": "close before 3",
  "after the message is closed": "close after 3",
};

for (const [name, createSurface] of Object.entries(surfaces)) {
  describe(`an edited question and a process killed on ${name}`, () => {
    async function expectAnsweredAnew(running: CrashStory, before: readonly { id: string }[]): Promise<void> {
      const seen = await running.until((all) => all.some(({ text }) => text === "Answer to 2"));
      expect(seen.map(({ text }) => text)).toEqual(["Answer to one", "Answer to 2"]);
      expect(seen.map(({ id }) => id)).toEqual(before.map(({ id }) => id));
      await running.surface.say("three");
      const all = await running.until((now) => now.some(({ text }) => text === "Answer to three"));
      expect(all.map(({ text }) => text)).toEqual(["Answer to one", "Answer to 2", "Answer to three"]);
      expect(running.asked().at(-1)).toEqual([
        "user: one",
        "assistant: Answer to one",
        "user: 2",
        "assistant: Answer to 2",
        "user: three",
      ]);
    }

    for (const [step, dieAt] of Object.entries(steps)) {
      it(`${step}: is answered anew, once, in the same reply`, async () => {
        story = await startCrashStory(await createSurface());
        const doomed = await story.start(dieAt);
        await story.surface.say("one");
        await story.until((all) => all.some(({ text }) => text === "Answer to one"));
        await story.surface.say("two");
        const before = await story.until((all) => all.some(({ text }) => text === "Answer to two"));
        // Until then the edit would belong to the turn that still runs, which closes once.
        await doomed.says(/store: close 2/);
        const editing = story.surface.edit("2");
        expect(await doomed.ended).toBe(null);
        await editing;
        await story.start();
        // The page shows that it was not taken in; Slack delivers it again; on Discord the bot reads its last question again.
        if (step === "before the edit is taken in" && name === "the page") await story.surface.edit("2");
        story.surface.passTime();
        await expectAnsweredAnew(story, before);
      });
    }

    it("while the earlier form is answered: is answered in the same message", async () => {
      story = await startCrashStory(await createSurface());
      const doomed = await story.start("edit after 1");
      await story.surface.say("one");
      await story.until((all) => all.some(({ text }) => text === "Answer to one"));
      story.setHanging(true);
      await story.surface.say("two");
      const half = await story.until((all) => all.length === 2 && /^Answer to\b/.test(all[1]?.text ?? ""));
      const editing = story.surface.edit("2");
      await doomed.ended;
      await editing;
      story.setHanging(false);
      await story.start();
      story.surface.passTime();
      await expectAnsweredAnew(story, half);
    });
  });
}
