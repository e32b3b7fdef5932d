import { afterEach, describe, expect, it } from "vitest";
import { startCrashStory, type CrashStory } from "./crash-story.ts";
import { createDiscordSurface } from "./crash-platforms.ts";

let story: CrashStory | undefined;
afterEach(async () => {
  await story?.close();
  story = undefined;
});

const steps: Readonly<Record<string, string>> = {
  "after the command is accepted": "accept after 1",
  "before the address is saved": "address before 1",
  "after the address is saved": "address after 1",
  "before the command is closed": "close before 1",
};

describe("a process killed on a Discord command", () => {
  for (const [step, dieAt] of Object.entries(steps)) {
    it(`${step}: answers once after a restart, and nothing stays "thinking"`, async () => {
      story = await startCrashStory(await createDiscordSurface("command"));
      const doomed = await story.start(dieAt);
      await story.surface.say("one");
      expect(await doomed.ended).toBe(null);
      await story.start();
      const seen = await story.until((all) => all.some(({ text }) => text.includes("Answer to one")));
      expect(seen).toHaveLength(1);
    });
  }

  it("before the command is accepted: leaves no placeholder", async () => {
    story = await startCrashStory(await createDiscordSurface("command"));
    const doomed = await story.start("accept before 1");
    await story.surface.say("one");
    expect(await doomed.ended).toBe(null);
    expect(await story.surface.seen()).toEqual([]);
    await story.start();
    await story.surface.say("two");
    const seen = await story.until((all) => all.some(({ text }) => text.includes("Answer to two")));
    expect(seen).toHaveLength(1);
  });
});
