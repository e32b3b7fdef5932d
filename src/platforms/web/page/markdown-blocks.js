import { Lexer, Marked, Tokenizer } from "marked";

/** Matches an escaped tag without attributes that is allowed in Markdown. */
const allowedTag =
  /&#60;(\/?(?:br|hr|b|i|em|strong|u|s|del|sub|sup|mark|kbd|code|details|summary))\s*\/?&#62;/gi;

/** The longest paragraph, heading or cell whose emphasis and links are read. Longer ones stay as written. */
const maxInlineChars = 8000;
/** The longest block quote. What follows begins another one. */
const maxQuoteChars = 4000;
/** The deepest nesting of lists and quotes. Anything deeper is shown as it is written. */
const maxDepth = 12;

/** @typedef {(altText: string) => string} PictureLabel the text in place of a picture, from its `altText` */

/** @param {string} text @returns {import("marked").Tokens.Text} */
function toPlain(text) {
  return { type: "text", raw: text, text, escaped: false };
}

/**
 * Limits what marked reads. Its time is quadratic in the length of a paragraph or quote, and its stack grows
 * with the depth of lists and quotes. With these limits, the time grows only linearly.
 */
class BoundedLexer extends Lexer {
  #depth = 0;

  /**
   * Overrides a method with two overloads in marked, which JSDoc cannot express.
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

/** @param {PictureLabel} pictureLabel @param {() => Numbers} numbers those of footnotes */
const createMarked = (pictureLabel, numbers) =>
  new Marked({
    extensions: [...mathsExtensions, ...footnoteExtensions(numbers)],
    gfm: true,
    breaks: true,
    renderer: {
      // The level is the one that `setHeadingLevels` has set.
      heading({ tokens, depth }) {
        return `<h${depth}>${this.parser.parseInline(tokens)}</h${depth}>\n`;
      },
      // Images in model output are never fetched. They become links that name their host.
      image({ href, text }) {
        const host = URL.canParse(href) ? new URL(href).host : "";
        const label = `${pictureLabel(text)}${host === "" ? "" : ` (${host})`}`;
        return `<a href="${escape(href)}">${escape(label)}</a>`;
      },
      // Raw HTML is shown as text, except for a few tags without attributes.
      html({ text }) {
        return escape(text).replace(allowedTag, "<$1>");
      },
      // A task has its box in place of the list's own mark.
      listitem({ task, tokens }) {
        return `<li${task ? ' class="task"' : ""}>${this.parser.parse(tokens)}</li>\n`;
      },
      checkbox({ checked }) {
        return checked ? "☑ " : "☐ ";
      },
    },
  });

/** Levels 1 and 2 are the page's own headings. */
const firstLevel = 3;

/**
 * Turns an answer's headings into levels from 3 on, without gaps, since screen readers go by them.
 * @param {Marked} marked
 * @param {import("marked").TokensList} tokens
 */
function setHeadingLevels(marked, tokens) {
  let highest = Infinity;
  let last = firstLevel - 1;
  void marked.walkTokens(tokens, (token) => {
    if (token.type !== "heading") return;
    const heading = /** @type {import("marked").Tokens.Heading} */ (token);
    highest = Math.min(highest, heading.depth);
    last = Math.min(firstLevel + heading.depth - highest, last + 1, 6);
    heading.depth = last;
  });
}

/** @param {string} text */
function escape(text) {
  return text.replace(/[&<>"']/g, (character) => `&#${character.charCodeAt(0)};`);
}

/**
 * Returns a function that makes the blocks of a text as unsanitised markup, in linear time. While an answer
 * is streamed only the last block changes.
 * @param {PictureLabel} pictureLabel
 * @returns {(text: string) => string[]}
 */
export function createBlockParser(pictureLabel) {
  /** @type {Map<string, number>} */
  let numbers = new Map();
  const marked = createMarked(pictureLabel, () => numbers);
  return (text) => {
    try {
      const tokens = new BoundedLexer({ ...marked.defaults, tokenizer: new BoundedTokenizer() }).lex(text);
      setHeadingLevels(marked, tokens);
      const footnotes = tokens.filter(isFootnote);
      numbers = numberFootnotes(footnotes, footnotes.length === 0 ? [] : referencesIn(marked, tokens));
      const blocks = tokens
        .filter((token) => token.type !== "space" && token.type !== "def" && !isFootnote(token))
        .map((token) => marked.parser([token]));
      if (footnotes.length === 0) return blocks;
      return [
        ...blocks,
        toFootnoteList(footnotes, numbers, (inline) => marked.Parser.parseInline(inline, marked.defaults)),
      ];
    } catch {
      // A text that makes marked fail must not take the page down with it.
      return [`<p>${escape(text)}</p>`];
    }
  };
}

/**
 * Returns the ids of the footnotes that a text refers to, in their order.
 * @param {Marked} marked @param {import("marked").TokensList} tokens
 */
function referencesIn(marked, tokens) {
  /** @type {string[]} */
  const ids = [];
  void marked.walkTokens(tokens, (token) => {
    if (token.type === "footnote-reference" && "id" in token) ids.push(String(token.id));
  });
  return ids;
}

/** The longest footnote. A longer one is shown as it is written. */
const maxChars = 4000;

const definition =
  /^ {0,3}\[\^([^\]\s]{1,60})\]:([^\n]*(?:\n(?![ \t]*(?:\[\^[^\]\s]{1,60}\]:|\n|$))[^\n]+)*)(?:\n|$)/;
const reference = /^\[\^([^\]\s]{1,60})\]/;

