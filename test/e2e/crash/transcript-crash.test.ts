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
  Discord: () => createDiscordSurface("direct"),
  Slack: () => createSlackSurface(),
  "the page": () => createPageSurface(),
};

const steps: Readonly<Record<string, string>> = {
  "once the right words are stored": "redo after 1",
  "before they take the place of the words in the question": "replace before 1",
  "after they have taken that place": "replace after 1",
  "before the new answer is stored": "replace before 2",
  "after the new answer is stored": "replace after 2",
  "before the turn is closed": "close before 2",
  "after the turn is closed": "close after 2",
};

async function spoken(surface: Surface, dieAt: string, isCommand: boolean) {
  const running = (story = await startCrashStory(surface));
  const doomed = await running.start(dieAt);
  await running.surface.speak({ isCommand });
  const [before] = await running.until((all) =>
    all.some(
      ({ text, buttons }) =>
        text.includes("the words of mouth") && buttons.some((label) => /^(Fix t|T)ranscript$/.test(label)),
    ),
  );
  // The button is visible before the turn is closed.
  await doomed.says(/store: close 1/);
  return { running, doomed, before: before! };
}

/** The question as a model is sent it afterwards. */
async function history(running: CrashStory): Promise<string> {
  await running.surface.say("last");
  await running.until((all) => all.some(({ text }) => text === "Answer to last"));
  return running.asked().at(-1)!.join("\n");
}

for (const [name, createSurface] of Object.entries(surfaces)) {
  for (const isCommand of [false, true]) {
    const what = isCommand ? "the reply of /transcribe" : "an answer to a voice note";
    describe(`a process killed over Fix transcript of ${what} on ${name}`, () => {
      for (const [step, dieAt] of Object.entries(steps)) {
        it(`${step}: shows the right words in the same message, once, and keeps them alone`, async () => {
          const { running, doomed, before } = await spoken(await createSurface(), dieAt, isCommand);
          await running.surface.fixTranscript("the swords of youth");
          expect(await doomed.ended).toBe(null);
          await running.start();
          running.surface.passTime();
          const seen = await running.until(
            (all) => all[0]?.text.includes("the swords of youth") === true && all[0].buttons.length > 1,
          );
          expect(seen.map(({ id }) => id)).toEqual([before.id]);
          expect(seen[0]?.text).not.toContain("mouth");
          // The page shows the words at the recording.
          const isQuoted = !isCommand && name !== "the page";
          if (isQuoted)
            expect(seen[0]?.text).toMatch(/the swords of youth[^]*Answer to [^]*the swords of youth/);
          const kept = await history(running);
          expect(kept).toContain("the swords of youth");
          expect(kept).not.toContain("mouth");
        });
      }
    });
  }
}
