import { afterEach, describe, expect, it } from "vitest";
import { createDiscordSurface, createSlackSurface, type Surface } from "./crash-platforms.ts";
import { startCrashStory, type CrashStory } from "./crash-story.ts";

let story: CrashStory | undefined;
afterEach(async () => {
  await story?.close();
  story = undefined;
});

const surfaces: Readonly<Record<string, () => Promise<Surface>>> = {
  Discord: () => createDiscordSurface("room"),
  Slack: () => createSlackSurface("room"),
};

/** When the process is killed, over the first mention in people's thread. Three messages were said there before. */
const steps: Readonly<Record<string, string>> = {
  "before the thread is marked as people's": "settings before 1",
  "while the thread is read": "settings after 1",
  "before anything of it is stored": "user before 1",
  "when a part of it is stored": "user after 2",
  "before the question is stored, and with it how far it was read": "user before 4",
  "after the question is stored, and with it how far it was read": "user after 4",
  "before the answer is stored": "assistant before 1",
};

for (const [name, createSurface] of Object.entries(surfaces)) {
  describe(`a process killed in people's thread on ${name}`, () => {
    for (const [step, dieAt] of Object.entries(steps)) {
      it(`${step}: answers once, with each message once, and does not take the thread`, async () => {
        story = await startCrashStory(await createSurface());
        const doomed = await story.start(dieAt);
        await story.surface.say("one");
        await doomed.ended;
        story.surface.passTime();
        await story.start();
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
      });
    }
  });
}