/**
 * @typedef {import("marked").Tokens.Generic & { id: string, tokens: import("marked").Token[] }} FootnoteToken
 */
/** @typedef {ReadonlyMap<string, number>} Numbers the number of each footnote by its id */

/**
 * Reads footnotes in Markdown: `[^id]` in the text, and `[^id]: words` in lines of their own. A reference
 * without a footnote is shown as it is written.
 * @param {() => Numbers} numbers those of the text that is being rendered
 * @returns {import("marked").TokenizerAndRendererExtension[]}
 */
function footnoteExtensions(numbers) {
  return [
    {
      name: "footnote",
      level: "block",
      start(source) {
        const at = source.slice(0, maxChars).search(/(?<=\n) {0,3}\[\^[^\]\s]{1,60}\]:/);
        return at === -1 ? undefined : at;
      },
      tokenizer(source) {
        const [raw, id, text = ""] = definition.exec(source.slice(0, maxChars)) ?? [];
        if (raw === undefined || id === undefined) return undefined;
        /** @type {FootnoteToken} */
        const token = { type: "footnote", raw, id, tokens: [] };
        this.lexer.inline(text.trimStart().replaceAll(/\n[ \t]+/g, "\n"), token.tokens);
        return token;
      },
      // In a list or quote it stays where it is.
      renderer({ id, tokens = [] }) {
        return `<p>${escape(`[^${id}]: `)}${this.parser.parseInline(tokens)}</p>\n`;
      },
    },
    {
      name: "footnote-reference",
      level: "inline",
      start(source) {
        const at = source.indexOf("[^");
        return at === -1 ? undefined : at;
      },
      tokenizer(source) {
        const [raw, id] = reference.exec(source) ?? [];
        return raw === undefined ? undefined : { type: "footnote-reference", raw, id };
      },
      renderer({ raw, id }) {
        const number = numbers().get(/** @type {string} */ (id));
        return number === undefined
          ? escape(raw)
          : `<sup class="note-ref"><a href="#note-${number}">${number}</a></sup>`;
      },
    },
  ];
}

/** @param {import("marked").Token} token @returns {token is FootnoteToken} */
function isFootnote(token) {
  return token.type === "footnote";
}

/**
 * Numbers footnotes in the order of their references. Those without a reference come last.
 * @param {readonly FootnoteToken[]} footnotes
 * @param {readonly string[]} references ids in their order
 * @returns {Map<string, number>}
 */
function numberFootnotes(footnotes, references) {
  const known = new Set(footnotes.map(({ id }) => id));
  const ordered = new Set([...references.filter((id) => known.has(id)), ...known]);
  return new Map([...ordered].map((id, index) => [id, index + 1]));
}

