import { render } from "preact";
import { loadState } from "./api.js";
import { App } from "./app.js";
import { html } from "./dom.js";

const root = /** @type {HTMLElement} */ (document.querySelector("#app"));

function start() {
  loadState().then(
    (initial) => {
      root.replaceChildren();
      render(html`<${App} initial=${initial} />`, root);
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
