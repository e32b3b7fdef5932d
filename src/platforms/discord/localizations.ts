import { Locale } from "discord-api-types/v10";
import type { LocalizationMap } from "discord.js";
import { languages, type Language } from "../../words/languages.ts";

/**
 * Discord's locales of each language that commands are translated into. English is the default of every field.
 * @see https://docs.discord.com/developers/reference#locales
 */
const localesOf: Readonly<Record<Exclude<Language, "en">, readonly Locale[]>> = {
  de: [Locale.German],
  fr: [Locale.French],
  es: [Locale.SpanishES, Locale.SpanishLATAM],
  ja: [Locale.Japanese],
};

/**
 * A text of a command in the other languages, by Discord's locales; `null` where none differs from the default. The
 * default stays what interactions name the command, option or choice by.
 */
export function toLocalizations(
  declared: string,
  inLanguage: (language: Language) => string,
): LocalizationMap | null {
  const entries = languages.flatMap((language) => {
    if (language === "en") return [];
    const text = inLanguage(language);
    return text === declared ? [] : localesOf[language].map((locale) => [locale, text] as const);
  });
  return entries.length === 0 ? null : Object.fromEntries(entries);
}

/** The query of a list of commands: without it Discord leaves their localizations out. */
export const withLocalizations = new URLSearchParams({ with_localizations: "true" });
