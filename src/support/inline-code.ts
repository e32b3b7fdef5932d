/** Untrusted text on one line as Markdown code, where nothing in it has an effect. */
export function toInlineCode(text: string): string {
  const line = text.replaceAll("`", "'").replaceAll(/\s+/g, " ").trim();
  return `\`${line === "" ? " " : line}\``;
}
