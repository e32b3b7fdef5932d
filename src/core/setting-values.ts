import { currentLanguage, translateDeclared, translate } from "../words/translate.ts";
import {
  declarationOf,
  settingGroups,
  type Choice,
  type SettingGroup,
  type SettingName,
  type SettingValue,
} from "./layered-settings.ts";
import type { BudgetPeriod } from "./spending.ts";

/** A value that was read from what a person typed, or what is wrong with it, as the end of a sentence. */
type ParsedSetting =
  /** Without a value, the layer's is removed. */
  | { readonly value: SettingValue | undefined; readonly problem?: undefined }
  | { readonly problem: string; readonly value?: undefined };

const problem = (text: string): ParsedSetting => ({ problem: text });
const value = (parsed: SettingValue): ParsedSetting => ({ value: parsed });

/** The word that removes a value, so that the next layer's applies. */
const defaultWord = "default";

/**
 * Reads a setting's value from text. An empty text and `default` remove it. Only the form of models and
 * access terms is checked, because this function does not know which of them exist.
 */
export function parseSetting(name: SettingName, typed: string): ParsedSetting {
  const text = typed.trim();
  if (text === "" || text.toLowerCase() === defaultWord) return { value: undefined };
  const setting = declarationOf(name);
  switch (setting.kind) {
    case "model":
      return /^\S{1,200}$/.test(text) ? value(text) : problem(translate("setting.problem.model"));
    case "text":
      return text.length <= setting.maxChars
        ? value(text)
        : problem(translate("setting.problem.too-long", { count: text.length, max: setting.maxChars }));
    case "choice": {
      const wanted = text.toLowerCase();
      const found = setting.choices.find((choice) => choice.value === wanted);
      return found === undefined
        ? problem(
            translate("setting.problem.choice", {
              choices: setting.choices.map((choice) => choice.value).join(", "),
            }),
          )
        : value(found.value);
    }
    case "number":
      return parseNumber(text, setting.min, setting.max);
    case "usd":
      return parseUsd(text, setting.max);
    case "language":
      return parseLanguage(text);
    case "access":
      return parseTerms(text, setting.maxTerms, "setting.problem.term", (term) =>
        /^[a-z]{1,20}:[a-z]{1,20}:[\w.-]{1,64}$/i.test(term),
      );
    case "role-budgets":
      return parseTerms(
        text,
        setting.maxTerms,
        "setting.problem.role-budget",
        (term) => (toRoleBudget(term)?.usd ?? Number.POSITIVE_INFINITY) <= setting.max,
      );
  }
}

function parseNumber(text: string, min: number, max: number): ParsedSetting {
  const number = toNumber(text);
  return number === undefined || number < min || number > max
    ? problem(translate("setting.problem.number", { min, max }))
    : value(number);
}

function parseUsd(text: string, max: number): ParsedSetting {
  const number = toNumber(
    text
      .replace(/^\$\s*/, "")
      .replace(/(?:usd|\$)$/i, "")
      .trimEnd(),
  );
  return number === undefined || number > max
    ? problem(translate("setting.problem.usd", { max }))
    : value(number);
}

/** Reads plain decimal notation with a point or a comma, as people type it. */
function toNumber(text: string): number | undefined {
  return /^\d{1,12}(?:[.,]\d{1,6})?$/.test(text) ? Number(text.replace(",", ".")) : undefined;
}

function parseTerms(
  text: string,
  maxTerms: number,
  wrongEntry: "setting.problem.term" | "setting.problem.role-budget",
  isRight: (term: string) => boolean,
): ParsedSetting {
  const terms = [...new Set(text.split(/[\s,]+/).filter((term) => term !== ""))];
  if (terms.length > maxTerms)
    return problem(translate("setting.problem.too-many", { count: terms.length, max: maxTerms }));
  // Commas alone would make an empty list, with which nobody could use the bot.
  const wrong = (terms.length === 0 ? [text] : terms).find((term) => !isRight(term));
  return wrong === undefined
    ? value(terms)
    : problem(translate(wrongEntry, { entry: JSON.stringify(wrong.slice(0, 100)) }));
}

/** A term of `role-budgets`, or `undefined` for other texts. */
export function toRoleBudget(
  term: string,
): { readonly role: string; readonly usd: number; readonly period: BudgetPeriod } | undefined {
  const [, role, amount = "", period] =
    /^([a-z]{1,20}:role:[\w.-]{1,64})=(\d{1,12}(?:\.\d{1,6})?)\/(day|month)$/.exec(term) ?? [];
  return role === undefined ? undefined : { role, usd: Number(amount), period: period as BudgetPeriod };
}

/** The value that makes answers follow the question's language. */
export const automaticLanguage = "automatic";

