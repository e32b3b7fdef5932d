/** The languages of Parley. Every message exists in each of them, and the first one is the default. */
export const languages = ["en", "de", "fr", "es", "ja"] as const;
export type Language = (typeof languages)[number];

export const defaultLanguage: Language = "en";

/** Whether a text is the code of one of these languages. */
function isLanguage(code: string): code is Language {
  return (languages as readonly string[]).includes(code);
}

/**
 * The language for a locale as platforms and browsers write it. `de-AT` and `de_AT` give `de`, `es-419` gives
 * `es`. An unknown or absent locale gives English.
 */
export function toLanguage(locale: string | undefined): Language {
  const code = locale?.split(/[-_]/, 1)[0]?.toLowerCase() ?? "";
  return isLanguage(code) ? code : defaultLanguage;
}

/**
 * The first language of an `Accept-Language` header that Parley has, by its quality values, or else English.
 * @see https://www.rfc-editor.org/rfc/rfc9110#name-accept-language
 */
export function negotiateLanguage(header: string | undefined): Language {
  const wanted = (header ?? "")
    .slice(0, 1000)
    .split(",")
    .map((item, index) => {
      const [tag = "", ...parameters] = item.split(";").map((one) => one.trim());
      const quality = parameters.find((one) => one.startsWith("q="))?.slice(2);
      return { code: tag.split("-", 1)[0]!.toLowerCase(), quality: Number(quality ?? 1), index };
    })
    .filter(({ quality }) => quality > 0)
    .toSorted((a, b) => b.quality - a.quality || a.index - b.index);
  for (const { code } of wanted) if (isLanguage(code)) return code;
  return defaultLanguage;
}
