import DOMPurify from "dompurify";
import { useLayoutEffect, useMemo, useRef } from "preact/hooks";
import { html } from "./dom.js";
import { toBlocks } from "./markdown-blocks.js";

const tags =
  "p br hr h3 h4 h5 h6 strong b em i del s u sub sup mark kbd code pre samp blockquote ul ol li a table thead tbody tfoot tr th td caption details summary dl dt dd abbr span div";
const attributes = ["href", "title", "start", "align", "colspan", "rowspan", "class", "open"];

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
  if (isAbsolute(address)) setLink(node, address);
});

/** @param {HTMLAnchorElement} link @param {string} address */
function setLink(link, address) {
  link.href = address;
  link.target = "_blank";
  link.rel = "noopener noreferrer nofollow";
}

/** Relative URLs would lead into this page. @param {string} address */
function isAbsolute(address) {
  return /^(?:https?|mailto):/i.test(address) && URL.canParse(address);
}

/**
 * Converts the markup of a Markdown block to sanitised elements.
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
  for (const block of fragment.querySelectorAll("pre")) addCodeHeader(block);
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
  copy.textContent = "Copy";
  copy.setAttribute("aria-label", language === "" ? "Copy code" : `Copy ${language} code`);
  head.append(name, copy);
  block.tabIndex = 0;
  block.replaceWith(frame);
  frame.append(head, block);
}

/**
 * Renders untrusted Markdown. Unchanged blocks keep their elements, so that a selection or an open `details` element
 * survives while the answer is streamed.
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
