/**
 * Gives each catalogue of another language the keys that English has and it lacks, with the English text, and
 * removes those that English does not have. It lists both. The command is `npm run words`.
 */
import path from "node:path";
import { writeFile } from "node:fs/promises";
import { loadCommands } from "../../src/load-commands.ts";
import { english } from "../../src/words/english.ts";
import { messagesOf } from "../../src/words/translate.ts";
import { defaultLanguage, languages } from "../../src/words/languages.ts";
import { completeCatalogue } from "../support/catalogue-checks.ts";
import { declaredTexts } from "../support/declared-texts.ts";

const folder = path.resolve(import.meta.dirname, "../../src/words");
const all = { ...english, ...declaredTexts([...(await loadCommands()).values()]) };

const report: string[] = [];
for (const language of languages) {
  if (language === defaultLanguage) continue;
  const { messages, added, removed } = completeCatalogue(all, messagesOf(language));
  const changes = [...added.map((key) => `  + ${key}\n`), ...removed.map((key) => `  - ${key}\n`)];
  if (changes.length === 0) {
    report.push(`${language}.json has every key.\n`);
    continue;
  }
  report.push(`${language}.json (+ is to be translated):\n`, ...changes);
  await writeFile(path.join(folder, `${language}.json`), `${JSON.stringify(messages, null, 2)}\n`);
}
// A reader that goes away ends the process, which must not be in the middle of a file.
process.stdout.write(report.join(""));
