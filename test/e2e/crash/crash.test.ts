import { afterEach, describe, expect, it } from "vitest";
import { startCrashStory, type CrashStory } from "./crash-story.ts";
import {
  createDiscordSurface,
  createPageSurface,
  createSlackSurface,
  type Surface,
} from "./crash-platforms.ts";

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

/** When the process is killed: always over the second message of the conversation. */
const steps: Readonly<Record<string, string>> = {
  "before the message is accepted": "accept before 2",
  "after the message is accepted": "accept after 2",
  "before the message is stored": "user before 2",
  "after the message is stored": "user after 2",
  "after the placeholder is shown, before its address is saved": "address before 2",
  "after the placeholder's address is saved": "address after 2",
  "before the complete answer is stored": "assistant before 2",
  "after the answer is stored": "assistant after 2",
  "after the reply is finished, before the message is closed": "close before 2",
  "after the message is closed": "close after 2",
};

for (const [name, createSurface] of Object.entries(surfaces)) {
  describe(`a process killed on ${name}`, () => {
    /** Each message has one complete answer, and the history has no gaps and no duplicates. */
    async function expectAnsweredOnce(running: CrashStory): Promise<void> {
      const seen = await running.until((all) => all.some(({ text }) => text === "Answer to two"));
      expect(seen.map(({ text }) => text)).toEqual(["Answer to one", "Answer to two"]);
      await running.surface.say("three");
      const all = await running.until((now) => now.some(({ text }) => text === "Answer to three"));
      expect(all.map(({ text }) => text)).toEqual(["Answer to one", "Answer to two", "Answer to three"]);
      expect(running.asked().at(-1)).toEqual([
        "user: one",
        "assistant: Answer to one",
        "user: two",
        "assistant: Answer to two",
        "user: three",
      ]);
    }

    for (const [step, dieAt] of Object.entries(steps)) {
      it(`${step}: answers once after a restart`, async () => {
        story = await startCrashStory(await createSurface());
        const doomed = await story.start(dieAt);
        await story.surface.say("one");
        await story.until((all) => all.some(({ text }) => text === "Answer to one"));
        const saying = story.surface.say("two");
        expect(await doomed.ended).toBe(null);
        await saying;
        await story.start();
        // The page sends an unaccepted message again; Slack redelivers it after a minute; on Discord the bot fetches it.
        if (step === "before the message is accepted" && name === "the page") await story.surface.say("two");
        story.surface.passTime();
        await expectAnsweredOnce(story);
      });
    }

    it("during an answer: finishes it in the same message", async () => {
      story = await startCrashStory(await createSurface());
      const doomed = await story.start();
      await story.surface.say("one");
      await story.until((all) => all.some(({ text }) => text === "Answer to one"));
      story.setHanging(true);
      await story.surface.say("two");
      const half = await story.until((all) => all.length === 2 && /^Answer to\b/.test(all[1]?.text ?? ""));
      doomed.process.kill("SIGKILL");
      await doomed.ended;
      story.setHanging(false);
      await story.start();
      const whole = await story.until((all) => all.some(({ text }) => text === "Answer to two"));
      expect(whole.map(({ id }) => id)).toEqual(half.map(({ id }) => id));
      await expectAnsweredOnce(story);
    });

    it("four times over the same message: ends its reply with a Retry", async () => {
      story = await startCrashStory(await createSurface());
      story.setHanging(true);
      let id: string | undefined;
      for (let life = 0; life < 4; life++) {
        const doomed = await story.start();
        if (life === 0) await story.surface.say("one");
        const asked = life + 1;
        const running = story;
        const [seen] = await story.until(
          (all) => running.asked().length >= asked && (all[0]?.text ?? "").startsWith("Answer to"),
        );
        id ??= seen?.id;
        doomed.process.kill("SIGKILL");
        await doomed.ended;
      }
      await story.start();
      const sealed = await story.until((all) => all.some(({ buttons }) => buttons.includes("Retry")));
      expect(sealed).toMatchObject([{ id, buttons: [expect.stringMatching(/retry|try again/i)] }]);
      expect(story.asked()).toHaveLength(4);
    });
  });
}
