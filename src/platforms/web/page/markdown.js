import { html } from "./dom.js";
import { createBlockParser } from "./markdown-blocks.js";
import { translate } from "./words.js";
import DOMPurify from "dompurify";
import { useLayoutEffect, useMemo, useRef } from "preact/hooks";

const toBlocks = createBlockParser((altText) =>
  altText === ""
    ? translate("page.linked-picture.untitled")
    : translate("page.linked-picture", { name: altText }),
);

const tags =
  "p br hr h3 h4 h5 h6 strong b em i del s u sub sup mark kbd code pre samp blockquote ul ol li a table thead tbody tfoot tr th td caption details summary dl dt dd abbr span div";
const attributes = ["href", "title", "start", "align", "colspan", "rowspan", "class", "open"];

/** How long a block must be unchanged before it is coloured, in milliseconds. */
const enrichAfterMs = 100;

const purifier = DOMPurify(window);
purifier.addHook("afterSanitizeAttributes", (node) => {
  if (node.hasAttribute("class") && !isKnownClass(node)) node.removeAttribute("class");
  if (!(node instanceof HTMLAnchorElement)) return;
  const address = node.getAttribute("href") ?? "";
  if (/^#note-\d{1,4}$/.test(address)) return;
  node.removeAttribute("href");
  if (isAbsolute(address)) setLink(node, address);
});

/** Whether a class names the language of code, a kind of its parts, or a footnote. @param {Element} node */
function isKnownClass({ tagName, className }) {
  if (tagName === "OL") return className === "footnotes";
  if (tagName === "LI") return className === "task" || /^note-\d{1,4}$/.test(className);
  if (tagName === "SUP") return className === "note-ref";
  if (tagName === "CODE") return /^language-[\w+#.-]{1,30}$/.test(className);
  return tagName === "SPAN" && /^hljs-[\w-]{1,30}(?: [\w-]{1,30}_{0,2}){0,2}$/.test(className);
}

/** @param {HTMLAnchorElement} link @param {string} address */
function setLink(link, address) {
  link.href = address;
  link.target = "_blank";
  link.rel = "noopener noreferrer nofollow";
}

/** Whether a URL is absolute. Relative ones would lead into this page. @param {string} address */
function isAbsolute(address) {
  return /^(?:https?|mailto):/i.test(address) && URL.canParse(address);
}

/**
 * Converts the markup of a Markdown block to sanitised elements.
 * @param {string} markup
 * @returns {DocumentFragment}
 */
function toFragment(markup) {
  const fragment = purifier.sanitize(markup, {
    ALLOWED_TAGS: tags.split(" "),
    ALLOWED_ATTR: attributes,
    ALLOW_DATA_ATTR: false,
    ALLOW_ARIA_ATTR: false,
    RETURN_DOM_FRAGMENT: true,
  });
  for (const block of fragment.querySelectorAll("pre")) addCodeHeader(block);
  for (const table of fragment.querySelectorAll("table")) {
    const frame = document.createElement("div");
    frame.className = "table-frame";
    frame.tabIndex = 0;
    frame.setAttribute("role", "region");
    frame.setAttribute("aria-label", translate("page.table"));
    table.replaceWith(frame);
    frame.append(table);
  }
  return fragment;
}

/** Sanitises markup of coloured code. @param {string} markup */
function toColouredCode(markup) {
  return purifier.sanitize(markup, {
    ALLOWED_TAGS: ["span"],
    ALLOWED_ATTR: ["class"],
    ALLOW_DATA_ATTR: false,
    ALLOW_ARIA_ATTR: false,
    RETURN_DOM_FRAGMENT: true,
  });
}

/** Adds the language and a copy button to a code block. @param {HTMLPreElement} block */
function addCodeHeader(block) {
  const language = /language-(\S+)/.exec(block.querySelector("code")?.className ?? "")?.[1] ?? "";
  const frame = document.createElement("div");
  frame.className = "code-frame";
  const head = document.createElement("div");
  head.className = "code-head";
  const name = document.createElement("span");
  name.textContent = language;
  const copy = document.createElement("button");
  copy.type = "button";
  copy.className = "copy-code";
  copy.textContent = translate("page.copy");
  copy.setAttribute(
    "aria-label",
    language === "" ? translate("page.copy-code") : translate("page.copy-language-code", { language }),
  );
  const buttons = document.createElement("span");
  buttons.append(copy);
  if (language === "mermaid") buttons.prepend(toDrawButton());
  head.append(name, buttons);
  block.tabIndex = 0;
  block.replaceWith(frame);
  frame.append(head, block);
}

/** Makes the button that draws a diagram. The library is loaded once it is pressed. */
function toDrawButton() {
  const draw = document.createElement("button");
  draw.type = "button";
  draw.className = "copy-code draw-diagram";
  draw.textContent = translate("page.diagram.draw");
  draw.setAttribute("aria-expanded", "false");
  return draw;
}

/**
 * Renders untrusted Markdown. Unchanged blocks keep their elements, so that a selection or an open `details`
 * element survives while the answer is streamed.
 * @param {{ text: string }} props
 */
export function Markdown({ text }) {
  const blocks = useMemo(() => toBlocks(text), [text]);
  return html`<div class="markdown">
    ${blocks.map((markup, index) => html`<${Block} key=${index} markup=${markup} />`)}
  </div>`;
}

/** Does nothing where a library cannot be loaded, which the browser reports. Formulas and code stay plain. */
function stayPlain() {}

/** @param {{ markup: string }} props */
function Block({ markup }) {
  const element = useRef(/** @type {HTMLDivElement | null} */ (null));
  useLayoutEffect(() => {
    const block = element.current;
    block?.replaceChildren(toFragment(markup));
    // A block that still grows is not coloured at each word.
    const timer = setTimeout(() => {
      if (block !== null) void enrich(block).catch(stayPlain);
    }, enrichAfterMs);
    return () => clearTimeout(timer);
  }, [markup]);
  return html`<div class="block" dir="auto" ref=${element}></div>`;
}

/** Returns the words of a Markdown text without its markup, as they are read aloud. @param {string} text */
export function toSpoken(text) {
  return toBlocks(text)
    .map((markup) => purifier.sanitize(markup, { RETURN_DOM_FRAGMENT: true, ALLOWED_TAGS: tags.split(" ") }))
    .map((fragment) => fragment.textContent?.trim() ?? "")
    .join(" ");
}

/** The longest code whose syntax is coloured. */
const maxCodeChars = 20_000;
const formulas = "code.language-math, code.language-math-block";
const coded = 'pre > code[class^="language-"]';

/**
 * Shows formulas as MathML and colours code, by libraries that are loaded on first use. Until then, and where
 * they cannot be loaded, both stay as they were written.
 * @param {HTMLElement} element a rendered block of Markdown
 */
async function enrich(element) {
  await Promise.all([showFormulas(element), colourCode(element)]);
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

/** @param {HTMLElement} element */
async function colourCode(element) {
  const found = [...element.querySelectorAll(coded)].filter(
    ({ textContent }) => (textContent ?? "").length <= maxCodeChars,
  );
  if (found.length === 0) return;
  const { default: highlighter } = await import("highlight");
  for (const code of found) {
    const language = /language-(\S+)/.exec(code.className)?.[1] ?? "";
    if (highlighter.getLanguage(language) === undefined) continue;
    const { value } = highlighter.highlight(code.textContent ?? "", { language, ignoreIllegals: true });
    code.replaceChildren(toColouredCode(value));
  }
}
