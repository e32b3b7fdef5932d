import { describe, expect, it } from "vitest";
import {
  createDiscordSurface,
  createPageSurface,
  createSlackSurface,
  type SeenAnswer,
} from "./crash-platforms.ts";
import type { CrashStory } from "./crash-story.ts";
import { crashTable, inStory, type Surfaces } from "./crash-table.ts";
import type { DieAt } from "./steps.ts";

const surfaces: Surfaces = {
  Discord: () => createDiscordSurface("direct"),
  Slack: () => createSlackSurface(),
  "the page": () => createPageSurface(),
};

await crashTable({
  over: "over a slash command",
  surfaces: { Discord: () => createDiscordSurface("command") },
  begin: () => Promise.resolve([]),
  act: (story) => story.surface.say("one"),
  last: "close 1",
  comesOfIt: 'it answers once, and nothing stays "thinking"',
  async afterwards(story, _, { isDone }) {
    if (!isDone("accept 1")) {
      // It shows that it failed, or was never taken, and the person uses it again.
      await story.surface.say("two");
      const seen = await story.until((all) => all.some(({ text }) => text.includes("Answer to two")));
      expect(seen.filter(({ text }) => text.includes("Answer to two"))).toHaveLength(1);
      expect(seen.filter(({ text }) => text.includes("Answer to one")).length).toBeLessThanOrEqual(1);
      return;
    }
    const seen = await story.until((all) => all.some(({ text }) => text.includes("Answer to one")));
    expect(seen).toHaveLength(1);
  },
});

/** The page refuses the edit of a command in words. */
describe.each(Object.entries(surfaces).slice(0, 2))(
  "a bot that dies over a written command that is edited while it runs, on %s",
  (_, createSurface) => {
    const deaths: Readonly<Record<string, DieAt>> = {
      "once the edit is taken in": "edit after 1",
      "before the stored question is replaced": "end before 1",
      "after the stored question is replaced": "end after 1",
      "before the command is closed": "close before 1",
      "after the command is closed": "close after 1",
    };
    for (const [step, dieAt] of Object.entries(deaths))
      it.concurrent(`${step}: the history has the new words, once`, () =>
        inStory(createSurface, async (story) => {
          const doomed = await story.start(dieAt);
          story.setHanging(true);
          await story.surface.say("/ask secret");
          await story.until((all) => /^Answer to\b/.test(all[0]?.text ?? ""));
          const editing = story.surface.edit("/ask harmless");
          if (dieAt !== "edit after 1") {
            await doomed.done("edit 1");
            // The command ends as it was written.
            await story.surface.press("Stop");
          }
          await doomed.died;
          await editing;
          story.setHanging(false);
          await story.start();
          await story.surface.redeliver();
          await story.until((all) => /^Answer to secret|Stopped/.test(all[0]?.text ?? ""));
          await story.surface.say("last");
          // Without an answer between them, the two questions are asked as one.
          const seen = await story.until((all) => all.some(({ text }) => /^Answer to[^]*last$/.test(text)));
          expect(seen).toHaveLength(2);
          const asked = (story.asked().at(-1) ?? []).filter((line) => line.startsWith("user"));
          expect(asked.join("\n\n").replaceAll("user: ", "")).toBe("/ask harmless\n\nlast");
        }));
  },
);

/** Returns the question as a model gets it afterwards. */
async function questionKept(story: CrashStory): Promise<string> {
  await story.surface.say("last");
  await story.until((all) => all.some(({ text }) => text === "Answer to last"));
  return story.asked().at(-1)!.join("\n");
}

const isTranscribed = ({ text, buttons }: SeenAnswer): boolean =>
  text.includes("the words of mouth") && buttons.some((label) => /^(Fix t|T)ranscript$/.test(label));

for (const isCommand of [false, true])
  await crashTable({
    over: `over Fix transcript of ${isCommand ? "the reply of /transcribe" : "an answer to a voice note"}`,
    surfaces,
    only: ["again", "end", "close"],
    async begin(story, life) {
      await story.surface.speak({ isCommand });
      const seen = await story.until((all) => all.some(isTranscribed));
      // The button is visible before the turn is closed.
      await life.done("close 1");
      return seen;
    },
    act: (story) => story.surface.fixTranscript("the swords of youth"),
    last: "close 2",
    comesOfIt: "it shows the right words in the same message, once, and keeps them alone",
    async afterwards(story, before, { surface, isDone }) {
      if (!isDone("again 1")) {
        expect(await story.surface.seen()).toMatchObject(before.map(({ id, text }) => ({ id, text })));
        await story.surface.fixTranscript("the swords of youth");
      }
      const seen = await story.until(
        ([first]) => first?.text.includes("the swords of youth") === true && first.buttons.length > 1,
      );
      expect(seen.map(({ id }) => id)).toEqual(before.map(({ id }) => id));
      expect(seen[0]?.text).not.toContain("mouth");
      // The page shows the words at the recording.
      if (!isCommand && surface !== "the page")
        expect(seen[0]?.text).toMatch(/the swords of youth[^]*Answer to [^]*the swords of youth/);
      const kept = await questionKept(story);
      expect(kept).toContain("the swords of youth");
      expect(kept).not.toContain("mouth");
    },
  });
