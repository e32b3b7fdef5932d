import { expect } from "vitest";
import { createPageSurface, createSlackSurface, type Surface } from "./crash-platforms.ts";
import { crashTable } from "./crash-table.ts";

/** Two of these and their answers do not fit the model. */
const long = (word: string) => `${word} ${"and so on ".repeat(400)}.`;
/** Answers may be so long that only 2,800 tokens are left for the conversation. */
const withLongAnswers = (surface: Surface): Surface => ({
  ...surface,
  settings: { ...surface.settings, CHAT_MAX_TOKENS: "26000" },
});
const summaryRequests = (asked: readonly (readonly string[])[]) =>
  asked.map((messages) => messages.join("\n")).filter((text) => text.includes("[Messages]"));
const summariesIn = (messages: readonly string[] | undefined) =>
  (messages ?? []).join("\n").split("[Summary of earlier messages]\n> They talked.\n[End of the summary]")
    .length - 1;

await crashTable({
  over: "while it sums up what no longer fits the model",
  surfaces: {
    "the page": () => withLongAnswers(createPageSurface()),
    Slack: async () => withLongAnswers(await createSlackSurface()),
  },
  only: ["POST /v1/chat/completions", "reserve", "settle", "begin", "end", "close"],
  async begin(story, life) {
    for (const [index, word] of ["one", "two"].entries()) {
      await story.surface.say(long(word));
      await life.done(`close ${index + 1}`);
    }
    return await story.surface.seen();
  },
  act: (story) => story.surface.say("three"),
  last: "close 3",
  comesOfIt: "it answers once, with one summary",
  async afterwards(story) {
    const seen = await story.until((all) => all.some(({ text }) => text.startsWith("Answer to three")));
    expect(seen.filter(({ text }) => text.startsWith("Answer to three"))).toHaveLength(1);
    expect(summariesIn(story.asked().at(-1))).toBe(1);
    await story.surface.say("four");
    await story.until((all) => all.some(({ text }) => text.startsWith("Answer to four")));
    expect(summariesIn(story.asked().at(-1))).toBe(1);
    // At most the request that the death has cut off is made again, and no message is summed up twice.
    const requests = summaryRequests(story.asked());
    const distinct = [...new Set(requests)];
    expect(requests.length - distinct.length).toBeLessThanOrEqual(1);
    for (const word of ["one", "two"])
      expect(distinct.filter((text) => text.includes(`: ${word} and so on`))).toHaveLength(1);
  },
});
