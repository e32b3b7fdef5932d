import { useEffect, useState } from "preact/hooks";
import { html } from "./dom.js";

/**
 * The renderer of Markdown with its libraries, which are more than half of what the page loads. An empty chat
 * does not need it, so it is loaded after the first paint.
 * @typedef {typeof import("./markdown.js")} Renderer
 */

/** @type {Renderer | undefined} */
let renderer;
/** @type {Promise<void> | undefined} */
let loading;

/** Loads the renderer. Resolves when {@link Markdown} is ready. After a failure the next call tries again. */
export function loadMarkdown() {
  loading ??= import("./markdown.js").then(
    (loaded) => {
      renderer = loaded;
    },
    (/** @type {unknown} */ error) => {
      loading = undefined;
      throw error;
    },
  );
  return loading;
}

/** Shows Markdown as elements, or as written without a renderer. @param {{ text: string }} props */
export function Markdown({ text }) {
  const [, setLoaded] = useState(renderer !== undefined);
  useEffect(() => {
    if (renderer !== undefined) return;
    const load = () => loadMarkdown().then(() => setLoaded(true));
    let timer = 0;
    load().catch(() => {
      timer = window.setTimeout(() => void load(), 2000);
    });
    return () => window.clearTimeout(timer);
  }, []);
  return renderer === undefined
    ? html`<div class="markdown as-written" dir="auto">${text}</div>`
    : html`<${renderer.Markdown} text=${text} />`;
}

/** Returns Markdown as a screen reader says it, or as written without a renderer. @param {string} text */
export async function toSpoken(text) {
  await loadMarkdown().catch(() => undefined);
  return renderer === undefined ? text : renderer.toSpoken(text);
}
