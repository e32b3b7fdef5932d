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
  Discord: () => createDiscordSurface("thread"),
  Slack: () => createSlackSurface(),
  "the page": () => createPageSurface(),
};

for (const [name, createSurface] of Object.entries(surfaces)) {
  describe(`a process killed over Regenerate with another model on ${name}`, () => {
    /** Model "m" has answered "one", and the process dies when "n" is chosen instead. */
    async function chosen(dieAt: string) {
      const running = (story = await startCrashStory(await createSurface()));
      const doomed = await running.start(dieAt);
      await running.surface.say("one");
      const [before] = await running.until((all) =>
        all.some(({ buttons }) => buttons.includes("Regenerate") && buttons.length >= 3),
      );
      running.setAnswer("Another answer to ");
      await running.surface.chooses("n");
      expect(await doomed.ended).toBe(null);
      return { running, before: before! };
    }

    for (const [step, dieAt] of Object.entries({
      "once it is stored that there is to be another answer": "redo after 1",
      "before the other answer is stored": "replace before 1",
      "after the other answer is stored": "replace after 1",
      "before the turn is closed": "close before 2",
    })) {
      it(`${step}: shows the answer of that model in the same message, once`, async () => {
        const { running, before } = await chosen(dieAt);
        await running.start();
        const seen = await running.until(
          ([first]) => first?.text === "Another answer to one" && first.buttons.includes("Regenerate"),
        );
        expect(seen.map(({ id }) => id)).toEqual([before.id]);
        const [first, ...later] = running.modelsAsked();
        expect(first).toBe("m");
        // Asked once more where its answer was not stored.
        expect(new Set(later)).toEqual(new Set(["n"]));
        running.setAnswer("Answer to ");
        await running.surface.say("last");
        await running.until((all) => all.some(({ text }) => text.includes("Answer to last")));
        expect(running.asked().at(-1)).toEqual([
          "user: one",
          "assistant: Another answer to one",
          "user: last",
        ]);
        expect(running.modelsAsked().at(-1)).toBe("m");
      });
    }

    it("before anything is stored: the answer stays, and another model can be chosen", async () => {
      const { running, before } = await chosen("redo before 1");
      await running.start();
      expect(await running.surface.seen()).toMatchObject([{ id: before.id, text: "Answer to one" }]);
      await running.surface.chooses("n");
      const seen = await running.until((all) => all.some(({ text }) => text === "Another answer to one"));
      expect(seen).toHaveLength(1);
      expect(running.modelsAsked()).toEqual(["m", "n"]);
    });
  });
}
