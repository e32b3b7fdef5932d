/** The longest formula. A longer one is shown as it is written. */
const maxChars = 2000;
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
export const mathsExtensions = [
  {
    name: "maths-block",
    level: "block",
    start: findBlock,
    tokenizer: (source) => toToken("maths-block", block.exec(source.slice(0, maxChars * 2))),
    renderer: (token) => toCode(/** @type {MathsToken} */ (token), "language-math-block"),
  },
  {
    name: "maths",
    level: "inline",
    start: (source) => find(source, /\\\(|\$/),
    tokenizer: (source) => toToken("maths", inline.exec(source.slice(0, maxChars * 2))),
    renderer: (token) => toCode(/** @type {MathsToken} */ (token), "language-math"),
  },
];

/** @param {string} source @param {RegExp} pattern */
function find(source, pattern) {
  const at = source.slice(0, maxAhead).search(pattern);
  return at === -1 ? undefined : at;
}

/**
 * Returns where a paragraph ends because a formula begins. The formula must also end, or marked would begin a
 * paragraph anew at each line.
 * @param {string} source
 */
function findBlock(source) {
  const at = find(source, /(?<=\n)(?:\\\[|\$\$)/);
  return at !== undefined && block.test(source.slice(at, at + maxChars * 2)) ? at : undefined;
}

/** @param {string} type @param {RegExpExecArray | null} match @returns {MathsToken | undefined} */
function toToken(type, match) {
  if (match === null) return undefined;
  const formula = match.slice(1).find((part) => part !== undefined) ?? "";
  return formula.trim() === "" ? undefined : { type, raw: match[0], formula: formula.trim() };
}

/** @param {MathsToken} token @param {string} name */
function toCode({ formula }, name) {
  const text = formula.replace(/[&<>"']/g, (character) => `&#${character.charCodeAt(0)};`);
  return name === "language-math-block"
    ? `<p><code class="${name}">${text}</code></p>\n`
    : `<code class="${name}">${text}</code>`;
}
