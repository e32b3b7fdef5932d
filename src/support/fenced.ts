/** Text as a Markdown code block that no line of the text can close. */
export function toFenced(text: string, language: string): string {
  const longest = text.matchAll(/`{3,}/g).reduce((most, [run]) => Math.max(most, run.length), 2);
  const marker = "`".repeat(longest + 1);
  return `${marker}${language}\n${text}\n${marker}`;
}
