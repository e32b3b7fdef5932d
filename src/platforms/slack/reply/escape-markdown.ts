import { readFenceLine, type Fence } from "../../../support/markdown-fences.ts";
import { codeSpans } from "../../delivery/split-markdown.ts";

/**
 * Escapes a model's Markdown, so that `<!here>`, `<@U…>` and `<url|label>`, which also work inside of
 * markdown blocks, have no effect. Quote marks at the start of a line stay, so that quotes render. Markdown
 * blocks do not decode entities in the destination of a link: there `&` stays, and `<` and `>` become
 * percent-encoded.
 * @see https://docs.slack.dev/messaging/formatting-message-text#escaping says what is escaped.
 */
export function escapeMarkdown(markdown: string): string {
  let fence: Fence | undefined;
  return markdown
    .split("\n")
    .map((line) => {
      const step = readFenceLine(line, fence);
      fence = step.fence;
      const quotes = /^ {0,3}(?:> ?)+/.exec(line)?.[0] ?? "";
      const rest = line.slice(quotes.length);
      return quotes + (step.role === "none" ? escapeLine(rest) : escapeText(rest));
    })
    .join("\n");
}

function escapeLine(line: string): string {
  if (!line.includes("](")) return escapeText(line);
  let escaped = "";
  let end = 0;
  for (const [from, to] of destinationsIn(line)) {
    escaped += escapeText(line.slice(end, from));
    escaped += line.slice(from, to).replaceAll("<", "%3C").replaceAll(">", "%3E");
    end = to;
  }
  return escaped + escapeText(line.slice(end));
}

/** Finds the destinations of inline links outside of code. The time is linear in the length of the line. */
function destinationsIn(line: string): (readonly [from: number, to: number])[] {
  const found: (readonly [from: number, to: number])[] = [];
  const codes = codeSpans(line).filter(({ isClosed }) => isClosed);
  let code = 0;
  let at = line.indexOf("](");
  while (at !== -1) {
    while ((codes[code]?.end ?? Infinity) <= at) code += 1;
    const inside = codes[code];
    let next = at + 2;
    if (inside !== undefined && inside.start <= at) next = inside.end;
    else {
      const to = endOfDestination(line, at + 2);
      if (to.isClosed) found.push([at + 2, to.at]);
      next = Math.max(next, to.at);
    }
    at = line.indexOf("](", next);
  }
  return found;
}

/** Finds the end of a destination, which is white space or its closing parenthesis. */
function endOfDestination(line: string, from: number): { at: number; isClosed: boolean } {
  let depth = 0;
  for (let at = from; at < line.length; at += 1) {
    const char = line[at];
    if (char === " " || char === "\t") return { at, isClosed: true };
    if (char === "(") depth += 1;
    if (char === ")" && depth === 0) return { at, isClosed: true };
    if (char === ")") depth -= 1;
  }
  return { at: line.length, isClosed: false };
}

/** Replaces Slack's three control characters by entities. */
export function escapeText(text: string): string {
  return text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;");
}

/** Returns the length of Markdown as `chat.update` counts it: UTF-8 bytes after escaping. */
export function escapedBytes(markdown: string): number {
  return Buffer.byteLength(escapeText(markdown));
}

/** Cuts text to at most `maxChars` characters, of which the last one is an ellipsis. */
export function cutText(text: string, maxChars: number): string {
  return text.length <= maxChars ? text : `${text.slice(0, maxChars - 1).replace(/[\uD800-\uDBFF]$/, "")}…`;
}
