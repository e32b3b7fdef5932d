import { logIn } from "./api.js";
import { translate } from "./words.js";

const form = /** @type {HTMLFormElement} */ (document.querySelector("#login"));
const field = /** @type {HTMLInputElement} */ (document.querySelector("#password"));
const name = /** @type {HTMLInputElement} */ (document.querySelector("#name"));
const problem = /** @type {HTMLElement} */ (document.querySelector("#problem"));

const button = /** @type {HTMLButtonElement} */ (document.querySelector("button"));

form.addEventListener("submit", (event) => {
  event.preventDefault();
  logIn(name.value, field.value).then(
    (message) => {
      if (message === undefined) {
        location.reload();
        return;
      }
      problem.textContent = message;
      field.select();
    },
    () => {
      problem.textContent = translate("page.offline");
    },
  );
});

// Without this script the browser itself would send the form, and show the raw answer.
for (const each of [name, field, button]) each.disabled = false;
(name.offsetParent === null ? field : name).focus();
