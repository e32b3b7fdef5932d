/** The text, or its first `maxChars` characters and " (cut)". No character is cut in half. */
export function cutText(text: string, maxChars: number): string {
  if (text.length <= maxChars) return text;
  return `${text.slice(0, maxChars).replace(/[\uD800-\uDBFF]$/, "")} (cut)`;
}
