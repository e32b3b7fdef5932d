import { Locale, type LocalizationMap } from "discord.js";
import { languages, type Language, toLanguage } from "../../../words/languages.ts";
import { createRecent } from "../../../support/recent.ts";

/** How many people's locales are remembered. */
const maxPeople = 20_000;

/** Knows the locales of people. Discord names them with interactions, and only the server's with messages. */
export interface Locales {
  /** Remembers the locale of an interaction. */
  note(userId: string, locale: string): void;
  /** Returns a person's own locale where an interaction with this process has named it, else the server's. */
  of(userId: string, guildId: string | undefined): string | undefined;
  /** Returns the language of {@link of}. */
  languageOf(userId: string, guildId: string | undefined): Language;
}

/** @param guildLocale returns the locale that a server's managers have chosen */
export function createLocales(guildLocale: (guildId: string) => string | undefined): Locales {
  const people = createRecent<string>(maxPeople);
  const of: Locales["of"] = (userId, guildId) =>
    people.get(userId) ?? (guildId === undefined ? undefined : guildLocale(guildId));
  return {
    note: (userId, locale) => void people.set(userId, locale),
    of,
    languageOf: (userId, guildId) => toLanguage(of(userId, guildId)),
  };
}

/**
 * Discord's locales of each language that commands are translated into. English is the default of every
 * field.
 * @see https://docs.discord.com/developers/reference#locales
 */
const localesOf: Readonly<Record<Exclude<Language, "en">, readonly Locale[]>> = {
  de: [Locale.German],
  fr: [Locale.French],
  es: [Locale.SpanishES, Locale.SpanishLATAM],
  ja: [Locale.Japanese],
};

/**
 * Returns a text of a command in the other languages, by Discord's locales, or `null` where none differs from
 * the default. Interactions name the command, option or choice by its default.
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
