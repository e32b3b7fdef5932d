/** Longest footnote; what is longer is shown as it is written. */
const maxChars = 4000;

const definition =
  /^ {0,3}\[\^([^\]\s]{1,60})\]:([^\n]*(?:\n(?![ \t]*(?:\[\^[^\]\s]{1,60}\]:|\n|$))[^\n]+)*)(?:\n|$)/;
const reference = /^\[\^([^\]\s]{1,60})\]/;

/** @typedef {import("marked").Tokens.Generic & { id: string, tokens: import("marked").Token[] }} FootnoteToken */
/** @typedef {ReadonlyMap<string, number>} Numbers The number of each footnote by its id. */

/**
 * Footnotes in Markdown: `[^id]` in the text, and `[^id]: words` in lines of their own. A reference without a footnote is
 * shown as it is written.
 * @param {() => Numbers} numbers of the text that is being rendered
 * @returns {import("marked").TokenizerAndRendererExtension[]}
 */
export function footnoteExtensions(numbers) {
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

/** Whether a token is a footnote's own words. @param {import("marked").Token} token @returns {token is FootnoteToken} */
export function isFootnote(token) {
  return token.type === "footnote";
}

/**
 * Numbers footnotes in the order of their references; those that nothing refers to come last.
 * @param {readonly FootnoteToken[]} footnotes
 * @param {readonly string[]} references ids in their order
 * @returns {Map<string, number>}
 */
export function numberFootnotes(footnotes, references) {
  const known = new Set(footnotes.map(({ id }) => id));
  const ordered = new Set([...references.filter((id) => known.has(id)), ...known]);
  return new Map([...ordered].map((id, index) => [id, index + 1]));
}

/**
 * Markup of the list of footnotes. Of several with one id the first counts.
 * @param {readonly FootnoteToken[]} footnotes
 * @param {Numbers} numbers
 * @param {(tokens: import("marked").Token[]) => string} render
 */
export function toFootnoteList(footnotes, numbers, render) {
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

/** @param {string} text */
function escape(text) {
  return text.replace(/[&<>"']/g, (character) => `&#${character.charCodeAt(0)};`);
}
