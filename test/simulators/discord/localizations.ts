import { invalidForm } from "./api-error.ts";

/** Discord's locales. @see https://docs.discord.com/developers/reference#locales */
const locales: ReadonlySet<string> = new Set(
  "id da de en-GB en-US es-ES es-419 fr hr it lt hu nl no pl pt-BR ro fi sv-SE vi tr cs el bg ru uk hi th zh-CN ja zh-TW ko".split(
    " ",
  ),
);

/** The texts of one field by locale. */
export type Localizations = Readonly<Record<string, string>> | null | undefined;

/**
 * Checks localizations as Discord does. Locales must be known, and texts must follow the field's own rules.
 * @throws ApiError if one is invalid
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

/** Returns what a field adds to a command's size: the length of its longest text, default text included. */
export function longestOf(text: string, localizations: Localizations): number {
  return Math.max(text.length, ...Object.values(localizations ?? {}).map((one) => one.length));
}

/** Refuses two siblings that have the same name in one locale. @throws ApiError if there are two */
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
 * Returns a command or option as a list has it: without localizations, unless `with_localizations` is true.
 * @see https://docs.discord.com/developers/interactions/application-commands#get-global-application-commands
 */
export function withoutLocalizations<T>(command: T): T {
  return JSON.parse(
    JSON.stringify(command, (key, value: unknown) =>
      key === "name_localizations" || key === "description_localizations" ? undefined : value,
    ),
  ) as T;
}
