import { readFile } from "node:fs/promises";
import { expect, test } from "vitest";
import { describeRule, threadRules } from "../../../src/core/rule-words.ts";
import { inLanguage, translate } from "../../../src/words/translate.ts";
import { languages } from "../../../src/words/languages.ts";

/** The words of a document, as one line. */
const wordsOf = async (file: string): Promise<string> =>
  (await readFile(file, "utf8")).replaceAll(/\s+(?:> )?/g, " ");

test.each(["docs/discord.md", "docs/slack.md", "docs/using.md"])(
  "%s says which messages are answered in the words that people read",
  async (file) => {
    const words = await wordsOf(file);
    for (const rule of threadRules()) expect(words).toContain(rule);
  },
);

test.each(languages)("/dismiss says the rule of people's threads: %s", (language) => {
  inLanguage(language, () => {
    const rule = describeRule({ answerTo: "addressed", isPeoples: true });
    expect(translate("dismiss.done", { rule })).toContain(rule);
  });
});
