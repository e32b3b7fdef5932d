import { toCodeText } from "../words/translate.ts";

/*
 * Whose words are these: how what people, files, pages and names bring stands in prompts, summaries, exports
 * and notices. A label is one line without brackets, so that it cannot end a mark such as `[file notes.txt]`.
 * A text is quoted line by line, or stands in a code block whose fence is longer than any in it.
 */

/** Everything that a model or a person may take for the end of a line. */
export const lineBreak = /\r\n|[\n\r\v\f\u0085\u2028\u2029]/;

/** A text in one line. */
export function oneLine(text: string): string {
  return text.replaceAll(/[\s\u0085]+/g, " ").trim();
}

/** A name or description within a mark or before what somebody said: one line, without square brackets. */
export function toLabel(text: string, maxChars = 500): string {
  return oneLine(text).slice(0, maxChars).toWellFormed().replaceAll("[", "(").replaceAll("]", ")");
}

/** Quotes each line of a text, so that none can imitate the end of its block. */
export function toQuotedLines(text: string): string {
  return text
    .split(lineBreak)
    .map((line) => `> ${line}`)
    .join("\n");
}

/** A text behind its label. Its further lines are quoted, so that none can imitate another label. */
export function toLabelled(label: string, text: string): string {
  return `${label} ${text.split(lineBreak).join("\n> ")}`;
}

/** Makes a Markdown code block that no line of the text can close. By default it names no language. */
export function toFenced(text: string, language = ""): string {
  const longest = text.matchAll(/`{3,}/g).reduce((most, [run]) => Math.max(most, run.length), 2);
  const marker = "`".repeat(longest + 1);
  return `${marker}${language}\n${text}\n${marker}`;
}

/** Makes one line of inline code from untrusted text, in which nothing has an effect. */
export function toInlineCode(text: string): string {
  return `\`${toCodeText(text)}\``;
}
