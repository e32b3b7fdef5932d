import { afterEach, describe, expect, it } from "vitest";
import { createDiscordSurface, createSlackSurface, type Surface } from "./crash-platforms.ts";
import { startCrashStory, type CrashStory } from "./crash-story.ts";

let story: CrashStory | undefined;
afterEach(async () => {
  await story?.close();
  story = undefined;
});

/** The page refuses the edit of a command in words. */
const surfaces: Readonly<Record<string, () => Promise<Surface>>> = {
  Discord: () => createDiscordSurface("direct"),
  Slack: () => createSlackSurface(),
};

for (const [name, createSurface] of Object.entries(surfaces)) {
  describe(`a written command that is edited while it runs, and a process killed on ${name}`, () => {
    for (const [step, dieAt] of Object.entries({
      "once the edit is taken in": "edit after 1",
      "before the stored question is replaced": "new-question before 1",
      "after the stored question is replaced": "new-question after 1",
      "before the command is closed": "close before 1",
      "after the command is closed": "close after 1",
    })) {
      it(`${step}: the history has the new words, once`, async () => {
        const running = (story = await startCrashStory(await createSurface()));
        const doomed = await running.start(dieAt);
        running.setHanging(true);
        await running.surface.say("/ask secret");
        await running.until((all) => /^Answer to\b/.test(all[0]?.text ?? ""));
        const editing = running.surface.edit("/ask harmless");
        if (step !== "once the edit is taken in") {
          await doomed.says(/store: edit 1/);
          // The command ends as it was written.
          await running.surface.press("Stop");
        }
        expect(await doomed.ended).toBe(null);
        await editing;
        running.setHanging(false);
        await running.start();
        running.surface.passTime();
        await running.until((all) => /^Answer to secret|Stopped/.test(all[0]?.text ?? ""));
        await running.surface.say("last");
        const seen = await running.until((all) => all.some(({ text }) => text === "Answer to last"));
        expect(seen).toHaveLength(2);
        const asked = running.asked().at(-1) ?? [];
        expect(asked.filter((line) => line.startsWith("user"))).toEqual([
          "user: /ask harmless",
          "user: last",
        ]);
      });
    }
  });
}
