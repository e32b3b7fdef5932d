import { IntlMessageFormat } from "intl-messageformat";

/**
 * @typedef {typeof import("../../../words/en/page.ts").pageMessages & typeof
 *   import("../../../words/en/shell.ts").shellMessages} PageMessages
 */
/**
 * @template {keyof PageMessages} K
 * @typedef {import("../../../words/message-arguments.ts").MessageArguments<PageMessages[K]>} ArgumentsOf
 */

export const { language, messages } =
  /**
   * The words that the server has put into the document. Those with arguments are parsed already, since a
   * parser would be a tenth of what the page loads.
   * @type {{ language: string, messages: Record<string, string | Message> }}
   */ (JSON.parse(document.querySelector("#words")?.textContent ?? ""));

/** @typedef {Exclude<ConstructorParameters<typeof IntlMessageFormat>[0], string>} Message */

/** @type {Map<string, IntlMessageFormat>} */
const formats = new Map();

/**
 * Returns a message of the catalogue in the language of the browser. @see docs/words.md
 * @template {keyof PageMessages} K
 * @param {K} key
 * @param {keyof ArgumentsOf<K> extends never ? [] : [values: ArgumentsOf<K>]} rest
 * @returns {string}
 */
export function translate(key, ...[values]) {
  const message = messages[key] ?? key;
  if (typeof message === "string") return message;
  const format = formats.get(key) ?? new IntlMessageFormat(message, language);
  formats.set(key, format);
  return String(format.format(values));
}

/** Returns the label of a button below an answer. @param {string} kind @param {string} declared in English */
export function labelOf(kind, declared) {
  const label = messages[`button.${kind}`];
  return typeof label === "string" ? label : declared;
}
