import DOMPurify from "dompurify";
import { Marked } from "marked";
import { useLayoutEffect, useMemo, useRef } from "preact/hooks";
import { html } from "./dom.js";

const tags =
  "p br hr h3 h4 h5 h6 strong b em i del s u sub sup mark kbd code pre samp blockquote ul ol li a table thead tbody tfoot tr th td caption details summary dl dt dd abbr span div";
const attributes = ["href", "title", "start", "align", "colspan", "rowspan", "class", "open"];

/** An escaped tag, opening or closing, that may be one. */
const bareTag =
  /&#60;(\/?(?:br|hr|b|i|em|strong|u|s|del|sub|sup|mark|kbd|code|details|summary))\s*\/?&#62;/gi;

const marked = new Marked({
  gfm: true,
  breaks: true,
  renderer: {
    // A message stands below the page's own headings.
    heading({ tokens, depth }) {
      const level = Math.min(6, depth + 2);
      return `<h${level}>${this.parser.parseInline(tokens)}</h${level}>\n`;
    },
    // Nothing is fetched because a model named it: the picture is a link that says where it leads.
    image({ href, text }) {
      return `<a href="${escape(href)}">${escape(imageWords(href, text))}</a>`;
    },
    // Raw HTML is shown as it was written, except for a few tags without attributes.
    html({ text }) {
      return escape(text).replace(bareTag, "<$1>");
    },
    checkbox({ checked }) {
      return checked ? "☑ " : "☐ ";
    },
  },
});

const purifier = DOMPurify(window);
purifier.addHook("afterSanitizeAttributes", (node) => {
  if (
    node.hasAttribute("class") &&
    !(node.tagName === "CODE" && /^language-[\w+#.-]{1,30}$/.test(node.className))
  )
    node.removeAttribute("class");
  if (!(node instanceof HTMLAnchorElement)) return;
  const address = node.getAttribute("href") ?? "";
  node.removeAttribute("href");
  if (isOutside(address)) setLink(node, address);
});

/** @param {HTMLAnchorElement} link @param {string} address */
function setLink(link, address) {
  link.href = address;
  link.target = "_blank";
  link.rel = "noopener noreferrer nofollow";
}

/** Whole addresses only: a relative one would lead into this page. @param {string} address */
function isOutside(address) {
  return /^(?:https?|mailto):/i.test(address) && URL.canParse(address);
}

/** @param {string} address @param {string} alt */
function imageWords(address, alt) {
  const host = URL.canParse(address) ? new URL(address).host : "";
  return `Picture: ${alt === "" ? "untitled" : alt}${host === "" ? "" : ` (${host})`}`;
}

/** @param {string} text */
function escape(text) {
  return text.replace(/[&<>"']/g, (character) => `&#${character.charCodeAt(0)};`);
}

/**
 * Harmless elements out of a model's Markdown block.
 * @param {string} markup
 * @returns {DocumentFragment}
 */
export function toFragment(markup) {
  const fragment = purifier.sanitize(markup, {
    ALLOWED_TAGS: tags.split(" "),
    ALLOWED_ATTR: attributes,
    ALLOW_DATA_ATTR: false,
    ALLOW_ARIA_ATTR: false,
    RETURN_DOM_FRAGMENT: true,
  });
  for (const block of fragment.querySelectorAll("pre")) dressCode(block);
  for (const table of fragment.querySelectorAll("table")) {
    const frame = document.createElement("div");
    frame.className = "table-frame";
    frame.tabIndex = 0;
    frame.setAttribute("role", "region");
    frame.setAttribute("aria-label", "Table");
    table.replaceWith(frame);
    frame.append(table);
  }
  return fragment;
}

/** @param {HTMLPreElement} block */
function dressCode(block) {
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
  copy.textContent = "Copy";
  copy.setAttribute("aria-label", language === "" ? "Copy code" : `Copy ${language} code`);
  head.append(name, copy);
  block.tabIndex = 0;
  block.replaceWith(frame);
  frame.append(head, block);
}

/**
 * The blocks of a text, as markup that is not yet harmless. Only the last changes while an answer grows.
 * @param {string} text
 * @returns {string[]}
 */
export function toBlocks(text) {
  return marked
    .lexer(text)
    .filter((token) => token.type !== "space" && token.type !== "def")
    .map((token) => marked.parser([token]));
}

/**
 * A model's Markdown. Blocks that stay the same keep their elements, so that a selection or an open detail
 * survives while the answer grows.
 * @param {{ text: string }} props
 */
export function Markdown({ text }) {
  const blocks = useMemo(() => toBlocks(text), [text]);
  return html`<div class="markdown">
    ${blocks.map((markup, index) => html`<${Block} key=${index} markup=${markup} />`)}
  </div>`;
}

/** @param {{ markup: string }} props */
function Block({ markup }) {
  const element = useRef(/** @type {HTMLDivElement | null} */ (null));
  useLayoutEffect(() => {
    element.current?.replaceChildren(toFragment(markup));
  }, [markup]);
  return html`<div class="block" ref=${element}></div>`;
}
