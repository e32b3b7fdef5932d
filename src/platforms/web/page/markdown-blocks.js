import { Lexer, Marked, Tokenizer } from "marked";

/** An escaped tag without attributes that is allowed in Markdown. */
const allowedTag =
  /&#60;(\/?(?:br|hr|b|i|em|strong|u|s|del|sub|sup|mark|kbd|code|details|summary))\s*\/?&#62;/gi;

/** Longest paragraph, heading or cell whose emphasis and links are read; longer ones are shown as they are written. */
const maxInlineChars = 8000;
/** Longest block quote; what follows begins another one. */
const maxQuoteChars = 4000;
/** Deepest nesting of lists and quotes; what is deeper is shown as it is written. */
const maxDepth = 12;

/** @param {string} text @returns {import("marked").Tokens.Text} */
function toPlain(text) {
  return { type: "text", raw: text, text, escaped: false };
}

/**
 * The time that marked needs grows with the square of a paragraph's or quote's length, and its stack with the depth
 * of lists and quotes: bounded, the time grows with the length alone.
 */
class BoundedLexer extends Lexer {
  #depth = 0;

  /**
   * Two overloads in marked, which JSDoc cannot override.
   * @param {string} text
   * @param {any[]} [tokens]
   * @param {boolean} [isParagraphCut]
   * @returns {any}
   */
  blockTokens(text, tokens = [], isParagraphCut) {
    if (this.#depth >= maxDepth) {
      tokens.push({ type: "paragraph", raw: text, text, tokens: [toPlain(text)] });
      return tokens;
    }
    this.#depth += 1;
    try {
      return super.blockTokens(text, /** @type {import("marked").Token[]} */ (tokens), isParagraphCut);
    } finally {
      this.#depth -= 1;
    }
  }

  /** @type {Lexer["inlineTokens"]} */
  inlineTokens(text, tokens = []) {
    if (text.length <= maxInlineChars) return super.inlineTokens(text, tokens);
    tokens.push(toPlain(text));
    return tokens;
  }
}

class BoundedTokenizer extends Tokenizer {
  /** @type {Tokenizer["blockquote"]} */
  blockquote(text) {
    if (text.length <= maxQuoteChars) return super.blockquote(text);
    const lineEnd = text.lastIndexOf("\n", maxQuoteChars) + 1;
    return super.blockquote(text.slice(0, lineEnd === 0 ? maxQuoteChars : lineEnd));
  }
}

const marked = new Marked({
  gfm: true,
  breaks: true,
  renderer: {
    // Levels 1 and 2 are the page's own headings.
    heading({ tokens, depth }) {
      const level = Math.min(6, depth + 2);
      return `<h${level}>${this.parser.parseInline(tokens)}</h${level}>\n`;
    },
    // Images in model output are never fetched: they become links that name their host.
    image({ href, text }) {
      return `<a href="${escape(href)}">${escape(imageLabel(href, text))}</a>`;
    },
    // Raw HTML is shown as text, except for a few tags without attributes.
    html({ text }) {
      return escape(text).replace(allowedTag, "<$1>");
    },
    checkbox({ checked }) {
      return checked ? "☑ " : "☐ ";
    },
  },
});

/** @param {string} address @param {string} alt */
function imageLabel(address, alt) {
  const host = URL.canParse(address) ? new URL(address).host : "";
  return `Picture: ${alt === "" ? "untitled" : alt}${host === "" ? "" : ` (${host})`}`;
}

/** @param {string} text */
function escape(text) {
  return text.replace(/[&<>"']/g, (character) => `&#${character.charCodeAt(0)};`);
}

/**
 * The blocks of a text as unsanitised markup, in time that grows with its length. While an answer is streamed only the
 * last block changes.
 * @param {string} text
 * @returns {string[]}
 */
export function toBlocks(text) {
  try {
    return new BoundedLexer({ ...marked.defaults, tokenizer: new BoundedTokenizer() })
      .lex(text)
      .filter((token) => token.type !== "space" && token.type !== "def")
      .map((token) => marked.parser([token]));
  } catch {
    // A text that makes marked fail must not take the page down with it.
    return [`<p>${escape(text)}</p>`];
  }
}
