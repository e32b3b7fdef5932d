/**
 * Escapes a model's Markdown, so that `<!here>`, `<@U…>` and `<url|label>`, which also work inside markdown blocks,
 * have no effect. Quote marks at the start of a line stay, so that quotes render.
 * @see https://docs.slack.dev/messaging/formatting-message-text#escaping
 */
export function escapeMarkdown(markdown: string): string {
  return markdown
    .split("\n")
    .map((line) => {
      const quotes = /^ {0,3}(?:> ?)+/.exec(line)?.[0] ?? "";
      return quotes + escapeText(line.slice(quotes.length));
    })
    .join("\n");
}

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
