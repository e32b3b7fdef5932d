import { render } from "preact";
import { loadState } from "./api.js";
import { App } from "./app.js";
import { html } from "./dom.js";
import { loadMessageParts } from "./lazy-parts.js";

const root = /** @type {HTMLElement} */ (document.querySelector("#app"));

/** An opened chat has messages to show. An empty one is painted first. */
const isEmpty = !location.pathname.startsWith("/c/");

function start() {
  Promise.all([loadState(), isEmpty ? undefined : loadMessageParts()]).then(
    ([initial]) => {
      root.replaceChildren();
      render(html`<${App} initial=${initial} />`, root);
      // What fails here is loaded again with the first answer.
      requestAnimationFrame(() => setTimeout(() => void loadMessageParts().catch(() => undefined)));
    },
    (/** @type {Error} */ error) => {
      const notice = document.createElement("p");
      notice.className = "starting";
      notice.setAttribute("role", "alert");
      notice.textContent = error.message;
      root.replaceChildren(notice);
      setTimeout(start, 2000);
    },
  );
}

start();
