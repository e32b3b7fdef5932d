import path from "node:path";
import { readdirSync, readFileSync } from "node:fs";
import { IntlMessageFormat } from "intl-messageformat";
import { describe, expect, test } from "vitest";
import { loadCommands } from "../../../src/load-commands.ts";
import { english } from "../../../src/words/english.ts";
import { messagesOf } from "../../../src/words/translate.ts";
import { languages } from "../../../src/words/languages.ts";
import { commandTexts, declaredTexts } from "../../support/declared-texts.ts";
import {
  argumentsOf,
  completeCatalogue,
  emojiOnlyMessages,
  missingBranches,
  untranslatedCommandTexts,
  unusedKeys,
} from "../../support/catalogue-checks.ts";

const root = path.resolve(import.meta.dirname, "../../..");
const commands = [...(await loadCommands()).values()];
const ofCommands = commandTexts(commands);
const others = languages.filter((language) => language !== "en");
const all = { ...english, ...declaredTexts(commands) };

/** Returns the sources that may use a message: TypeScript, and the page's JavaScript. */
function sources(): string[] {
  return ["src", "commands"].flatMap((top) =>
    readdirSync(path.join(root, top), { recursive: true, withFileTypes: true })
      .filter((entry) => entry.isFile() && /\.(?:ts|js|html)$/.test(entry.name))
      .map((entry) => path.join(entry.parentPath, entry.name))
      .filter((file) => !file.startsWith(path.join(root, "src/words/en/")))
      .map((file) => readFileSync(file, "utf8")),
  );
}

describe("the catalogue", () => {
  // A command costs one file: without translations it is shown in English, which is no mistake.
  test.each(others)("has every message in %s but texts of commands, and no other", (language) => {
    const { added, removed } = completeCatalogue(all, messagesOf(language));
    const missing = added.filter((key) => !Object.hasOwn(ofCommands, key));
    expect({ missing, removed }, "npm run words adds and removes keys").toEqual({ missing: [], removed: [] });
    const untranslated = untranslatedCommandTexts(ofCommands, messagesOf(language));
    if (untranslated.length > 0)
      console.warn(`Texts of commands are not translated in ${language}.json: ${untranslated.join(", ")}`);
  });

  // Messages of one platform, of its installation, and of what it alone has, and those for operators.
  const ofOnePlatform =
    /^(?:slack|discord|dashboard|install)\.|^(?:layer\.workspace|setting\.role-budgets|setting\.who-may-use|setting\.problem\.role-budget)\b|^command\.settings\.choice/;
  test.each(languages)("names no platform in what every platform says, in %s", (language) => {
    const named = Object.entries(messagesOf(language)).filter(
      ([key, text]) =>
        !ofOnePlatform.test(key) &&
        /discord|slack|workspace|espace de travail|espacio de trabajo|ワークスペース/i.test(text),
    );
    expect(named).toEqual([]);
  });

  test.each(languages)("has a text for every key in %s", (language) => {
    const blank = Object.entries(messagesOf(language)).filter(([, text]) => text.trim() === "");
    expect(blank).toEqual([]);
  });

  test.each(languages)(
    "has messages of valid syntax in %s, with the arguments of the English ones",
    (language) => {
      const wrong = Object.entries(messagesOf(language)).flatMap(([key, text]) => {
        const wanted = argumentsOf(all[key as keyof typeof all] ?? "");
        const found = argumentsOf(text);
        return JSON.stringify(found) === JSON.stringify(wanted) ? [] : [{ key, wanted, found }];
      });
      expect(wrong).toEqual([]);
    },
  );

  test.each(languages)("has the plural forms of %s", (language) => {
    const wrong = Object.entries(messagesOf(language)).flatMap(([key, text]) =>
      missingBranches(text, language).map((problem) => `${key}: ${problem}`),
    );
    expect(wrong).toEqual([]);
  });

  test("has no message that nothing says", () => {
    expect(unusedKeys(Object.keys(english), sources())).toEqual([]);
  });

  test.each(languages)("says nothing by symbols alone in %s", (language) => {
    expect(emojiOnlyMessages(messagesOf(language))).toEqual([]);
  });

  test("translates no name of a setting of the operator, command or option, and has values in code where English has them", () => {
    const literal = /\b[A-Z]{2,}(?:_[A-Z]+)+\b|`[^`]+`/g;
    const wrong = others.flatMap((language) =>
      Object.entries(messagesOf(language)).flatMap(([key, text]) => {
        const wanted = (all[key as keyof typeof all] ?? "").match(literal) ?? [];
        const missing = wanted.filter((word) => !text.includes(word));
        return missing.length === 0 ? [] : [{ language, key, missing }];
      }),
    );
    expect(wrong).toEqual([]);
  });
});

describe("the checks of the catalogue", () => {
  test("find an argument that is missing", () => {
    expect(argumentsOf("Not read: {name} ({reason}).")).toEqual(["name", "reason"]);
    expect(argumentsOf("{count, plural, one {# of {all}} other {#}}")).toEqual(["all", "count:number"]);
    expect(() => argumentsOf("{name")).toThrow();
    expect(() => argumentsOf("{kind, select, a {b} other {c}}")).toThrow("select");
  });

  test("find a plural form that is missing or too many", () => {
    expect(missingBranches("{n, plural, other {#}}", "de")).toEqual(['"n" lacks one']);
    expect(missingBranches("{n, plural, one {1} other {#}}", "ja")).toEqual(['"n" has one']);
    expect(missingBranches("{n, plural, one {1} other {#}}", "fr")).toEqual([
      '"n" says 1 for 0 too: write {n} or #',
    ]);
    expect(missingBranches("{n, plural, one {#} other {#}}", "fr")).toEqual([]);
  });

  test("find a message that no source names", () => {
    const keys = ["error.a", "error.b", "layer.x.for", "layer.x.gone"];
    expect(unusedKeys(keys, ['translate("error.a")', "translate(`layer.${kind}.for`)"])).toEqual([
      "error.b",
      "layer.x.gone",
    ]);
  });

  test("find a message without words", () => {
    expect(
      emojiOnlyMessages({ a: "⚠️", b: "⚠️ {failure}", c: "…", d: "Stopped.", e: "{name}: {text}" }),
    ).toEqual(["a", "c"]);
  });

  test("find what a language lacks or has too many, and put it where English has it", () => {
    const english = { a: "A", b: "B", c: "C", d: "D" };
    const { messages, ...changes } = completeCatalogue(english, { c: "Ce", old: "Alt", d: "De" });
    expect(changes).toEqual({ added: ["a", "b"], removed: ["old"] });
    expect(Object.entries(messages)).toEqual(Object.entries({ a: "A", b: "B", c: "Ce", d: "De" }));
    const inOwnOrder = completeCatalogue(english, { d: "De", a: "A", c: "Ce" }).messages;
    expect(Object.keys(inOwnOrder)).toEqual(["d", "a", "b", "c"]);
  });

  test("find the texts of a command that are English in another language", () => {
    const texts = {
      "command.chat.name": "chat",
      "command.chat.description": "Talk",
      "command.chat.option.to": "To whom",
      "command.chat.option-name.to": "to",
    };
    const german = { "command.chat.name": "chat", "command.chat.description": "Talk" };
    expect(untranslatedCommandTexts(texts, german)).toEqual([
      "command.chat.description",
      "command.chat.option.to",
      "command.chat.option-name.to",
    ]);
  });

  test("format as the library does", () => {
    expect(new IntlMessageFormat("l’{x}", "fr", undefined, { ignoreTag: true }).format({ x: 1 })).toBe("l’1");
  });
});
