import path from "node:path";
import { globSync, readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { messagesOf } from "../../../src/words/translate.ts";
import { languages } from "../../../src/words/languages.ts";

const root = path.resolve(import.meta.dirname, "../../..");

/** In these files a sign stands beside words that say the same. No sign says something alone. */
const decorated: readonly string[] = [
  // The sign stands before the sentence that says what went wrong.
  "src/platforms/discord/reply/content.ts",
  "src/platforms/discord/press/clicks.ts",
  "src/platforms/slack/press/app-home.ts",
  "src/platforms/slack/reply/message-blocks.ts",
  // These are boxes of a task list, as the model wrote them. Screen readers read them as boxes.
  "src/platforms/web/page/markdown-blocks.js",
];

const sign = /\p{Extended_Pictographic}|[\u2600-\u27bf]|:warning:/u;

test("what Parley says to people has no emoji that says something alone", () => {
  const files = globSync("{commands,src/{assistant,core,media,platforms,words}}/**/*.{ts,js,html}", {
    cwd: root,
  });
  const found = files.filter((file) => sign.test(readFileSync(path.join(root, file), "utf8")));
  expect(found.toSorted()).toEqual(decorated.toSorted());
});

test.each(languages)("the messages in %s are words alone", (language) => {
  const found = Object.entries(messagesOf(language)).filter(([, text]) => sign.test(text));
  expect(found).toEqual([]);
});
