import { describe, expect, test } from "vitest";
import { negotiateLanguage, toLanguage } from "../../../src/words/languages.ts";

describe("the language of a locale", () => {
  test.each([
    ["de", "de"],
    ["de-AT", "de"],
    ["de_CH", "de"],
    ["fr-CA", "fr"],
    ["es-419", "es"],
    ["es-LA", "es"],
    ["ja-JP", "ja"],
    ["en-GB", "en"],
    ["EN-us", "en"],
    ["pt-BR", "en"],
    ["zh-TW", "en"],
    ["", "en"],
    ["__proto__", "en"],
    [undefined, "en"],
  ])("%s is %s", (locale, language) => {
    expect(toLanguage(locale)).toBe(language);
  });
});

describe("the language of a browser", () => {
  test.each([
    ["fr-CH, fr;q=0.9, en;q=0.8, de;q=0.7, *;q=0.5", "fr"],
    ["pt-BR,pt;q=0.9,es;q=0.8,en;q=0.7", "es"],
    ["en;q=0.5, ja", "ja"],
    ["de;q=0, fr;q=0.1", "fr"],
    ["*", "en"],
    ["nonsense;;q=x", "en"],
    ["", "en"],
    [undefined, "en"],
  ])("%s is %s", (header, language) => {
    expect(negotiateLanguage(header)).toBe(language);
  });
});