/**
 * Returns the markup of the list of footnotes. Where several have one id, the first counts.
 * @param {readonly FootnoteToken[]} footnotes
 * @param {Numbers} numbers
 * @param {(tokens: import("marked").Token[]) => string} render
 */
function toFootnoteList(footnotes, numbers, render) {
  const notes = [...numbers].map(([id, number]) => {
    const tokens = footnotes.find((one) => one.id === id)?.tokens ?? [];
    return `<li class="note-${number}">${render(tokens)}</li>`;
  });
  return `<ol class="footnotes">${notes.join("")}</ol>`;
}

/** Shows the footnote that a link leads to, in the same answer. @param {Element} link */
export function showFootnote(link) {
  const name = link.getAttribute("href")?.slice(1) ?? "";
  const note = link.closest(".markdown")?.querySelector(`.${CSS.escape(name)}`);
  if (!(note instanceof HTMLElement)) return;
  note.tabIndex = -1;
  note.focus();
  note.scrollIntoView({ block: "nearest" });
}

/** The longest formula. A longer one is shown as it is written. */
const maxFormulaChars = 2000;
/** How far ahead the beginning of a formula is looked for. marked asks at every paragraph. */
const maxAhead = 4000;

/** Excludes `$5 or $10`: there is no space inside the signs, and no digit behind them. */
const inline =
  /^(?:\\\((?=\S)([^\n]{1,2000}?)\\\)|\$\$(?=\S)([^\n$]{1,2000}?)\$\$|\$(?=[^\s$])([^\n$]{0,499}?[^\s$\\])\$(?!\d))/;
/** Matches dollar signs on the formula's own lines, without blank lines and other dollar signs than `\$`. */
const block =
  /^(?:\\\[([\s\S]{1,2000}?)\\\]|\$\$[ \t]*\n([\s\S]{1,2000}?)\n[ \t]*\$\$|\$\$((?:[^$\\\n]|\\[^\n]|\\?\n(?![ \t]*\n)){1,2000})\$\$)[ \t]*(?:\n|$)/;

/** @typedef {{ type: string, raw: string, formula: string }} MathsToken */

/**
 * Reads LaTeX formulas in Markdown, which would remove their backslashes, as `code` elements. The class says
 * how they are shown. Between `\(` and `\)` or dollar signs they are within a line. Between `\[` and `\]`, or
 * `$$` on lines of their own, they are blocks.
 * @type {import("marked").TokenizerAndRendererExtension[]}
 */
const mathsExtensions = [
  {
    name: "maths-block",
    level: "block",
    start: findBlock,
    tokenizer: (source) => toToken("maths-block", block.exec(source.slice(0, maxFormulaChars * 2))),
    renderer: (token) => toCode(/** @type {MathsToken} */ (token), "language-math-block"),
  },
  {
    name: "maths",
    level: "inline",
    start: (source) => findWithin(source, /\\\(|\$/),
    tokenizer: (source) => toToken("maths", inline.exec(source.slice(0, maxFormulaChars * 2))),
    renderer: (token) => toCode(/** @type {MathsToken} */ (token), "language-math"),
  },
];

/** @param {string} source @param {RegExp} pattern */
function findWithin(source, pattern) {
  const at = source.slice(0, maxAhead).search(pattern);
  return at === -1 ? undefined : at;
}

/**
 * Returns where a paragraph ends because a formula begins. The formula must also end, or marked would begin a
 * paragraph anew at each line.
 * @param {string} source
 */
function findBlock(source) {
  const at = findWithin(source, /(?<=\n)(?:\\\[|\$\$)/);
  return at !== undefined && block.test(source.slice(at, at + maxFormulaChars * 2)) ? at : undefined;
}

/** @param {string} type @param {RegExpExecArray | null} match @returns {MathsToken | undefined} */
function toToken(type, match) {
  if (match === null) return undefined;
  const formula = match.slice(1).find((part) => part !== undefined) ?? "";
  return formula.trim() === "" ? undefined : { type, raw: match[0], formula: formula.trim() };
}

/** @param {MathsToken} token @param {string} name */
function toCode({ formula }, name) {
  const text = escape(formula);
  return name === "language-math-block"
    ? `<p><code class="${name}">${text}</code></p>\n`
    : `<code class="${name}">${text}</code>`;
}
