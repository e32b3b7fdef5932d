import { Locale, type LocalizationMap } from "discord.js";
import type { FileErasure } from "../../../core/platform-module.ts";
import type { Records } from "../../../core/storage.ts";
import type { Log } from "../../../core/telemetry.ts";
import { languages, type Language, defaultLanguage, toLanguage } from "../../../words/languages.ts";
import { createRecent } from "../../../support/recent.ts";

/** How many people's locales are remembered. */
const maxPeople = 20_000;

const dayMs = 24 * 60 * 60 * 1000;
/** How long a locale is kept when its owner uses no commands and buttons. */
const keptMs = 90 * dayMs;
/** A locale that is used is stored again after this time. */
const renewedMs = 30 * dayMs;

/** Knows the locales of people. Discord names them with interactions, and only the server's with messages. */
export interface Locales {
  /** Remembers the locale of an interaction, even after a restart. Contract: must not throw. */
  note(userId: string, locale: string, guildLocale?: string): void;
  /** Reads what an earlier process has noted about a person. Contract: must not throw. */
  load(userId: string): Promise<void>;
  /** Returns a person's own locale where it is loaded or an interaction has named it, else the server's. */
  of(userId: string, guildId: string | undefined): string | undefined;
  /** Returns the language of {@link of}. */
  languageOf(userId: string, guildId: string | undefined): Language;
}

/** The facts about a person. The time is in Unix milliseconds. */
interface Noted {
  readonly locale?: string;
  readonly at: number;
}

interface LocaleOptions {
  /** Returns the locale that a server's managers have chosen. */
  readonly guildLocale: (guildId: string) => string | undefined;
  readonly records: Pick<Records, "get" | "set">;
  readonly log: Log;
  /** Unix milliseconds. */
  readonly now: () => number;
}

export function createLocales({ guildLocale, records, log, now }: LocaleOptions): Locales {
  const people = createRecent<Noted>(maxPeople);
  const of: Locales["of"] = (userId, guildId) =>
    people.get(userId)?.locale ?? (guildId === undefined ? undefined : guildLocale(guildId));

  const read = async (userId: string): Promise<Noted> => toNoted(await records.get(keyOf(userId)));

  async function load(userId: string): Promise<void> {
    if (people.has(userId)) return;
    try {
      const noted = await read(userId);
      // An interaction may have named it meanwhile.
      if (!people.has(userId)) people.set(userId, noted);
    } catch (error) {
      log.debug({ err: error }, "locale not read");
    }
  }

  async function save(userId: string, locale: string, isKept: boolean): Promise<void> {
    const known = people.get(userId);
    people.set(userId, { locale, at: known?.at ?? 0 });
    const before = known ?? (await read(userId));
    const isFresh = before.locale === locale && now() - before.at < renewedMs;
    const isStored = !isFresh && (isKept || before.at > 0);
    const at = isStored ? now() : before.at;
    if (isStored) await records.set(keyOf(userId), { locale, at }, keptMs);
    people.set(userId, { locale, at });
  }

  return {
    note(userId, locale, around) {
      // The default needs no note, unless the server speaks another language.
      const isKept = [locale, around].some((one) => toLanguage(one) !== defaultLanguage);
      save(userId, locale, isKept).catch((error: unknown) => {
        log.debug({ err: error }, "locale not stored");
      });
    },
    load,
    of,
    languageOf: (userId, guildId) => toLanguage(of(userId, guildId)),
  };
}

/** Erases a person's stored locale together with the rest of their data. */
export function createLocaleErasure(records: Pick<Records, "delete">): FileErasure {
  return {
    async forgetAuthor(conversationId, authorId) {
      const [, userId] = /^discord:(\d+)$/.exec(authorId) ?? [];
      if (conversationId === undefined && userId !== undefined) await records.delete(keyOf(userId));
    },
    deleteConversation: () => Promise.resolve(),
  };
}

function keyOf(userId: string): string {
  return `discord:locale:${userId}`;
}

function toNoted(record: unknown): Noted {
  if (typeof record !== "object" || record === null) return { at: 0 };
  const { locale, at } = record as { readonly locale?: unknown; readonly at?: unknown };
  return typeof locale === "string" && typeof at === "number" ? { locale, at } : { at: 0 };
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

/** All of those. Among the others, that of Indonesian has the name of a field: `id`. */
export const translatedLocales: readonly Locale[] = Object.values(localesOf).flat();

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

/** The query of a list of commands. Without it Discord leaves their localizations out. */
export const withLocalizations = new URLSearchParams({ with_localizations: "true" });