function parseLanguage(text: string): ParsedSetting {
  const wanted = text.toLowerCase();
  if (wanted === automaticLanguage) return value(automaticLanguage);
  const name = languageNames().get(wanted);
  return name === undefined ? problem(translate("setting.problem.language")) : value(name);
}

/** The languages of ISO 639-1. */
const languageCodes =
  "aa ab af ak am an ar as av ay az ba be bg bi bm bn bo br bs ca ce ch co cs cu cv cy da de dv dz ee el en eo es et eu fa ff fi fj fo fr fy ga gd gl gn gu gv ha he hi hr ht hu hy ia id ie ig ii ik io is it iu ja jv ka kg ki kj kk kl km kn ko kr ks ku kv kw ky la lb lg li ln lo lt lu lv mg mh mi mk ml mn mr ms mt my na nb nd ne ng nl nn no nr nv ny oc oj om or os pa pi pl ps pt qu rm rn ro ru rw sa sc sd se sg si sk sl sm sn so sq sr ss st su sv sw ta te tg th ti tk tl tn to tr ts tt tw ty ug uk ur uz ve vi vo wa wo xh yi yo za zh zu".split(
    " ",
  );

let namesByWord: ReadonlyMap<string, string> | undefined;

/** English names of languages by the words that people may type in lower case: code, English or own name. */
function languageNames(): ReadonlyMap<string, string> {
  if (namesByWord !== undefined) return namesByWord;
  const english = new Intl.DisplayNames("en", { type: "language" });
  const names = new Map<string, string>();
  for (const code of languageCodes) {
    const name = english.of(code);
    if (name === undefined || name === code) continue;
    const own = new Intl.DisplayNames(code, { type: "language" }).of(code);
    for (const word of [code, name, own ?? name])
      if (!names.has(word.toLowerCase())) names.set(word.toLowerCase(), name);
  }
  namesByWord = names;
  return names;
}

/**
 * Values to offer while somebody types, at most 25, the best match first.
 * @param suggestModels returns ids of models for the typed text
 */
export function suggestSettingValues(
  name: SettingName,
  typed: string,
  suggestModels: (query: string) => readonly string[],
): string[] {
  const setting = declarationOf(name);
  if (setting.kind === "model") return [...suggestModels(typed).slice(0, 24), defaultWord];
  const all =
    setting.kind === "choice"
      ? setting.choices.map((choice) => choice.value)
      : setting.kind === "language"
        ? [automaticLanguage, ...new Set(languageNames().values())]
        : [];
  return bestMatches([...all, defaultWord], typed).slice(0, 25);
}

/** The words that contain what was typed, those that begin with it first. */
export function bestMatches(words: readonly string[], typed: string): string[] {
  const wanted = typed.trim().toLowerCase();
  const found = words.filter((word) => word.toLowerCase().includes(wanted));
  const isStart = (word: string): boolean => word.toLowerCase().startsWith(wanted);
  return [...found.filter(isStart), ...found.filter((word) => !isStart(word))];
}

/** A value in the form in which a person types it. {@link parseSetting} can read it again. */
export function formatSetting(name: SettingName, stored: SettingValue): string {
  if (typeof stored === "string") return stored;
  if (typeof stored !== "number") return stored.join(", ");
  if (declarationOf(name).kind !== "usd") return `${stored}`;
  const decimals = { minimumFractionDigits: 2, maximumFractionDigits: 6 };
  return stored.toLocaleString("en", { ...decimals, useGrouping: false });
}

/** The description of a setting in the person's language. */
export function settingDescription(name: SettingName): string {
  return inWords(`setting.${name}.description`, declarationOf(name).description);
}

/** A setting's name as a label, for example "Chat model". */
export function settingLabel(name: SettingName): string {
  const words = name.replaceAll("-", " ");
  return inWords(`setting.${name}.label`, words.charAt(0).toUpperCase() + words.slice(1));
}

/** The values of a `choice` with labels in the person's language. It is empty for other settings. */
export function settingChoices(name: SettingName): readonly Choice[] {
  const setting = declarationOf(name);
  if (setting.kind !== "choice") return [];
  return setting.choices.map(({ value, label }) => ({
    value,
    label: inWords(`setting.${name}.choice.${value}`, label),
  }));
}

/** A group's name, as it stands alone or after a place and a colon (`in-label`). */
export function settingGroupTitle(group: SettingGroup, where: "alone" | "in-label" = "alone"): string {
  const title = settingGroups[group];
  return where === "alone"
    ? inWords(`setting-group.${group}`, title)
    : inWords(`setting-group.${group}.in-label`, title.toLowerCase());
}

function inWords(key: string, declared: string): string {
  return translateDeclared(currentLanguage(), key, declared);
}
