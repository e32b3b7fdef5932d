/** Replaces Slack's three control characters by entities. */
export function escapeText(text: string): string {
  return text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;");
}

/** The length of Markdown as `chat.update` counts it: UTF-8 bytes after escaping. */
export function escapedBytes(markdown: string): number {
  return Buffer.byteLength(escapeText(markdown));
}

/** Cuts text to at most `maxChars` characters, the last one an ellipsis. */
export function cutText(text: string, maxChars: number): string {
  return text.length <= maxChars ? text : `${text.slice(0, maxChars - 1).replace(/[\uD800-\uDBFF]$/, "")}…`;
}
