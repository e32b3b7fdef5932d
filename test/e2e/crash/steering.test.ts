import { expect } from "vitest";
import {
  createDiscordSurface,
  createPageSurface,
  createSlackSurface,
  type SeenAnswer,
} from "./crash-platforms.ts";
import type { CrashStory } from "./crash-story.ts";
import { crashTable, type Scene, type Surfaces } from "./crash-table.ts";

const surfaces: Surfaces = {
  Discord: () => createDiscordSurface("thread"),
  Slack: () => createSlackSurface(),
  "the page": () => createPageSurface(),
};

/** The steps of a turn that is run again. */
const ofAnotherRun = ["again", "begin", "address", "end", "close"];

/** Asks "one", until the answer has this button. */
function answeredWith(label: string): Scene["begin"] {
  return async (story, life) => {
    await story.surface.say("one");
    const seen = await story.until((all) => all.some(({ buttons }) => buttons.includes(label)));
    await life.done("close 1");
    return seen;
  };
}

/** Expects that a later request to the model contains this answer. */
async function expectKept(story: CrashStory, answer: string): Promise<void> {
  story.setAnswer("Answer to ");
  await story.surface.say("last");
  await story.until((all) => all.some(({ text }) => text.includes("Answer to last")));
  expect(story.asked().at(-1)).toEqual(["user: one", `assistant: ${answer}`, "user: last"]);
}

async function expectInPlace(
  story: CrashStory,
  before: readonly SeenAnswer[],
  answer: string,
): Promise<SeenAnswer> {
  const seen = await story.until(([first]) => first?.text === answer && first.buttons.length > 1);
  expect(seen.map(({ id }) => id)).toEqual(before.map(({ id }) => id));
  return seen[0]!;
}

await crashTable({
  over: "over Regenerate",
  surfaces: { ...surfaces, "Slack over HTTP": () => createSlackSurface("direct", "http") },
  only: [...ofAnotherRun, "POST /v1/chat/completions"],
  begin: answeredWith("Regenerate"),
  async act(story) {
    story.setAnswer("Another answer to ");
    await story.surface.press("Regenerate");
  },
  last: "close 2",
  comesOfIt: "it shows the other answer in the same message, once",
  async afterwards(story, before, { isDone }) {
    if (!isDone("again 1")) {
      // The answer stays, and the button works.
      expect(await story.surface.seen()).toMatchObject([{ id: before[0]?.id, text: "Answer to one" }]);
      await story.surface.press("Regenerate");
    }
    await expectInPlace(story, before, "Another answer to one");
    await expectKept(story, "Another answer to one");
  },
});

await crashTable({
  over: "over Regenerate with another model",
  surfaces,
  only: ofAnotherRun,
  begin: async (story, life) => {
    const seen = await answeredWith("Regenerate")(story, life);
    await story.until(([first]) => (first?.buttons.length ?? 0) >= 3);
    return seen;
  },
  async act(story) {
    story.setAnswer("Another answer to ");
    await story.surface.chooses("n");
  },
  last: "close 2",
  comesOfIt: "it shows the answer of that model in the same message, once",
  async afterwards(story, before, { isDone }) {
    if (!isDone("again 1")) {
      expect(await story.surface.seen()).toMatchObject([{ id: before[0]?.id, text: "Answer to one" }]);
      await story.surface.chooses("n");
    }
    await expectInPlace(story, before, "Another answer to one");
    const [first, ...later] = story.modelsAsked();
    expect(first).toBe("m");
    // It was asked once more where its answer was not stored.
    expect(new Set(later)).toEqual(new Set(["n"]));
    await expectKept(story, "Another answer to one");
    expect(story.modelsAsked().at(-1)).toBe("m");
  },
});

await crashTable({
  over: "over Continue",
  surfaces,
  only: ofAnotherRun,
  prepare: (story) => story.setAnswer("Answer to ", true),
  begin: answeredWith("Continue"),
  act: (story) => story.surface.press("Continue"),
  last: "close 2",
  comesOfIt: "it shows the whole answer in the same message, once",
  async afterwards(story, before, { isDone }) {
    if (!isDone("again 1")) await story.surface.press("Continue");
    const shown = await expectInPlace(story, before, "Answer to one and the rest");
    expect(shown.buttons).not.toContain("Continue");
    await expectKept(story, "Answer to one and the rest");
  },
});

await crashTable({
  over: "over Stop",
  surfaces,
  only: ["stop", "settle", "end", "close", "PATCH /channels/:id/messages/:id", "POST /chat.stopStream"],
  prepare: (story) => story.setHanging(true),
  async begin(story) {
    await story.surface.say("one");
    return await story.until(([first]) => /^Answer to\b/.test(first?.text ?? ""));
  },
  act: (story) => story.surface.press("Stop"),
  last: "close 1",
  comesOfIt:
    "it is stopped for good, and the words that were stored with its end stay and are in the history",
  async afterwards(story, before, { surface, isDone }) {
    if (!isDone("stop 1")) {
      // Nobody knows of it, and the answer goes on, unless Slack delivers the press again in time.
      const isStopped = (text: string): boolean => surface === "Slack" && text.includes("Stopped by");
      const seen = await story.until(
        ([first]) => first !== undefined && (first.text === "Answer to one" || isStopped(first.text)),
      );
      expect(seen.map(({ id }) => id)).toEqual(before.map(({ id }) => id));
      return;
    }
    const seen = await story.until((all) => all.some(({ text }) => text.includes("Stopped")));
    expect(seen.map(({ id }) => id)).toEqual(before.map(({ id }) => id));
    // Only the process that ran it had the words so far.
    const hasWords = isDone("end 1");
    if (hasWords) expect(seen[0]?.text).toMatch(/^Answer to\b/);
    expect(seen[0]?.buttons).not.toContain("Stop");
    await story.surface.say("two");
    const asked = hasWords ? ["user: one", "assistant: Answer to ", "user: two"] : ["user: one\n\ntwo"];
    const answer = hasWords ? "Answer to two" : "Answer to one\n\ntwo";
    const all = await story.until((now) => now.some(({ text }) => text.includes(answer)));
    expect(all).toHaveLength(2);
    expect(story.asked()).toEqual([["user: one"], asked]);
  },
});
