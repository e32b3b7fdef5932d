import { AsyncLocalStorage } from "node:async_hooks";
import { readFileSync } from "node:fs";
import { IntlMessageFormat } from "intl-messageformat";
import { english, type MessageKey } from "./english.ts";
import type { ArgumentValue, MessageArguments } from "./message-arguments.ts";
import { defaultLanguage, type Language } from "./languages.ts";

const scopes = new AsyncLocalStorage<Language>();

/** Runs `work` and everything that it starts for a person of this language, which {@link translate} uses. */
export function inLanguage<T>(language: Language, work: () => T): T {
  return scopes.run(language, work);
}

/** The language of the person for whom the code runs, or English outside of {@link inLanguage}. */
export function currentLanguage(): Language {
  return scopes.getStore() ?? defaultLanguage;
}

/** The current language as the `locale` of an author. It is left out for English, which is the default. */
export function currentLocale(): { readonly locale?: Language } {
  const locale = currentLanguage();
  return locale === defaultLanguage ? {} : { locale };
}

/** The arguments of a message, which may be none. */
export type ArgumentsOf<K extends MessageKey> = keyof MessageArguments<(typeof english)[K]> extends never
  ? []
  : [values: MessageArguments<(typeof english)[K]>];

/** A message of the catalogue in the language of the person for whom the code runs. */
export function translate<K extends MessageKey>(key: K, ...[values]: ArgumentsOf<K>): string {
  return translateTo(currentLanguage(), key, ...([values] as ArgumentsOf<K>));
}

/** A message of the catalogue in one language. */
function translateTo<K extends MessageKey>(language: Language, key: K, ...[values]: ArgumentsOf<K>): string {
  const message = messagesOf(language)[key];
  // A test refuses missing messages. If somebody has changed a catalogue, the English message is shown.
  const [text, spoken] = message === undefined ? [english[key], defaultLanguage] : [message, language];
  return values === undefined ? text : formatMessage(spoken, text, values);
}

/**
 * A message as `IntlMessageFormat` takes it without a parser. It is parsed if it has arguments.
 * @throws SyntaxError when the text is not a message
 */
export function compileMessage(language: Language, text: string): unknown {
  if (!text.includes("{")) return text;
  return new IntlMessageFormat(text, language, undefined, { ignoreTag: true }).getAst();
}

/** A declared text, such as a command's description, in a language, or else as it is declared. */
export function translateDeclared(language: Language, key: string, declared: string): string {
  return language === defaultLanguage ? declared : (messagesOf(language)[key] ?? declared);
}

/** A whole number in the format of the language, such as `12,345` or `12.345`. */
export function formatCount(count: number): string {
  return formatDecimal(Math.round(count), { least: 0, most: 0 });
}

/** The lowest and highest number of digits after the decimal point. */
interface DecimalPlaces {
  readonly least: number;
  readonly most: number;
}

/** A number in the format of the language, such as `0.8` or `0,8`. */
export function formatDecimal(value: number, { least, most }: DecimalPlaces): string {
  return numberFormat({ minimumFractionDigits: least, maximumFractionDigits: most }).format(value);
}

/**
 * An amount in US dollars in the format of the language, such as `$1,234.50` or `1.234,50 $`: with two
 * decimals, or two significant digits below a cent. Whatever shows a cost rounds it like this, the page and
 * the dashboard too.
 */
export function formatUsd(usd: number): string {
  const isSmall = usd > 0 && usd < 0.01;
  return numberFormat({
    style: "currency",
    currency: "USD",
    currencyDisplay: "narrowSymbol",
    ...(isSmall ? { maximumSignificantDigits: 2 } : { maximumFractionDigits: usd === 0 ? 0 : 2 }),
  }).format(usd);
}

/** A cost as {@link formatUsd} writes it, with `~` before it where a part of it is estimated. */
export function formatCost(usd: number, isEstimated: boolean): string {
  return `${isEstimated ? "~" : ""}${formatUsd(usd)}`;
}

/** A price in US dollars, with two decimals, or up to six where it needs them. */
export function formatPrice(usd: number): string {
  return numberFormat({
    style: "currency",
    currency: "USD",
    currencyDisplay: "narrowSymbol",
    maximumFractionDigits: 6,
  }).format(usd);
}

/** A UTC date without its year in the format of the language, such as `December 1`. */
export function formatDate(time: number): string {
  return new Intl.DateTimeFormat(currentLanguage(), {
    month: "long",
    day: "numeric",
    timeZone: "UTC",
  }).format(time);
}

const numberFormats = new Map<string, Intl.NumberFormat>();

function numberFormat(options: Intl.NumberFormatOptions): Intl.NumberFormat {
  const language = currentLanguage();
  const key = `${language} ${JSON.stringify(options)}`;
  const known = numberFormats.get(key);
  if (known !== undefined) return known;
  const made = new Intl.NumberFormat(language, options);
  numberFormats.set(key, made);
  return made;
}

const formats = new Map<string, IntlMessageFormat>();

/** Puts values into a message in ICU syntax. Tags and apostrophes have no special meaning in it. */
function formatMessage(
  language: Language,
  text: string,
  values: Readonly<Record<string, ArgumentValue>>,
): string {
  const key = `${language} ${text}`;
  let format = formats.get(key);
  if (format === undefined) {
    format = new IntlMessageFormat(text, language, undefined, { ignoreTag: true });
    formats.set(key, format);
  }
  return String(format.format(withCode(text, values)));
}

/**
 * In inline code a value is one line that cannot end it: names of files, models and options come from
 * outside.
 */
function withCode(
  text: string,
  values: Readonly<Record<string, ArgumentValue>>,
): Readonly<Record<string, ArgumentValue>> {
  if (!text.includes("`")) return values;
  const coded = text.split("`").filter((_, index) => index % 2 === 1);
  return Object.fromEntries(
    Object.entries(values).map(([name, value]) => [
      name,
      coded.some((piece) => piece.includes(`{${name}}`)) ? toCodeText(String(value)) : value,
    ]),
  );
}

/** A text for inline code: one line without backticks. */
export function toCodeText(text: string): string {
  const line = text
    .replaceAll("`", "'")
    .replaceAll(/[\s\u0085]+/g, " ")
    .trim();
  return line === "" ? " " : line;
}

const loaded = new Map<Language, Readonly<Record<string, string>>>([[defaultLanguage, english]]);

/** All messages of a language by key. The file of a language other than English is read on first use. */
export function messagesOf(language: Language): Readonly<Record<string, string>> {
  const known = loaded.get(language);
  if (known !== undefined) return known;
  const file = new URL(`./${language}.json`, import.meta.url);
  const messages = JSON.parse(readFileSync(file, "utf8")) as Readonly<Record<string, string>>;
  loaded.set(language, messages);
  return messages;
}
