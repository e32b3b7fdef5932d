/**
 * Makes a model's Markdown harmless for Slack: no `<!here>`, no `<@U…>`, no `<url|label>` comes alive, since those
 * work inside markdown blocks too. Quote marks at the start of a line stay, so that quotes render.
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

/** The three characters that Slack reads as control characters, as entities. */
export function escapeText(text: string): string {
  return text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;");
}

/** Length of a piece of Markdown as `chat.update` counts it: bytes of UTF-8 after all escapes. */
export function escapedBytes(markdown: string): number {
  return Buffer.byteLength(escapeText(markdown));
}

/** At most `maxChars` characters, the last one an ellipsis where something was cut. */
export function cutText(text: string, maxChars: number): string {
  return text.length <= maxChars ? text : `${text.slice(0, maxChars - 1).replace(/[\uD800-\uDBFF]$/, "")}…`;
}
