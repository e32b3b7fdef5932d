/** The longest code whose syntax is coloured. */
const maxCodeChars = 20_000;
const formulas = "code.language-math, code.language-math-block";
const coded = 'pre > code[class^="language-"]';

/**
 * Shows formulas as MathML and colours code, by libraries that are loaded on first use. Until then, and where
 * they cannot be loaded, both stay as they were written.
 * @param {HTMLElement} element a rendered block of Markdown
 * @param {(markup: string) => DocumentFragment} toSafe sanitises markup of coloured code
 */
export async function enrich(element, toSafe) {
  await Promise.all([showFormulas(element), colourCode(element, toSafe)]);
}

/** @param {HTMLElement} element */
async function showFormulas(element) {
  const found = [...element.querySelectorAll(formulas)];
  if (found.length === 0) return;
  const { default: katex } = await import("katex");
  for (const code of found) {
    const formula = code.textContent ?? "";
    const isBlock = code.classList.contains("language-math-block");
    const shown = document.createElement("span");
    shown.className = isBlock ? "formula is-block" : "formula";
    shown.title = formula;
    try {
      // MathML alone is enough: screen readers read it, and it needs no fonts and no style sheet.
      katex.render(formula, shown, { output: "mathml", displayMode: isBlock, maxSize: 20, maxExpand: 200 });
    } catch {
      // The text is not LaTeX, or not finished yet, and stays as it was written.
      continue;
    }
    if (isBlock) {
      shown.tabIndex = 0;
      shown.setAttribute("role", "group");
      shown.setAttribute("aria-label", formula);
    }
    code.replaceWith(shown);
  }
}

/** @param {HTMLElement} element @param {(markup: string) => DocumentFragment} toSafe */
async function colourCode(element, toSafe) {
  const found = [...element.querySelectorAll(coded)].filter(
    ({ textContent }) => (textContent ?? "").length <= maxCodeChars,
  );
  if (found.length === 0) return;
  const { default: highlighter } = await import("highlight");
  for (const code of found) {
    const language = /language-(\S+)/.exec(code.className)?.[1] ?? "";
    if (highlighter.getLanguage(language) === undefined) continue;
    const { value } = highlighter.highlight(code.textContent ?? "", { language, ignoreIllegals: true });
    code.replaceChildren(toSafe(value));
  }
}
