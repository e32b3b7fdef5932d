import { invalidForm } from "./api-error.ts";

/** @see https://docs.discord.com/developers/reference#locales */
const locales: ReadonlySet<string> = new Set(
  "id da de en-GB en-US es-ES es-419 fr hr it lt hu nl no pl pt-BR ro fi sv-SE vi tr cs el bg ru uk hi th zh-CN ja zh-TW ko".split(
    " ",
  ),
);

/** Texts of one field by locale. */
export type Localizations = Readonly<Record<string, string>> | null | undefined;

/**
 * Checks the localizations of a field as Discord does: known locales, and the rules of the field itself for each text.
 * @throws ApiError
 */
export function checkLocalizations(
  given: Localizations,
  at: (locale: string) => string,
  rules: { readonly maxChars: number; readonly pattern?: RegExp },
): void {
  for (const [locale, text] of Object.entries(given ?? {})) {
    if (!locales.has(locale))
      throw invalidForm(at(locale), "BASE_TYPE_CHOICES", "Value must be one of the supported locales.");
    if (text.length < 1 || text.length > rules.maxChars)
      throw invalidForm(
        at(locale),
        "BASE_TYPE_BAD_LENGTH",
        `Must be between 1 and ${rules.maxChars} in length.`,
      );
    if (rules.pattern?.test(text) === false || (rules.pattern !== undefined && text !== text.toLowerCase()))
      throw invalidForm(at(locale), "APPLICATION_COMMAND_INVALID_NAME", "Command name is invalid");
  }
}

/** What a field counts against a command's size: its longest text, the default one included. */
export function longestOf(text: string, localizations: Localizations): number {
  return Math.max(text.length, ...Object.values(localizations ?? {}).map((one) => one.length));
}

/** Refuses two siblings that are called the same in one locale. @throws ApiError */
export function checkUniqueNames(
  siblings: readonly { readonly name: string; readonly name_localizations?: Localizations }[],
  at: (index: number, locale: string) => string,
): void {
  const seen = new Set<string>();
  siblings.forEach(({ name_localizations: names }, index) => {
    for (const [locale, name] of Object.entries(names ?? {})) {
      const key = `${locale} ${name}`;
      if (seen.has(key))
        throw invalidForm(
          at(index, locale),
          "APPLICATION_COMMANDS_DUPLICATE_NAME",
          "Application command names must be unique",
        );
      seen.add(key);
    }
  });
}

/**
 * A command or option as a list returns it: without `with_localizations=true` it has no localizations.
 * @see https://docs.discord.com/developers/interactions/application-commands#get-global-application-commands
 */
export function withoutLocalizations<T>(command: T): T {
  return JSON.parse(
    JSON.stringify(command, (key, value: unknown) =>
      key === "name_localizations" || key === "description_localizations" ? undefined : value,
    ),
  ) as T;
}
